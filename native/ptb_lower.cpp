#include "ptb_lower.h"

#include "ptb_scanner.h"
#include "utf8.h"

namespace mmeval {
namespace {

using namespace ptb;
using Bytes = std::string_view;

uint32_t lower_of(uint32_t c) {
    return c < 0x10000 ? (c + kLowerPage[kLowerIndex[c >> 8] * 256 + (c & 255)]) & 0xffff : c;
}

bool is_cased(uint32_t c) {
    if (c < 0x80) return is_ascii_letter(static_cast<char>(c));
    static constexpr struct { uint32_t first, last; } kCased[] = {
        {0xc0, 0xd6},     {0xd8, 0xf6},     {0xf8, 0x1ba},    {0x1bc, 0x1bf},   {0x1c4, 0x293},  {0x370, 0x373},
        {0x376, 0x377},   {0x37b, 0x37d},   {0x386, 0x386},   {0x388, 0x3ff},   {0x400, 0x481},  {0x48a, 0x527},
        {0x531, 0x556},   {0x561, 0x587},   {0x10a0, 0x10c5}, {0x1d00, 0x1dbf},
        {0x1e00, 0x1fbc}, {0x1fc2, 0x1ffc}, {0x2160, 0x2188}, {0x24b6, 0x24e9}, {0x2c00, 0x2d25}, {0xa640, 0xa697},
        {0xa722, 0xa7a9}, {0xfb00, 0xfb17}, {0xff21, 0xff3a}, {0xff41, 0xff5a}};
    for (const auto& r : kCased)
        if (c >= r.first && c <= r.last) return true;
    return false;
}

// Whether this character belongs to the same word as the letters around it (letters, digits, _ and marks do).
bool joins_word(uint32_t c) {
    if (c < 0x80) return is_ascii_letter(static_cast<char>(c)) || (c >= '0' && c <= '9') || c == '_';
    const int cls = class_of(c);  // compared with the classes of a letter, a capital, a mark and a digit
    return c == 0xad || cls == class_of(0xe9) || cls == class_of(0xc9) || cls == class_of(0x300) || cls == class_of(0x663);
}
bool joins_letters(uint32_t c) { return c == '\'' || c == '-' || c == '.' || c == ':' || c == 0xb7 || c == 0x2010 || c == 0x2019; }

// A capital sigma is final if its word has a cased letter before it and none after it.
bool is_final_sigma(Bytes token, size_t at) {
    bool before = false;
    uint32_t right = 0;  // the previously checked character
    for (size_t i = at; i > 0 && !before;) {
        i = step_back(token, i);
        const uint32_t c = decode(token, i).value;
        before = is_cased(c);
        if (!joins_word(c) && !(joins_letters(c) && (right == 0 || is_cased(right)))) break;
        right = c;
    }
    if (!before) return false;
    bool letter_left = true;
    for (size_t i = at + 2; i < token.size();) {
        const CodePoint c = decode(token, i);
        if (is_cased(c.value)) return false;
        i += c.bytes;
        const bool letter_right = i < token.size() && is_cased(decode(token, i).value);
        if (!joins_word(c.value) && !(joins_letters(c.value) && letter_left && letter_right)) break;
        letter_left = false;
    }
    return true;
}

void append_lower_wide(Bytes token, std::string& out) {
    for (size_t i = 0; i < token.size();) {
        const CodePoint c = decode(token, i);
        if (c.value == kBadByte || c.value >= 0x10000) {
            out.append(token.substr(i, c.bytes));
        } else if (c.value < 0x80) {
            const char b = token[i];
            out += b >= 'A' && b <= 'Z' ? static_cast<char>(b | 0x20) : b;
        } else if (c.value == 0x130) {
            out += "i\xcc\x87";  // dotted capital I: i and a combining dot
        } else if (c.value == 0x3a3) {
            encode(is_final_sigma(token, i) ? 0x3c2 : 0x3c3, out);
        } else {
            encode(lower_of(c.value), out);
        }
        i += c.bytes;
    }
}

}  // namespace

void append_lower(std::string_view token, std::string& out) {
    const size_t old = out.size();
    out.resize(old + token.size());
    char* to = &out[old];
    unsigned char seen = 0;
    for (size_t i = 0; i < token.size(); ++i) {
        const unsigned char b = static_cast<unsigned char>(token[i]);
        seen |= b;
        to[i] = static_cast<char>(b | (static_cast<unsigned>(b - 'A') < 26 ? 0x20 : 0));
    }
    if (seen & 0x80) {
        out.resize(old);
        append_lower_wide(token, out);
    }
}

}  // namespace mmeval
