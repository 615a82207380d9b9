// The edit distance with shifts of TER, with the limits of Tercom and sacrebleu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "key_numbers.h"
#include "span.h"

namespace mmeval {

// Insertions, deletions, substitutions and shifts that turn a candidate into a reference. A greedy search moves the words
// that reduce the edit distance most, until none does. As in sacrebleu, moved words are at most 10 long and move by at
// most 50 places, at most 1,000 moves are tried, and the edit distance only looks at cells near the diagonal.
class ShiftedEdits {
public:
    std::size_t operator()(Span candidate, Span reference);

private:
    struct Shift {
        std::size_t start, length, target;
    };
    struct Best {
        std::int64_t gain;
        Shift shift;
    };
    // Of the column of one candidate word, 64 reference words at a time, as in Myers (1999) and Hyyro (2003).
    struct Column {
        std::uint64_t up, down;             // where the distance rises or falls towards the next reference word
        std::uint64_t is_diagonal, is_right;  // equal to the one diagonally before; 1 more than the one before
        std::int64_t distance;
    };

    void number_words(Span candidate, Span reference);
    void find_band();
    bool find_best(Best& best);
    void try_pair(std::size_t start, std::size_t target, std::size_t length, Best& best);
    std::pair<std::size_t, std::size_t> apply(const Shift& shift);
    void undo(const Shift& shift);

    // The distance of the candidate as it is now, and what a backward trace of it finds.
    std::int64_t align();
    std::int64_t fill_columns();
    Column next_column(const Column& before, std::uint32_t word) const;
    std::int64_t fill_rows();
    void trace();
    void fill_row(std::size_t row, const std::int32_t* before, std::int32_t* out, char* operations) const;
    char operation(std::size_t row, std::size_t column) const;

    // The distance after a shift that changed the words from `begin` to `end`.
    std::int64_t shifted_distance(std::size_t begin, std::size_t end);
    std::int64_t distance_by_columns(std::size_t begin, std::size_t end) const;
    std::int64_t distance_by_rows(std::size_t begin, std::size_t end);

    std::vector<std::uint32_t> candidate_, reference_;  // numbers of words; kMissing if it is not in the reference
    KeyNumbers numbers_;
    std::vector<std::uint32_t> place_begins_, places_;  // by number: where the reference has the word
    bool uses_columns_ = false;
    std::vector<std::uint64_t> bits_;  // by number: the same as a bit set, if the reference is short
    std::vector<Column> columns_;
    std::vector<std::uint32_t> row_begin_, row_end_;  // of the cells that are looked at
    std::vector<std::uint64_t> row_offset_;
    std::vector<std::int32_t> costs_, other_row_, this_row_;
    std::vector<char> operations_;
    std::vector<std::int64_t> aligned_;                        // by reference word: the candidate word before or at it
    std::vector<std::uint32_t> candidate_errors_, reference_errors_;  // sums up to a word
    std::int64_t distance_ = 0;
    std::size_t tried_ = 0;
};

}  // namespace mmeval
