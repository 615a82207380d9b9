#include "lcs.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mmeval {
namespace {

// Bit-parallel rows of the table, 64 columns at a time (Hyyro 2004): a set bit is a column where the row does not step
// up. The columns are processed in strips, with carries between two strips, so that memory stays linear.
std::size_t lcs_in_strips(const std::uint32_t* a, std::size_t m, const std::uint32_t* b, std::size_t n) {
    // Tokens of a get small numbers. Tokens of b that are not in a can never match and are left out.
    std::unordered_map<std::uint32_t, std::uint32_t> numbers;
    std::vector<std::uint32_t> columns(m), rows;
    for (std::size_t i = 0; i < m; ++i)
        columns[i] = numbers.emplace(a[i], static_cast<std::uint32_t>(numbers.size())).first->second;
    for (std::size_t j = 0; j < n; ++j) {
        const auto number = numbers.find(b[j]);
        if (number != numbers.end()) rows.push_back(number->second);
    }
    std::vector<std::uint64_t> positions(numbers.size(), 0);  // in the strip, by number
    std::vector<std::uint8_t> carries(rows.size(), 0);
    std::size_t length = 0;
    for (std::size_t begin = 0; begin < m; begin += 64) {
        const std::size_t width = std::min<std::size_t>(64, m - begin);
        for (std::size_t i = 0; i < width; ++i) positions[columns[begin + i]] |= std::uint64_t{1} << i;
        std::uint64_t row = ~std::uint64_t{0};
        for (std::size_t j = 0; j < rows.size(); ++j) {
            const std::uint64_t here = positions[rows[j]];
            const std::uint64_t sum = row + (row & here);
            const std::uint64_t with_carry = sum + carries[j];
            carries[j] = (sum < row) | (with_carry < sum);
            row = with_carry | (row & ~here);
        }
        for (std::size_t i = 0; i < width; ++i) {
            length += !((row >> i) & 1);
            positions[columns[begin + i]] = 0;
        }
    }
    return length;
}

// The same with a single machine word. For short texts, a linear search for the token is faster than a table.
std::size_t lcs_in_a_word(const std::uint32_t* a, std::size_t m, const std::uint32_t* b, std::size_t n) {
    std::uint64_t row = ~std::uint64_t{0};
    for (std::size_t j = 0; j < n; ++j) {
        std::uint64_t positions = 0;
        for (std::size_t i = 0; i < m; ++i) positions |= std::uint64_t{a[i] == b[j]} << i;
        const std::uint64_t hits = row & positions;
        row = (row + hits) | (row & ~positions);
    }
    std::size_t length = 0;
    for (std::size_t i = 0; i < m; ++i) length += !((row >> i) & 1);
    return length;
}

}  // namespace

std::size_t longest_common_subsequence(Span left, Span right) {
    auto [a, m] = left;
    auto [b, n] = right;
    // A common prefix and suffix always belong to a longest subsequence. This also covers texts of one repeated token.
    std::size_t common = 0;
    for (; m > 0 && n > 0 && *a == *b; ++a, ++b, --m, --n) ++common;
    for (; m > 0 && n > 0 && a[m - 1] == b[n - 1]; --m, --n) ++common;
    if (m > n) {
        std::swap(a, b);
        std::swap(m, n);
    }
    if (m == 0) return common;
    return common + (m <= 64 ? lcs_in_a_word(a, m, b, n) : lcs_in_strips(a, m, b, n));
}

}  // namespace mmeval
