// The facts of lint for the rows of Arrow columns: flags, lengths and hashes, as `_fact` in lint/facts.py computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lint_texts.h"

namespace mmeval {

// An Arrow column of texts, bytes or lists; without `ends`, no row has a value.
struct LintColumn {
    const std::int32_t* ends = nullptr;
    const char* data = nullptr;
    const std::uint8_t* valid = nullptr;  // null: every row has a value
    std::int64_t first = 0;               // of the bits in `valid`

    bool has(std::int64_t row) const {
        const std::int64_t bit = first + row;
        return ends != nullptr && (valid == nullptr || (valid[bit >> 3] >> (bit & 7) & 1) != 0);
    }
    std::string_view operator[](std::int64_t row) const {
        return {data + ends[row], static_cast<std::size_t>(ends[row + 1] - ends[row])};
    }
};

// A path or the content of a file.
struct LintMedia {
    LintColumn path, bytes;
};

struct LintColumns {
    LintColumn answer, references, reference_items, expected_answer, caption, question, prompt, group;
    LintMedia image, audio, video;
    LintColumn metadata, choices;             // JSON
    LintColumn images, messages, boxes;       // rows with a value are left to Python
    const std::int64_t* epochs = nullptr;
    LintColumn epoch;                         // which rows have one
    const std::uint8_t* failed = nullptr;     // rows without an answer that can be checked
};

// One row of the FACTS array in lint/facts.py, which has no padding.
constexpr std::size_t kFactSize = 58;

// Writes the facts of all rows for which they can be computed here, and returns the other rows: those with unusual
// characters, and those with something to report, for which the references must be searched as well.
std::vector<std::int64_t> lint_facts(const LintLexicon& lexicon, const CharacterTable::MakePage& make_page,
                                     const LintColumns& columns, std::int64_t rows, unsigned char* facts);

// `hash()` of a tuple of four non-negative integers in CPython.
std::uint64_t tuple_hash(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d);

}  // namespace mmeval
