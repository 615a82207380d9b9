// ASCII characters and bytes of UTF-8, for lint.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace mmeval {

// The lower-case character of a word, or 0 for a character between words: punctuation, space and control characters.
constexpr std::array<char, 256> word_characters() {
    std::array<char, 256> table{};
    for (int c = '0'; c <= '9'; ++c) table[c] = static_cast<char>(c);
    for (int c = 'a'; c <= 'z'; ++c) table[c] = table[c - 32] = static_cast<char>(c);
    for (char c : {'$', '+', '<', '=', '>', '^', '`', '|', '~'}) table[static_cast<int>(c)] = c;
    return table;
}
inline constexpr std::array<char, 256> kWordCharacters = word_characters();

inline char word_character(char c) { return kWordCharacters[static_cast<unsigned char>(c)]; }
inline bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
inline bool is_space(char c) { return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31); }
inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; }

inline bool contains(std::string_view characters, char c) { return characters.find(c) != std::string_view::npos; }

inline bool starts_with(std::string_view text, std::string_view folded) {
    return text.size() >= folded.size() &&
           std::equal(folded.begin(), folded.end(), text.begin(), [](char a, char b) { return a == lower(b); });
}

inline bool is_wide(char c) { return static_cast<unsigned char>(c) >= 0x80; }

inline std::size_t count_characters(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace mmeval
