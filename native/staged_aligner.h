// Pairs the words of a candidate with those of a reference for METEOR's `fmean` and `2005`: the most pairs of the same
// word, of these the most of the same stem, then the most that share a synset. Of all such alignments it takes one with
// the fewest crossings, then the fewest chunks, then the leftmost words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mmeval {

constexpr std::size_t kDefaultBudget = 100000;  // search nodes that it may take to prove its choice the best
constexpr std::size_t kBeamWidth = 32;          // states that it keeps for a word where there is no such proof

// The same word has the same stem and synsets wherever it occurs.
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
    bool exact = true;  // false: the most pairs of words and stems, but no proof that no other choice is better
};

// Keeps its memory from one pair of texts to the next, so that each thread should have one and use it for many.
class StagedAligner {
public:
    StagedAligner();
    ~StagedAligner();

    // What it returns holds until the next call.
    const Alignment& align(const AlignerWord* candidate, std::size_t n, const AlignerWord* reference, std::size_t m);

private:
    class Work;
    std::unique_ptr<Work> work_;
};

}  // namespace mmeval
