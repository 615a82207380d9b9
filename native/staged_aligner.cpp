// The aligner finds the possible matches, settles those without an alternative, and searches for the rest.
#include "staged_aligner.h"

#include <algorithm>

#include "joint_search.h"

namespace mmeval {

namespace {

// Numbers 32-bit keys in the order of insertion. Clearing costs nothing.
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
    std::uint32_t number(std::uint32_t key) {
        Slot& slot = slots_[at(key)];
        if (slot.stamp != stamp_) slot = {key, stamp_, count_++};
        return slot.number;
    }

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
    Work() : search_(kDefaultBudget, kBeamWidth) {}

    const Alignment& align(const AlignerWord* candidate, std::size_t n, const AlignerWord* reference, std::size_t m) {
        words_[kCandidate] = candidate;
        words_[kReference] = reference;
        sizes_[kCandidate] = n;
        sizes_[kReference] = m;
        for (const Side side : {kCandidate, kReference}) mates_[side].assign(sizes_[side], kNoWord);
        levels_.resize(n);
        result_.exact = true;
        match();
        report();
        return result_;
    }

private:
    struct Listed {
        std::uint32_t item, next;
    };

    void match() {
        find_types();
        find_stems();
        find_synonyms();
        settle_pairs();
        if (open_types()) search();
        if (result_.exact) return;
        complete_words();
        complete_stems();
        complete_synonyms();
    }

    void search() {
        const JointProblem problem{sizes_[kCandidate], {mates_[kCandidate].data(), mates_[kReference].data()},
                                   {types_of_[kCandidate].data(), types_of_[kReference].data()},
                                   types_, stems_, synonyms_, most_synonyms()};
        if (!search_.solve(problem, [this](auto... match) { settle(match...); })) result_.exact = false;
    }

    const AlignerWord& word_of(const WordType& type) const {
        const Side side = type.counts[kCandidate] > 0 ? kCandidate : kReference;
        return words_[side][type.first[side]];
    }

    // The types of both sides' words.
    void find_types() {
        types_.clear();
        numbering_.restart(sizes_[kCandidate] + sizes_[kReference]);
        for (const Side side : {kCandidate, kReference}) {
            types_of_[side].resize(sizes_[side]);
            next_[side].resize(sizes_[side]);
            for (auto i = static_cast<std::uint32_t>(sizes_[side]); i-- > 0;) {  // backwards: `first` is the first
                const std::uint32_t v = numbering_.number(words_[side][i].word);
                if (v == types_.size()) types_.push_back({{0, 0}, {kNoWord, kNoWord}, 0, kNoWord, 0, 0, 0, false});
                WordType& type = types_[v];
                types_of_[side][i] = v;
                next_[side][i] = type.first[side];
                type.first[side] = i;
                ++type.counts[side];
            }
        }
    }

    // Settles the types that have no spare words, and finds the stems of the others.
    void find_stems() {
        stems_.assign(1, {{0, 0}, kNoWord});  // a class without spare words, for types that need no stem
        numbering_.restart(types_.size());
        for (std::uint32_t v = 0; v < types_.size(); ++v) {
            WordType& type = types_[v];
            if (type.spare() == 0) {
                settle_in_order(type.first[kCandidate], type.first[kReference], 0);
                continue;
            }
            type.stem = numbering_.number(word_of(type).stem) + 1;
            if (type.stem == stems_.size()) stems_.push_back({{0, 0}, kNoWord});
            StemClass& stem = stems_[type.stem];
            stem.spare[type.more()] += type.spare();
            type.next_in_stem = stem.first_type;
            stem.first_type = v;
        }
    }

    // In order, because uncrossing two matches saves a crossing.
    void settle_in_order(std::uint32_t i, std::uint32_t j, std::uint8_t level) {
        for (; i != kNoWord && j != kNoWord; i = next_[kCandidate][i], j = next_[kReference][j]) settle(i, j, level);
    }

    void settle(std::uint32_t i, std::uint32_t j, std::uint8_t level) {
        if (mates_[kCandidate][i] != kNoWord) mates_[kReference][mates_[kCandidate][i]] = kNoWord;
        if (mates_[kReference][j] != kNoWord) mates_[kCandidate][mates_[kReference][j]] = kNoWord;
        mates_[kCandidate][i] = j;
        mates_[kReference][j] = i;
        levels_[i] = level;
    }

    // Whether some words of the type are neither matched with equal words nor needed for words of their stem.
    bool type_left_over(const WordType& type, Side side) const {
        if (type.spare() == 0 || type.more() != side) return false;
        const StemClass& stem = stems_[type.stem];
        return stem.spare[side] > stem.spare[1 - side];
    }

    // For each type with words left over in the candidate, the types with words left over in the reference that share a
    // synset, unless there are too many to search.
    void find_synonyms() {
        synonyms_.clear();
        start_synsets();
        for (std::uint32_t v = 0; v < types_.size(); ++v)
            if (type_left_over(types_[v], kReference)) list_synsets(word_of(types_[v]), v);
        if (listed_.empty()) return;
        seen_.assign(types_.size(), kNoWord);
        std::size_t options = 0;
        for (std::uint32_t w = 0; w < types_.size() && options <= JointSearch::kMostOptions; ++w) {
            WordType& type = types_[w];
            if (!type_left_over(type, kCandidate)) continue;
            type.synonyms_begin = static_cast<std::uint32_t>(synonyms_.size());
            for_synsets(word_of(type), [&](std::uint32_t synset) {
                for (std::uint32_t at = synset_first_[synset]; at != kNoWord; at = listed_[at].next) {
                    const std::uint32_t v = listed_[at].item;
                    if (seen_[v] == w) continue;
                    seen_[v] = w;
                    synonyms_.push_back(v);
                    types_[v].synonym_of += type.spare();
                    options += std::size_t{type.counts[kCandidate]} * types_[v].counts[kReference];
                }
            });
            type.synonyms_end = static_cast<std::uint32_t>(synonyms_.size());
        }
        if (options <= JointSearch::kMostOptions) return;
        for (WordType& type : types_) type.synonyms_begin = type.synonyms_end = type.synonym_of = 0;
        result_.exact = false;
    }

    void start_synsets() {
        listed_.clear();
        synset_first_.clear();
        std::size_t synsets = 0;
        for (std::size_t j = 0; j < sizes_[kReference]; ++j) synsets += words_[kReference][j].synset_count;
        numbering_.restart(synsets);
    }

    void list_synsets(const AlignerWord& word, std::uint32_t item) {
        for (std::uint32_t s = 0; s < word.synset_count; ++s) {
            const std::uint32_t synset = numbering_.number(word.synsets[s]);
            if (synset == synset_first_.size()) synset_first_.push_back(kNoWord);
            listed_.push_back({item, synset_first_[synset]});
            synset_first_[synset] = static_cast<std::uint32_t>(listed_.size() - 1);
        }
    }

    template <typename Visit>
    void for_synsets(const AlignerWord& word, Visit visit) const {
        for (std::uint32_t s = 0; s < word.synset_count; ++s) {
            const std::uint32_t synset = numbering_.find(word.synsets[s]);
            if (synset != kNoWord) visit(synset);
        }
    }

    // Settles pairs of types that can only match each other: by stem, and single words as synonyms.
    void settle_pairs() {
        for (const StemClass& stem : stems_) {
            if (stem.matches() == 0 || stem.spare[kCandidate] != stem.spare[kReference]) continue;
            const WordType &x = types_[stem.first_type], &y = types_[x.next_in_stem];
            if (y.next_in_stem != kNoWord) continue;
            const WordType &type = x.more() == kReference ? y : x, &other = x.more() == kReference ? x : y;
            if (type.counts[kReference] == 0 && other.counts[kCandidate] == 0)
                settle_in_order(type.first[kCandidate], other.first[kReference], 1);
        }
        const auto single = [&](const WordType& type, Side side) {
            return type.counts[side] == 1 && type.counts[1 - side] == 0 && stems_[type.stem].matches() == 0;
        };
        for (const WordType& type : types_) {
            if (type.synonyms_end - type.synonyms_begin != 1 || !single(type, kCandidate)) continue;
            const WordType& other = types_[synonyms_[type.synonyms_begin]];
            if (single(other, kReference) && other.synonym_of == 1)
                settle(type.first[kCandidate], other.first[kReference], 2);
        }
    }

    // Opens the types that are not settled but can be matched. Returns whether there are any.
    bool open_types() {
        bool any = false;
        for (WordType& type : types_) {
            const Side more = type.more();
            if (mates_[more][type.first[more]] != kNoWord) continue;
            type.open = type.counts[1 - more] > 0 || stems_[type.stem].matches() > 0 || type.synonym_of > 0 ||
                        type.synonyms_begin != type.synonyms_end;
            any = any || type.open;
        }
        return any;
    }

    std::uint32_t most_synonyms() const {
        std::uint32_t most[2] = {0, 0};
        for (const WordType& type : types_) {
            if (!type.open) continue;
            most[kReference] += std::min(type.spare(), type.synonym_of);
            std::uint32_t others = 0;
            for (std::uint32_t e = type.synonyms_begin; e != type.synonyms_end; ++e)
                others += types_[synonyms_[e]].spare();
            most[kCandidate] += std::min(type.spare(), others);
        }
        return std::min(most[0], most[1]);
    }

    // Whether the word is matched neither with an equal word nor by its stem.
    bool left_over(Side side, std::uint32_t k) const {
        const std::uint32_t mate = mates_[side][k];
        return mate == kNoWord || levels_[side == kCandidate ? k : mate] == 2;
    }

    // Matches equal words if there were too many options to search.
    void complete_words() {
        for (const WordType& type : types_) {
            const Side fewer = type.more() == kCandidate ? kReference : kCandidate;
            if (type.counts[fewer] > 0 && mates_[fewer][type.first[fewer]] == kNoWord)
                settle_in_order(type.first[kCandidate], type.first[kReference], 0);
        }
    }

    // Matches as many of the words left over as possible by stem, ignoring crossings.
    void complete_stems() {
        seen_.assign(stems_.size(), kNoWord);  // first word left over of the reference
        for (std::uint32_t j = static_cast<std::uint32_t>(sizes_[kReference]); j-- > 0;) {
            std::uint32_t& first = seen_[types_[types_of_[kReference][j]].stem];
            if (!left_over(kReference, j)) continue;
            next_[kReference][j] = first;
            first = j;
        }
        for (std::uint32_t i = 0; i < sizes_[kCandidate]; ++i) {
            const std::uint32_t stem = types_[types_of_[kCandidate][i]].stem, j = seen_[stem];
            if (j == kNoWord || stems_[stem].matches() == 0 || !left_over(kCandidate, i)) continue;
            seen_[stem] = next_[kReference][j];
            settle(i, j, 1);
        }
    }

    // Matches as many synonyms among the words left over as possible, ignoring crossings.
    void complete_synonyms() {
        start_synsets();
        for (std::uint32_t j = static_cast<std::uint32_t>(sizes_[kReference]); j-- > 0;) {
            if (left_over(kReference, j)) list_synsets(words_[kReference][j], j);
        }
        parents_.resize(sizes_[kReference]);
        for (bool augmented = !listed_.empty(); augmented;) {
            augmented = false;
            cursors_ = synset_first_;
            seen_.assign(sizes_[kReference], 0);
            for (std::uint32_t i = 0; i < sizes_[kCandidate]; ++i)
                if (mates_[kCandidate][i] == kNoWord && augment(i)) augmented = true;
        }
    }

    // Searches for an augmenting path that matches one more word. Words that this round has visited are skipped.
    bool augment(std::uint32_t from) {
        queue_.assign(1, from);
        std::uint32_t free = kNoWord;
        for (std::size_t q = 0; q < queue_.size() && free == kNoWord; ++q) {
            const std::uint32_t i = queue_[q];
            for_synsets(words_[kCandidate][i], [&](std::uint32_t synset) {
                std::uint32_t& at = cursors_[synset];
                for (; at != kNoWord && free == kNoWord; at = listed_[at].next) {
                    const std::uint32_t j = listed_[at].item;
                    if (seen_[j]) continue;
                    seen_[j] = 1;
                    parents_[j] = i;
                    if (mates_[kReference][j] == kNoWord) free = j;
                    else queue_.push_back(mates_[kReference][j]);
                }
            });
        }
        const bool augmented = free != kNoWord;
        while (free != kNoWord) {  // each word on the path gets the mate of the next
            const std::uint32_t i = parents_[free], before = mates_[kCandidate][i];
            settle(i, free, 2);
            free = before;
        }
        return augmented;
    }

    void report() {
        result_.matches.clear();
        result_.chunks = 0;
        const std::vector<std::uint32_t>& mates = mates_[kCandidate];
        for (std::uint32_t i = 0; i < mates.size(); ++i) {
            if (mates[i] == kNoWord) continue;
            result_.chunks += i == 0 || mates[i - 1] == kNoWord || mates[i - 1] + 1 != mates[i];
            result_.matches.push_back({i, mates[i], levels_[i]});
        }
        result_.crossings = count_crossings();
    }

    // With a Fenwick tree over the reference words.
    std::size_t count_crossings() {
        seen_.assign(sizes_[kReference] + 1, 0);
        std::size_t crossings = 0, count = 0;
        for (const WordMatch& match : result_.matches) {
            std::size_t left = 0;
            for (std::size_t at = match.reference; at > 0; at &= at - 1) left += seen_[at];
            crossings += count++ - left;
            for (std::size_t at = match.reference + 1; at < seen_.size(); at += at & (~at + 1)) ++seen_[at];
        }
        return crossings;
    }

    JointSearch search_;
    Numbering numbering_;
    Alignment result_;

    const AlignerWord* words_[2] = {};  // by side, as the next ones
    std::size_t sizes_[2] = {};
    std::vector<std::uint32_t> mates_[2], types_of_[2];
    std::vector<std::uint32_t> next_[2];  // word of the same type
    std::vector<std::uint8_t> levels_;    // of the candidate words' matches
    std::vector<WordType> types_;
    std::vector<StemClass> stems_;
    std::vector<std::uint32_t> synonyms_;  // of types

    std::vector<Listed> listed_;
    std::vector<std::uint32_t> synset_first_, cursors_;
    std::vector<std::uint32_t> seen_, parents_, queue_;
};

StagedAligner::StagedAligner() : work_(std::make_unique<Work>()) {}
StagedAligner::~StagedAligner() = default;

const Alignment& StagedAligner::align(const AlignerWord* candidate, std::size_t n, const AlignerWord* reference,
                                      std::size_t m) {
    return work_->align(candidate, n, reference, m);
}

}  // namespace mmeval
