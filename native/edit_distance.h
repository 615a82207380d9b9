// The Levenshtein distance of two sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "span.h"

namespace mmeval {

// Bit-parallel (Myers 1999, Hyyro 2003): time is the product of the lengths divided by 64, memory is linear.
// An object keeps its tables between calls.
class EditDistance {
public:
    std::size_t of_bytes(std::string_view left, std::string_view right);
    std::size_t of_numbers(Span left, Span right);

private:
    template <typename Symbol>
    std::size_t distance(const Symbol* a, std::size_t m, const Symbol* b, std::size_t n);
    std::size_t in_a_word(const std::uint32_t* rows, std::size_t n, std::size_t m);
    std::size_t in_blocks(const std::uint32_t* rows, std::size_t n, const std::uint32_t* columns, std::size_t m);

    std::vector<std::uint32_t> columns_, rows_;
    std::vector<std::uint64_t> positions_, plus_, minus_;
    std::uint32_t numbers_ = 0;
};

}  // namespace mmeval
