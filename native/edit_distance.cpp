#include "edit_distance.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace mmeval {
namespace {

constexpr std::size_t kWord = 64;
constexpr std::uint32_t kElsewhere = 0;  // the number of symbols that the pattern does not have

}  // namespace

// One machine word holds the vertical differences of a column of the table.
std::size_t EditDistance::in_a_word(const std::uint32_t* rows, std::size_t n, std::size_t m) {
    std::uint64_t plus = ~std::uint64_t{0}, minus = 0;
    const std::uint64_t last = std::uint64_t{1} << (m - 1);
    std::size_t distance = m;
    for (std::size_t j = 0; j < n; ++j) {
        const std::uint64_t match = positions_[rows[j]];
        const std::uint64_t diagonal = (((match & plus) + plus) ^ plus) | match | minus;
        std::uint64_t up = minus | ~(diagonal | plus);
        std::uint64_t down = plus & diagonal;
        distance += (up & last) != 0;
        distance -= (down & last) != 0;
        up = up << 1 | 1;
        down <<= 1;
        plus = down | ~(diagonal | up);
        minus = up & diagonal;
    }
    return distance;
}

// The pattern in strips of 64 symbols. The horizontal differences at the lower edge of a strip enter the next one.
std::size_t EditDistance::in_blocks(const std::uint32_t* rows, std::size_t n, const std::uint32_t* columns,
                                    std::size_t m) {
    plus_.assign((n + kWord - 1) / kWord, ~std::uint64_t{0});  // bit j: the difference enters with +1
    minus_.assign(plus_.size(), 0);
    std::size_t distance = m;
    for (std::size_t begin = 0; begin < m; begin += kWord) {
        const std::size_t width = std::min(kWord, m - begin);
        for (std::size_t i = 0; i < width; ++i) positions_[columns[begin + i]] |= std::uint64_t{1} << i;
        const std::uint64_t last = std::uint64_t{1} << (width - 1);
        const bool is_lowest = begin + width == m;
        std::uint64_t plus = ~std::uint64_t{0}, minus = 0;
        for (std::size_t j = 0; j < n; ++j) {
            const std::uint64_t bit = std::uint64_t{1} << (j % kWord);
            std::uint64_t &plus_in = plus_[j / kWord], &minus_in = minus_[j / kWord];
            const std::uint64_t enters_up = (plus_in & bit) != 0, enters_down = (minus_in & bit) != 0;
            const std::uint64_t match = positions_[rows[j]];
            const std::uint64_t below = match | minus;
            const std::uint64_t carried = match | enters_down;
            const std::uint64_t diagonal = (((carried & plus) + plus) ^ plus) | carried;
            std::uint64_t up = minus | ~(diagonal | plus);
            std::uint64_t down = plus & diagonal;
            if (is_lowest) {
                distance += (up & last) != 0;
                distance -= (down & last) != 0;
            }
            plus_in = (up & last) != 0 ? plus_in | bit : plus_in & ~bit;
            minus_in = (down & last) != 0 ? minus_in | bit : minus_in & ~bit;
            up = up << 1 | enters_up;
            down = down << 1 | enters_down;
            plus = down | ~(below | up);
            minus = up & below;
        }
        for (std::size_t i = 0; i < width; ++i) positions_[columns[begin + i]] = 0;
    }
    return distance;
}

template <typename Symbol>
std::size_t EditDistance::distance(const Symbol* a, std::size_t m, const Symbol* b, std::size_t n) {
    for (; m > 0 && n > 0 && *a == *b; ++a, ++b, --m, --n) {
    }
    for (; m > 0 && n > 0 && a[m - 1] == b[n - 1]; --m, --n) {
    }
    if (m > n) {
        std::swap(a, b);
        std::swap(m, n);
    }
    if (m == 0) return n;
    // The symbols of the shorter text get small numbers; all others have the same one.
    columns_.resize(m);
    rows_.resize(n);
    if constexpr (sizeof(Symbol) == 1) {
        std::array<std::uint32_t, 256> numbers{};
        numbers_ = 1;
        for (std::size_t i = 0; i < m; ++i) {
            std::uint32_t& number = numbers[static_cast<unsigned char>(a[i])];
            if (number == kElsewhere) number = numbers_++;
            columns_[i] = number;
        }
        for (std::size_t j = 0; j < n; ++j) rows_[j] = numbers[static_cast<unsigned char>(b[j])];
    } else {
        std::unordered_map<std::uint32_t, std::uint32_t> numbers;
        for (std::size_t i = 0; i < m; ++i)
            columns_[i] = numbers.emplace(a[i], static_cast<std::uint32_t>(numbers.size() + 1)).first->second;
        for (std::size_t j = 0; j < n; ++j) {
            const auto number = numbers.find(b[j]);
            rows_[j] = number == numbers.end() ? kElsewhere : number->second;
        }
        numbers_ = static_cast<std::uint32_t>(numbers.size() + 1);
    }
    positions_.assign(numbers_, 0);
    if (m > kWord) return in_blocks(rows_.data(), n, columns_.data(), m);
    for (std::size_t i = 0; i < m; ++i) positions_[columns_[i]] |= std::uint64_t{1} << i;
    return in_a_word(rows_.data(), n, m);
}

std::size_t EditDistance::of_bytes(std::string_view left, std::string_view right) {
    return distance(left.data(), left.size(), right.data(), right.size());
}

std::size_t EditDistance::of_numbers(Span left, Span right) {
    return distance(left.data, left.size, right.data, right.size);
}

}  // namespace mmeval
