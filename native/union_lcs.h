// Which words of a reference sentence are in a longest common subsequence with a candidate sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "span.h"

namespace mmeval {

// Marks the words of one reference sentence after comparing it with one or more candidate sentences. Of several longest
// subsequences it takes the one that rouge-score takes: the last matching words first, then steps towards the start of the
// reference if that loses nothing. Memory grows with the square root of the table.
class UnionLcs {
public:
    // Numbers of words must be below `words`.
    void start(Span reference, std::size_t words);
    void add(Span candidate);
    // Ends the comparison: for each word of the reference, whether it is in one of the subsequences.
    const std::vector<bool>& finish();

private:
    using Row = std::uint64_t*;

    void add_short(Span candidate);
    void next_row(const std::uint64_t* row, Row out, std::uint32_t word) const;
    void fill_rows(Span candidate, std::size_t begin, std::size_t end);

    Span reference_{};
    std::size_t width_ = 0;                     // machine words per row
    std::vector<std::uint64_t> row_;            // of the reference's words: set if the table does not step up there
    std::vector<std::uint32_t> slots_;          // by word: its place in `positions_`, or 0
    std::vector<std::uint64_t> positions_;      // bit sets, `width_` machine words each; the first is empty
    std::vector<std::uint64_t> kept_, block_;   // every few rows, and all rows between two of them
    std::vector<bool> is_shared_;
};

}  // namespace mmeval
