// The alignment of two sequences with the fewest substitutions, deletions and insertions.
//
// Of several such alignments, the one that RapidFuzz's `Levenshtein.opcodes` gives, and with it jiwer: the counts of
// substitutions, deletions and insertions depend on this choice.
#pragma once

#include <cstdint>
#include <vector>

#include "span.h"

namespace mmeval {

enum class Edit : std::uint8_t { kHit, kSubstitution, kDeletion, kInsertion };
constexpr std::size_t kEdits = 4;

// Consecutive edits of one kind, in the order of the texts.
struct EditRun {
    Edit kind;
    std::uint64_t length;
};

// Finds alignments. Its memory is kept from one call to the next.
class EditAligner {
public:
    // The numbers of `reference` are less than `kinds`. Others in `hypothesis` match nothing.
    const std::vector<EditRun>& align(Span reference, Span hypothesis, std::size_t kinds);

private:
    struct Split {
        std::size_t reference, hypothesis, left_distance, right_distance;
    };
    // Distances between a prefix (or suffix) of the hypothesis and those of the reference: `values[i]` belongs to the
    // one of length first + i.
    struct Distances {
        std::size_t first = 0;
        std::vector<std::size_t> values;
    };

    void append(Edit kind, std::uint64_t length);
    // Appends the alignment of two parts whose distance is at most `most`, exactly `most` if `is_exact`.
    void align_parts(Span reference, Span hypothesis, std::size_t most, bool is_exact);
    void align_directly(Span reference, Span hypothesis, std::size_t most);
    template <bool kIsWhole>
    void trace(Span reference, Span hypothesis);
    Split split(Span reference, Span hypothesis, std::size_t most, bool is_exact);
    bool find_split(Span reference, Span hypothesis, std::size_t most, Split& split);
    void distances(Span reference, Span hypothesis, std::size_t most, Distances& out);

    void set_patterns(Span reference);
    std::uint64_t pattern(std::uint32_t number, std::size_t word) const;
    template <bool kKeeps>
    void run(Span hypothesis, std::size_t most);
    template <std::size_t kWords>
    void run_whole(Span hypothesis);
    void keep(std::size_t rows);

    std::size_t kinds_ = 0;
    std::vector<EditRun> edits_;
    std::vector<EditRun> backwards_;

    // The places of each number in the reference, 64 positions per word: a table, or a hash table per word.
    bool is_dense_ = true;
    std::size_t words_ = 0;
    std::vector<std::uint64_t> dense_;
    std::vector<std::uint32_t> keys_;
    std::vector<std::uint64_t> bits_;

    // Differences between neighbours along the reference, +1 and -1, of the current row and of all rows.
    std::vector<std::uint64_t> plus_, minus_;
    std::size_t first_word_ = 0, last_word_ = 0, top_ = 0;  // of the current row; the distance above its first word
    std::size_t width_ = 0;
    std::vector<std::uint64_t> kept_plus_, kept_minus_;
    std::vector<std::size_t> kept_first_;

    std::vector<std::uint32_t> turned_reference_, turned_hypothesis_;
    Distances left_, right_;
};

}  // namespace mmeval
