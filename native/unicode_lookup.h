// Lookups in the generated tables of characters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "unicode_tables.h"

namespace mmeval {

template <std::size_t N>
bool is_in_ranges(const char32_t (&ranges)[N][2], std::uint32_t code) {
    const auto* next = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                        [](std::uint32_t value, const char32_t(&range)[2]) { return value < range[0]; });
    return next != std::begin(ranges) && code <= (*std::prev(next))[1];
}

// The lower case of a character beyond ASCII; the character itself if it is not a single other one.
inline std::uint32_t lower_case(std::uint32_t code) {
    const auto* pair = std::lower_bound(std::begin(kLowerCase), std::end(kLowerCase), code,
                                        [](const char32_t(&entry)[2], std::uint32_t value) { return entry[0] < value; });
    return pair != std::end(kLowerCase) && (*pair)[0] == code ? (*pair)[1] : code;
}

}  // namespace mmeval
