// The aligner's stages: finds which words may be matched, settles what leaves no choice, has the rest searched for.
#include "staged_aligner.h"

#include <algorithm>
#include <cstdlib>

#include "crossing_search.h"

namespace mmeval {

namespace {

constexpr std::size_t kMostEdges = std::size_t{1} << 18;  // more pairs of synonyms are never listed
constexpr std::uint32_t kMostGraphWords = 256;            // of a candidate in one graph of synonyms that is searched
constexpr int kNearby = 16;                               // free synonyms among which the nearest is chosen

// Numbers 32-bit keys in the order in which they come; forgets them all at no cost.
class Numbering {
public:
    void restart(std::size_t keys) {
        std::size_t size = std::max<std::size_t>(slots_.size(), 64);
        while (size < 2 * keys) size *= 2;
        if (size != slots_.size() || ++stamp_ == 0) {
            slots_.assign(size, {});
            stamp_ = 1;
        }
        mask_ = static_cast<std::uint32_t>(size - 1);
        count_ = 0;
    }
    std::uint32_t find(std::uint32_t key) const {
        const Slot& slot = slots_[at(key)];
        return slot.stamp == stamp_ ? slot.number : kNoWord;
    }
    std::uint32_t number(std::uint32_t key) {  // size() before the call: a new one
        Slot& slot = slots_[at(key)];
        if (slot.stamp != stamp_) slot = {key, stamp_, count_++};
        return slot.number;
    }
    std::uint32_t size() const { return count_; }

private:
    struct Slot {
        std::uint32_t key = 0, stamp = 0, number = 0;
    };
    std::uint32_t at(std::uint32_t key) const {
        const std::uint64_t hash = key * std::uint64_t{0x9E3779B97F4A7C15};
        std::uint32_t slot = static_cast<std::uint32_t>(hash >> 32) & mask_;
        while (slots_[slot].stamp == stamp_ && slots_[slot].key != key) slot = (slot + 1) & mask_;
        return slot;
    }
    std::vector<Slot> slots_;
    std::uint32_t stamp_ = 0, mask_ = 0, count_ = 0;
};

}  // namespace

class StagedAligner::Work {
public:
    Work(std::size_t budget, std::size_t beam_width) : search_(budget, std::max<std::size_t>(beam_width, 1)) {}

    const Alignment& align(const AlignerWord* candidate, std::size_t n, const AlignerWord* reference, std::size_t m,
                           int stages) {
        start(candidate, n, reference, m);
        for (stage_ = 0; stage_ < stages && !free_candidates_.empty() && !free_references_.empty(); ++stage_) {
            if (stage_ == 0) group([](const AlignerWord& word) { return word.word; });
            else if (stage_ == 1) group([](const AlignerWord& word) { return word.stem; });
            else relate();
            settle_components();
            drop_matched();
        }
        report();
        return result_;
    }

private:
    struct Listed {
        std::uint32_t reference, next;
    };

    void start(const AlignerWord* candidate, std::size_t n, const AlignerWord* reference, std::size_t m) {
        candidate_ = candidate;
        reference_ = reference;
        n_ = n;
        m_ = m;
        candidate_mates_.assign(n, kNoWord);
        candidate_component_.assign(n, kNoWord);
        reference_mates_.assign(m, kNoWord);
        reference_component_.assign(m, kNoWord);
        match_stages_.resize(n);
        next_.resize(m);
        free_candidates_.resize(n);
        free_references_.resize(m);
        for (std::size_t i = 0; i < n; ++i) free_candidates_[i] = static_cast<std::uint32_t>(i);
        for (std::size_t j = 0; j < m; ++j) free_references_[j] = static_cast<std::uint32_t>(j);
        result_.exact = true;
    }

    // Components of the free words by a key that makes them alike.
    template <typename Key>
    void group(Key key) {
        components_.clear();
        numbering_.restart(free_references_.size());
        for (std::size_t k = free_references_.size(); k-- > 0;) {  // from the right, so that `first` is the leftmost
            const std::uint32_t j = free_references_[k];
            list_reference(j, numbering_.number(key(reference_[j])));
        }
        for (const std::uint32_t i : free_candidates_) {
            const std::uint32_t c = numbering_.find(key(candidate_[i]));
            candidate_component_[i] = c;
            if (c != kNoWord) ++components_[c].candidates;
        }
    }

    void list_reference(std::uint32_t j, std::uint32_t c) {
        if (c == components_.size()) components_.emplace_back();
        Component& component = components_[c];
        reference_component_[j] = c;
        next_[j] = component.first;
        component.first = j;
        ++component.references;
    }

    // Components of the free words by shared synsets.
    void relate() {
        components_.clear();
        list_synsets();
        if (listed_.empty()) return;
        if (!list_edges()) {
            match_unsearched(free_candidates_);
            return;
        }
        if (edges_.empty()) return;
        join_components();
        for (std::size_t c = 0; c < components_.size(); ++c) {
            if (components_[c].complete || components_[c].candidates <= kMostGraphWords) continue;
            too_many_.clear();
            for (const std::uint32_t i : free_candidates_)
                if (candidate_component_[i] == c) too_many_.push_back(i);
            match_unsearched(too_many_);
            components_[c].candidates = 0;  // nothing is left of it to search
        }
    }

    // By synset the free reference words that have it, ascending.
    void list_synsets() {
        std::size_t count = 0;
        for (const std::uint32_t j : free_references_) count += reference_[j].synset_count;
        numbering_.restart(count);
        listed_.clear();
        synset_first_.clear();
        for (std::size_t k = free_references_.size(); k-- > 0;) {
            const std::uint32_t j = free_references_[k];
            reference_component_[j] = kNoWord;
            for (std::uint32_t s = 0; s < reference_[j].synset_count; ++s) {
                const std::uint32_t synset = numbering_.number(reference_[j].synsets[s]);
                if (synset == synset_first_.size()) synset_first_.push_back(kNoWord);
                listed_.push_back({j, synset_first_[synset]});
                synset_first_[synset] = static_cast<std::uint32_t>(listed_.size() - 1);
            }
        }
    }

    // By free candidate word its synonyms, ascending; false if there are too many in all.
    bool list_edges() {
        edges_.clear();
        edge_begin_.resize(std::max(edge_begin_.size(), n_));
        edge_end_.resize(std::max(edge_end_.size(), n_));
        seen_.assign(m_, kNoWord);
        for (const std::uint32_t i : free_candidates_) {
            candidate_component_[i] = kNoWord;
            edge_begin_[i] = static_cast<std::uint32_t>(edges_.size());
            for (std::uint32_t s = 0; s < candidate_[i].synset_count; ++s) {
                const std::uint32_t synset = numbering_.find(candidate_[i].synsets[s]);
                if (synset == kNoWord) continue;
                for (std::uint32_t at = synset_first_[synset]; at != kNoWord; at = listed_[at].next) {
                    const std::uint32_t j = listed_[at].reference;
                    if (seen_[j] != i) edges_.push_back(j);
                    seen_[j] = i;
                }
                if (edges_.size() > kMostEdges) {
                    for (const std::uint32_t c : free_candidates_) candidate_component_[c] = kNoWord;
                    return false;
                }
            }
            edge_end_[i] = static_cast<std::uint32_t>(edges_.size());
            std::sort(edges_.begin() + edge_begin_[i], edges_.end());
        }
        return true;
    }

    void join_components() {
        roots_.resize(std::max(roots_.size(), m_));
        for (const std::uint32_t j : free_references_) roots_[j] = j;
        for (const std::uint32_t i : free_candidates_)
            for (std::uint32_t e = edge_begin_[i]; e < edge_end_[i]; ++e)
                roots_[root(edges_[e])] = root(edges_[edge_begin_[i]]);
        seen_.assign(m_, kNoWord);  // by root: its component
        for (const std::uint32_t i : free_candidates_) {
            if (edge_begin_[i] == edge_end_[i]) continue;
            std::uint32_t& c = seen_[root(edges_[edge_begin_[i]])];
            if (c == kNoWord) {
                c = static_cast<std::uint32_t>(components_.size());
                components_.emplace_back();
            }
            candidate_component_[i] = c;
            ++components_[c].candidates;
        }
        for (std::size_t k = free_references_.size(); k-- > 0;) {
            const std::uint32_t j = free_references_[k];
            if (seen_[root(j)] != kNoWord) list_reference(j, seen_[root(j)]);
        }
        for (const std::uint32_t i : free_candidates_) {
            if (edge_begin_[i] == edge_end_[i]) continue;
            Component& component = components_[candidate_component_[i]];
            if (edge_end_[i] - edge_begin_[i] != component.references) component.complete = false;
        }
    }

    std::uint32_t root(std::uint32_t j) {
        while (roots_[j] != j) j = roots_[j] = roots_[roots_[j]];
        return j;
    }

    // As many matches as possible of these candidate words by shared synsets, without a search for few crossings. It
    // needs no list of edges: to walk from a word to its synonyms is to walk through its synsets, each once.
    void match_unsearched(const std::vector<std::uint32_t>& words) {
        result_.exact = false;
        free_first_ = synset_first_;
        for (const std::uint32_t i : words) match_nearby(i);
        synset_seen_.assign(synset_first_.size(), 0);
        seen_.assign(m_, 0);
        parents_.resize(std::max(parents_.size(), m_));
        round_ = 0;
        for (bool found = true; found;) {
            found = false;
            ++round_;
            for (const std::uint32_t i : words)
                if (candidate_mates_[i] == kNoWord && augment(i)) found = true;
        }
        for (const std::uint32_t i : words)
            if (candidate_mates_[i] != kNoWord) settle(i, candidate_mates_[i]);
    }

    // Takes the free synonym that lies nearest to the word's own place in its text, of the next few of each synset.
    void match_nearby(std::uint32_t i) {
        const std::int64_t place = static_cast<std::int64_t>(i * m_ / n_);
        std::int64_t nearest = INT64_MAX;
        std::uint32_t mate = kNoWord;
        for (std::uint32_t s = 0; s < candidate_[i].synset_count; ++s) {
            const std::uint32_t synset = numbering_.find(candidate_[i].synsets[s]);
            if (synset == kNoWord) continue;
            std::uint32_t& first = free_first_[synset];  // a reference word once matched stays so
            while (first != kNoWord && reference_mates_[listed_[first].reference] != kNoWord)
                first = listed_[first].next;
            std::uint32_t at = first;
            for (int k = 0; k < kNearby && at != kNoWord; ++k, at = listed_[at].next) {
                const std::uint32_t j = listed_[at].reference;
                const std::int64_t distance = std::abs(place - static_cast<std::int64_t>(j));
                if (reference_mates_[j] != kNoWord || distance >= nearest) continue;
                nearest = distance;
                mate = j;
            }
        }
        if (mate == kNoWord) return;
        candidate_mates_[i] = mate;
        reference_mates_[mate] = i;
    }

    // Looks for a way to match one more word, past all words that this round has found to lead nowhere.
    bool augment(std::uint32_t from) {
        queue_.assign(1, from);
        for (std::size_t q = 0; q < queue_.size(); ++q) {
            const AlignerWord& word = candidate_[queue_[q]];
            for (std::uint32_t s = 0; s < word.synset_count; ++s) {
                const std::uint32_t synset = numbering_.find(word.synsets[s]);
                if (synset == kNoWord || synset_seen_[synset] == round_) continue;
                synset_seen_[synset] = round_;
                for (std::uint32_t at = synset_first_[synset]; at != kNoWord; at = listed_[at].next) {
                    const std::uint32_t j = listed_[at].reference;
                    if (seen_[j] == round_) continue;
                    seen_[j] = round_;
                    parents_[j] = queue_[q];
                    if (reference_mates_[j] == kNoWord) {
                        flip_path(j);
                        return true;
                    }
                    queue_.push_back(reference_mates_[j]);
                }
            }
        }
        return false;
    }

    void flip_path(std::uint32_t j) {
        while (j != kNoWord) {
            const std::uint32_t i = parents_[j];
            const std::uint32_t before = candidate_mates_[i];
            candidate_mates_[i] = j;
            reference_mates_[j] = i;
            j = before;
        }
    }

    // Matches the words of the components: at once where there is no choice, by a search where there is.
    void settle_components() {
        if (components_.empty()) return;
        bool open = false;
        for (const std::uint32_t i : free_candidates_) {
            if (candidate_component_[i] == kNoWord) continue;
            Component& component = components_[candidate_component_[i]];
            if (!component.complete || component.candidates != component.references) {
                open = true;
                continue;
            }
            const std::uint32_t j = component.first;  // in order, since uncrossing two matches saves a crossing
            component.first = next_[j];
            settle(i, j);
        }
        if (!open) return;
        const StageProblem problem{n_, m_, candidate_mates_.data(), reference_mates_.data(),
                                   candidate_component_.data(), reference_component_.data(), &components_,
                                   edge_begin_.data(), edge_end_.data(), edges_.data()};
        if (!search_.solve(problem, [this](std::uint32_t i, std::uint32_t j) { settle(i, j); })) result_.exact = false;
    }

    void settle(std::uint32_t i, std::uint32_t j) {
        candidate_mates_[i] = j;
        reference_mates_[j] = i;
        candidate_component_[i] = reference_component_[j] = kNoWord;
        match_stages_[i] = static_cast<std::uint8_t>(stage_);
    }

    void drop_matched() {
        const auto drop = [](std::vector<std::uint32_t>& words, const std::vector<std::uint32_t>& mates) {
            const auto matched = [&](std::uint32_t word) { return mates[word] != kNoWord; };
            words.erase(std::remove_if(words.begin(), words.end(), matched), words.end());
        };
        drop(free_candidates_, candidate_mates_);
        drop(free_references_, reference_mates_);
    }

    void report() {
        result_.matches.clear();
        result_.chunks = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            if (candidate_mates_[i] == kNoWord) continue;
            const bool linked = i > 0 && candidate_mates_[i - 1] != kNoWord &&
                                candidate_mates_[i - 1] + 1 == candidate_mates_[i];
            result_.chunks += !linked;
            result_.matches.push_back({static_cast<std::uint32_t>(i), candidate_mates_[i], match_stages_[i]});
        }
        result_.crossings = m_ <= 64 ? count_crossings_short() : count_crossings();
    }

    std::size_t count_crossings_short() const {
        std::uint64_t used = 0;
        std::size_t crossings = 0;
        for (const WordMatch& match : result_.matches) {
            crossings += static_cast<std::size_t>(__builtin_popcountll(used >> match.reference));
            used |= std::uint64_t{1} << match.reference;
        }
        return crossings;
    }

    // With a Fenwick tree over the reference words.
    std::size_t count_crossings() {
        seen_.assign(m_ + 1, 0);
        std::size_t crossings = 0, count = 0;
        for (const WordMatch& match : result_.matches) {
            std::size_t left = 0;
            for (std::size_t at = match.reference; at > 0; at &= at - 1) left += seen_[at];
            crossings += count++ - left;
            for (std::size_t at = match.reference + 1; at <= m_; at += at & (~at + 1)) ++seen_[at];
        }
        return crossings;
    }

    CrossingSearch search_;
    Numbering numbering_;
    Alignment result_;
    int stage_ = 0;

    const AlignerWord *candidate_ = nullptr, *reference_ = nullptr;
    std::size_t n_ = 0, m_ = 0;
    std::vector<std::uint32_t> candidate_mates_, reference_mates_;
    std::vector<std::uint32_t> candidate_component_, reference_component_;
    std::vector<std::uint8_t> match_stages_;
    std::vector<std::uint32_t> free_candidates_, free_references_;
    std::vector<Component> components_;
    std::vector<std::uint32_t> next_;  // reference word of the same component

    std::vector<Listed> listed_;
    std::vector<std::uint32_t> synset_first_, free_first_, synset_seen_;
    std::vector<std::uint32_t> edges_, edge_begin_, edge_end_;
    std::vector<std::uint32_t> roots_, seen_, parents_, queue_, too_many_;
    std::uint32_t round_ = 0;
};

StagedAligner::StagedAligner(std::size_t budget, std::size_t beam_width)
    : work_(std::make_unique<Work>(budget, beam_width)) {}
StagedAligner::StagedAligner(StagedAligner&&) noexcept = default;
StagedAligner& StagedAligner::operator=(StagedAligner&&) noexcept = default;
StagedAligner::~StagedAligner() = default;

const Alignment& StagedAligner::align(const AlignerWord* candidate, std::size_t n, const AlignerWord* reference,
                                      std::size_t m, int stages) {
    return work_->align(candidate, n, reference, m, stages);
}

}  // namespace mmeval
