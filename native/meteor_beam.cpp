#include "meteor_beam.h"

#include <algorithm>

namespace mmeval {
namespace {

// The contribution of a match to the matched words by which paths are ranked. Each side is rounded down to whole words,
// so that an inexact match of a single word counts as nothing.
std::uint32_t gain(const PhraseMatch& match) {
    if (match.module == kExact) return match.candidate_words + match.reference_words;
    return match.candidate_words / 2 + match.reference_words / 2;
}

std::uint64_t distance(const PhraseMatch& match) {
    return match.candidate > match.reference ? match.candidate - match.reference : match.reference - match.candidate;
}

}  // namespace

void BeamAligner::sort_by_reference(const std::vector<PhraseMatch>& matches, std::size_t reference_words) {
    ends_.assign(reference_words + 1, 0);
    for (const PhraseMatch& match : matches) ++ends_[match.reference + 1];
    for (std::size_t j = 1; j <= reference_words; ++j) ends_[j] += ends_[j - 1];
    by_reference_.resize(matches.size());
    for (const PhraseMatch& match : matches) by_reference_[ends_[match.reference]++] = match;
}

void BeamAligner::find_fixed(std::size_t candidate_words, std::size_t reference_words) {
    candidate_cover_.assign(candidate_words, 0);
    reference_cover_.assign(reference_words, 0);
    for (const PhraseMatch& match : by_reference_) {
        for (std::size_t i = 0; i < match.candidate_words; ++i) ++candidate_cover_[match.candidate + i];
        for (std::size_t j = 0; j < match.reference_words; ++j) ++reference_cover_[match.reference + j];
    }
    fixed_.assign(reference_words, false);
    for (std::size_t j = 0, begin = 0; j < reference_words; begin = ends_[j++]) {
        if (ends_[j] != begin + 1) continue;
        const PhraseMatch& match = by_reference_[begin];
        bool alone = true;
        for (std::size_t i = 0; alone && i < match.candidate_words; ++i) alone = candidate_cover_[match.candidate + i] == 1;
        for (std::size_t k = 0; alone && k < match.reference_words; ++k) alone = reference_cover_[match.reference + k] == 1;
        fixed_[j] = alone;
    }
}

bool BeamAligner::collides(std::size_t path, const PhraseMatch& match) const {
    const std::uint64_t* row = used_.data() + path * blocks_;
    for (std::uint32_t i = match.candidate; i < match.candidate + match.candidate_words; ++i)
        if (row[i / 64] >> (i % 64) & 1) return true;
    return false;
}

void BeamAligner::close_chunk(Path& path) const {
    if (path.chunk_end != kNone) ++path.rank.chunks;
    path.chunk_end = kNone;
}

BeamAligner::Path BeamAligner::with_match(const Path& path, std::uint32_t index) const {
    const PhraseMatch& match = by_reference_[index];
    Path longer = path;
    longer.rank.matched += gain(match);
    if (longer.chunk_end != match.candidate) close_chunk(longer);
    longer.chunk_end = match.candidate + match.candidate_words;
    longer.next_reference = match.reference + match.reference_words;
    longer.taken = index;
    return longer;
}

// The sort is stable, so a path that is not among the first of a subset is not among the first of all.
void BeamAligner::sort_and_cut() {
    const auto better = [](const Path& a, const Path& b) { return a.rank.better_than(b.rank); };
    if (!std::is_sorted(next_.begin(), next_.end(), better)) std::stable_sort(next_.begin(), next_.end(), better);
    if (next_.size() > kWidth) next_.resize(kWidth);
}

// Keeps the best of next_, in order, and sets their steps and used words. Only the paths that are kept need these.
void BeamAligner::keep_best() {
    sort_and_cut();
    next_used_.resize(next_.size() * blocks_);
    for (std::size_t i = 0; i < next_.size(); ++i) {
        Path& path = next_[i];
        std::uint64_t* row = next_used_.data() + i * blocks_;
        std::copy_n(used_.data() + path.parent * blocks_, blocks_, row);
        if (path.taken == kNone) continue;
        const PhraseMatch& match = by_reference_[path.taken];
        for (std::uint32_t word = match.candidate; word < match.candidate + match.candidate_words; ++word)
            row[word / 64] |= std::uint64_t{1} << (word % 64);
        steps_.push_back({path.taken, path.last_step});
        path.last_step = static_cast<std::uint32_t>(steps_.size() - 1);
        path.taken = kNone;
    }
    paths_.swap(next_);
    used_.swap(next_used_);
    next_.clear();
}

void BeamAligner::extend(std::uint32_t position) {
    const std::uint32_t begin = position == 0 ? 0 : ends_[position - 1], end = ends_[position];
    for (std::uint32_t i = 0; i < paths_.size(); ++i) {
        Path path = paths_[i];
        path.parent = i;
        if (path.next_reference > position) {  // inside a longer match
            next_.push_back(path);
            continue;
        }
        if (fixed_[position]) {
            path.rank.distance += distance(by_reference_[begin]);
            next_.push_back(with_match(path, begin));
            continue;
        }
        for (std::uint32_t match = begin; match < end; ++match) {
            if (collides(i, by_reference_[match])) continue;
            next_.push_back(with_match(path, match));
            // The program charges the distance to the parent path, and so to the paths created after this one.
            path.rank.distance += distance(by_reference_[match]);
            if (next_.size() >= kCrowd) sort_and_cut();
        }
        close_chunk(path);
        next_.push_back(path);
    }
}

const std::vector<PhraseMatch>& BeamAligner::align(const std::vector<PhraseMatch>& matches, std::size_t candidate_words,
                                                   std::size_t reference_words) {
    chosen_.clear();
    if (matches.empty()) return chosen_;
    sort_by_reference(matches, reference_words);
    find_fixed(candidate_words, reference_words);
    blocks_ = (candidate_words + 63) / 64;
    used_.assign(blocks_, 0);
    steps_.clear();
    next_.assign(1, Path{});
    for (std::uint32_t position = 0; position < reference_words; ++position) {
        keep_best();
        extend(position);
    }
    keep_best();
    for (Path& path : paths_) close_chunk(path);
    const Path* best = &paths_[0];
    for (const Path& path : paths_)
        if (path.rank.better_than(best->rank)) best = &path;
    for (std::uint32_t step = best->last_step; step != kNone; step = steps_[step].before)
        chosen_.push_back(by_reference_[steps_[step].match]);
    std::reverse(chosen_.begin(), chosen_.end());
    return chosen_;
}

}  // namespace mmeval
