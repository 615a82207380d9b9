// Aligns the words of a candidate and a reference for METEOR's `fmean` and `2005`: the most pairs of the same word,
// then the most of the same stem, then the most that share a synset. Of these alignments, it chooses one with the
// fewest crossings, then the fewest chunks, then the leftmost words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mmeval {

constexpr std::size_t kDefaultBudget = 100000;  // search nodes for the proof that its choice is the best
constexpr std::size_t kBeamWidth = 32;          // states per word without such a proof

// The same word must always have the same stem and synsets.
struct AlignerWord {
    std::uint32_t word, stem;
    const std::uint32_t* synsets;  // ascending
    std::uint32_t synset_count;
};

struct WordMatch {
    std::uint32_t candidate, reference;
    std::uint8_t stage;
};

struct Alignment {
    std::vector<WordMatch> matches;  // by candidate position
    std::size_t crossings = 0, chunks = 0;
    bool exact = true;  // false: the most pairs of words and stems, but not proven to be the best choice
};

// Reuses its memory from one pair of texts to the next. Each thread should have one and use it for many pairs.
class StagedAligner {
public:
    StagedAligner();
    ~StagedAligner();

    // The result is valid until the next call.
    const Alignment& align(const AlignerWord* candidate, std::size_t n, const AlignerWord* reference, std::size_t m);

private:
    class Work;
    std::unique_ptr<Work> work_;
};

}  // namespace mmeval
