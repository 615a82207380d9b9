// Pairs the words of a candidate with those of a reference for METEOR's `fmean` and `2005`: stage by stage (same
// word, same stem, shared synset) the most matches, of these the fewest crossings, the fewest chunks, the leftmost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mmeval {

constexpr int kAlignerStages = 3;
constexpr std::size_t kDefaultBudget = 50000;  // search nodes a stage may take to prove its choice the best
constexpr std::size_t kBeamWidth = 32;         // states a layer keeps where there is no such proof

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
    bool exact = true;  // false: the most matches, but no proof that no other choice has fewer crossings
};

// Keeps its memory from one pair of texts to the next, so that each thread should have one and use it for many.
class StagedAligner {
public:
    explicit StagedAligner(std::size_t budget = kDefaultBudget, std::size_t beam_width = kBeamWidth);
    StagedAligner(StagedAligner&&) noexcept;
    StagedAligner& operator=(StagedAligner&&) noexcept;
    ~StagedAligner();

    // The first `stages` of the three. What it returns holds until the next call.
    const Alignment& align(const AlignerWord* candidate, std::size_t n, const AlignerWord* reference, std::size_t m,
                           int stages);

private:
    class Work;
    std::unique_ptr<Work> work_;
};

}  // namespace mmeval
