#include "json_text.h"

#include <cstdint>
#include <cstring>

#include "utf8.h"

namespace mmeval {
namespace {

struct Range {
    std::uint32_t first, last;
};

// Assigned characters, ascending, with combining class 0 and NFC_Quick_Check "yes". A test checks them against
// Python's unicodedata. The Unicode stability policy keeps them so.
constexpr Range kStable[] = {
    {0x80, 0x2ff},     {0x386, 0x386},     {0x388, 0x38a},     {0x38c, 0x38c},     {0x38e, 0x3a1},
    {0x3a3, 0x3ff},    {0x400, 0x482},     {0x48a, 0x52f},     {0x531, 0x556},     {0x561, 0x587},
    {0x5d0, 0x5ea},    {0x620, 0x64a},     {0x671, 0x6d3},     {0x10d0, 0x10ff},   {0x1e00, 0x1eff},
    {0x2002, 0x2027},  {0x202a, 0x205e},   {0x20a0, 0x20bf},   {0x2100, 0x2125},   {0x2190, 0x2328},
    {0x232b, 0x23ff},  {0x2460, 0x27ff},   {0x3000, 0x3029},   {0x3030, 0x303f},   {0x3041, 0x3096},
    {0x309b, 0x30ff},  {0x3400, 0x4db5},   {0x4e00, 0x9fef},   {0xac00, 0xd7a3},   {0xfe00, 0xfe0f},
    {0xff01, 0xffbe},  {0x1f300, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f910, 0x1f93e}, {0x1f940, 0x1f970},
};

bool is_stable(std::uint32_t c) {
    for (const Range& range : kStable)
        if (c <= range.last) return c >= range.first;
    return false;
}

// str.isspace beyond ASCII.
bool is_wide_space(std::uint32_t c) {
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_ascii_space(unsigned char c) { return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31); }

constexpr std::uint64_t every(std::uint64_t byte) { return byte * 0x0101010101010101u; }

// Whether none of eight bytes ends a string, starts an escape, is a control character or is beyond ASCII.
bool is_plain(std::uint64_t word) {
    const std::uint64_t quote = word ^ every('"'), slash = word ^ every('\\');
    const std::uint64_t special = ((quote - every(1)) & ~quote) | ((slash - every(1)) & ~slash) | (word - every(0x20)) | word;
    return (special & every(0x80)) == 0;
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The code of the four hexadecimal digits at raw[at]; kBadByte if they are not there.
std::uint32_t hex4(std::string_view raw, std::size_t at) {
    if (at + 4 > raw.size()) return kBadByte;
    std::uint32_t code = 0;
    for (std::size_t k = 0; k < 4; ++k) {
        const int digit = hex_value(raw[at + k]);
        if (digit < 0) return kBadByte;
        code = code * 16 + static_cast<std::uint32_t>(digit);
    }
    return code;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool read_string(const char*& at, const char* end, JsonString& out) {
    const char* const begin = at + 1;
    const char* p = begin;
    out.escaped = false;
    out.ascii = true;
    for (;;) {
        std::uint64_t word;
        while (end - p >= 8 && (std::memcpy(&word, p, 8), is_plain(word))) p += 8;
        if (p == end) return false;
        const auto c = static_cast<unsigned char>(*p);
        if (c == '"') break;
        if (c < 0x20) return false;
        if (c >= 0x80) out.ascii = false;
        if (c == '\\') {
            out.escaped = true;
            if (++p == end) return false;
        }
        ++p;
    }
    out.raw = {begin, static_cast<std::size_t>(p - begin)};
    at = p + 1;
    return true;
}

bool read_number(const char*& at, const char* end, std::string_view& out, bool& is_integer) {
    const char* p = at;
    const bool negative = *p == '-';
    if (negative) ++p;
    const char* const whole = p;
    while (p < end && is_digit(*p)) ++p;
    const auto digits = static_cast<std::size_t>(p - whole);
    if (digits == 0 || (digits > 1 && *whole == '0')) return false;
    is_integer = p == end || *p != '.';
    if (is_integer) {
        if (digits > 18 || (negative && *whole == '0')) return false;
    } else {
        const char* const fraction = ++p;
        while (p < end && is_digit(*p)) ++p;
        const auto places = static_cast<std::size_t>(p - fraction);
        // 15 digits always come back from a double. Below .001 the form may have an exponent.
        if (places == 0 || digits + places > 15 || (fraction[places - 1] == '0' && places > 1)) return false;
        if (*whole == '0' && (places > 1 || negative) && std::memcmp(fraction, "00", places < 2 ? places : 2) == 0) return false;
    }
    if (p < end && (*p == 'e' || *p == 'E' || *p == '.')) return false;
    out = {at, static_cast<std::size_t>(p - at)};
    at = p;
    return true;
}

bool unescape_json(std::string_view raw, std::string& out, bool& ascii) {
    for (std::size_t i = 0; i < raw.size(); ++i) {
        if (raw[i] != '\\') {
            out += raw[i];
            continue;
        }
        if (++i == raw.size()) return false;
        switch (raw[i]) {
            case '"': case '\\': case '/': out += raw[i]; break;
            case 'b': out += '\b'; break;
            case 'f': out += '\f'; break;
            case 'n': out += '\n'; break;
            case 'r': out += '\r'; break;
            case 't': out += '\t'; break;
            case 'u': {
                std::uint32_t code = hex4(raw, i + 1);
                if (code == 0 || code == kBadByte || (code >= 0xdc00 && code < 0xe000)) return false;
                i += 4;
                if (code >= 0xd800 && code < 0xdc00) {
                    if (i + 2 >= raw.size() || raw[i + 1] != '\\' || raw[i + 2] != 'u') return false;
                    const std::uint32_t low = hex4(raw, i + 3);
                    if (low < 0xdc00 || low >= 0xe000) return false;
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    i += 6;
                }
                if (code >= 0x80) ascii = false;
                encode(code, out);
                break;
            }
            default: return false;
        }
    }
    return true;
}

void append_json(std::string_view text, std::string& out) {
    constexpr char kHex[] = "0123456789abcdef";
    out += '"';
    const char *p = text.data(), *const end = p + text.size();
    while (p < end) {
        const char* const begin = p;
        while (p < end && static_cast<unsigned char>(*p) >= 0x20 && *p != '"' && *p != '\\') ++p;
        out.append(begin, p);
        if (p == end) break;
        const char c = *p++;
        switch (c) {
            case '"': out += "\\\""; break;
            case '\\': out += "\\\\"; break;
            case '\b': out += "\\b"; break;
            case '\f': out += "\\f"; break;
            case '\n': out += "\\n"; break;
            case '\r': out += "\\r"; break;
            case '\t': out += "\\t"; break;
            default:
                out += "\\u00";
                out += kHex[c >> 4];
                out += kHex[c & 15];
        }
    }
    out += '"';
}

bool is_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const CodePoint point = decode(text, i);
        if (point.value == kBadByte) return false;
        i += point.bytes;
    }
    return true;
}

bool is_surely_nfc(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        if (static_cast<unsigned char>(text[i]) < 0x80) {
            ++i;
            continue;
        }
        const CodePoint point = decode(text, i);
        if (point.value == kBadByte || !is_stable(point.value)) return false;
        i += point.bytes;
    }
    return true;
}

bool is_blank(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const CodePoint point = decode(text, i);
        if (point.value < 0x80 ? !is_ascii_space(static_cast<unsigned char>(point.value)) : !is_wide_space(point.value)) return false;
        i += point.bytes;
    }
    return true;
}

}  // namespace mmeval
