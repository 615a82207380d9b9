// Texts as Python's str methods see them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "utf8.h"

namespace mmeval {

// str.isspace of one character.
inline bool is_python_space(std::uint32_t code) {
    if (code < 0x80) return code == ' ' || (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x1f);
    if (code < 0x1680) return code == 0x85 || code == 0xa0;
    return code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
           code == 0x202f || code == 0x205f || code == 0x3000;
}

inline std::string_view python_rstrip(std::string_view text) {
    while (!text.empty()) {
        const std::size_t last = step_back(text, text.size());
        if (!is_python_space(decode(text, last).value)) break;
        text = text.substr(0, last);
    }
    return text;
}

inline std::string_view python_lstrip(std::string_view text) {
    while (!text.empty()) {
        const CodePoint first = decode(text, 0);
        if (!is_python_space(first.value)) break;
        text = text.substr(first.bytes);
    }
    return text;
}

// str.lower: one capital letter can become two, and a capital sigma depends on its neighbours.
void python_lower(std::string_view text, std::string& out);

// Whether \w of Python's `re` matches the character.
bool is_regex_word(std::uint32_t code);

enum class Category : std::uint8_t { kOther, kPunctuation, kNumber, kSymbol };
Category category_of(std::uint32_t code);

}  // namespace mmeval
