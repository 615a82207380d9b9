// Reading and writing UTF-8, including bad bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mmeval {

struct CodePoint {
    std::uint32_t value;  // kBadByte for a byte that starts no valid sequence
    std::uint32_t bytes;
};
constexpr std::uint32_t kBadByte = 0xffffffff;

inline bool is_tail(unsigned char b) { return (b & 0xc0) == 0x80; }

// The code point at s[i], i < s.size(). Over-long forms, surrogates and stray bytes are bad, one byte at a time.
inline CodePoint decode(std::string_view s, std::size_t i) {
    const auto at = [&](std::size_t k) { return static_cast<unsigned char>(s[i + k]); };
    const std::size_t left = s.size() - i;
    const unsigned char b = at(0);
    if (b < 0x80) return {b, 1};
    if (b >= 0xc2 && b < 0xe0 && left > 1 && is_tail(at(1))) return {(b & 0x1fu) << 6 | (at(1) & 0x3fu), 2};
    if (b >= 0xe0 && b < 0xf0 && left > 2 && is_tail(at(1)) && is_tail(at(2))) {
        const std::uint32_t c = (b & 0xfu) << 12 | (at(1) & 0x3fu) << 6 | (at(2) & 0x3fu);
        if (c >= 0x800 && (c < 0xd800 || c > 0xdfff)) return {c, 3};
    }
    if (b >= 0xf0 && b < 0xf5 && left > 3 && is_tail(at(1)) && is_tail(at(2)) && is_tail(at(3))) {
        const std::uint32_t c =
            (b & 7u) << 18 | (at(1) & 0x3fu) << 12 | (at(2) & 0x3fu) << 6 | (at(3) & 0x3fu);
        if (c >= 0x10000 && c <= 0x10ffff) return {c, 4};
    }
    return {kBadByte, 1};
}

inline void encode(std::uint32_t c, std::string& out) {
    if (c < 0x80) {
        out += static_cast<char>(c);
        return;
    }
    if (c < 0x800) {
        out += static_cast<char>(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            out += static_cast<char>(0xe0 | c >> 12);
        } else {
            out += static_cast<char>(0xf0 | c >> 18);
            out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
        }
        out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    }
    out += static_cast<char>(0x80 | (c & 0x3f));
}

// The start of the code point that ends at s[end - 1].
inline std::size_t step_back(std::string_view s, std::size_t end) {
    std::size_t i = end - 1;
    while (i > 0 && end - i < 4 && is_tail(static_cast<unsigned char>(s[i]))) --i;
    return i;
}

inline bool is_ascii_letter(char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }

}  // namespace mmeval
