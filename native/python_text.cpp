#include "python_text.h"

#include <array>

#include "unicode_classes.h"
#include "unicode_lookup.h"

namespace mmeval {
namespace {

constexpr std::uint32_t kCapitalSigma = 0x3a3, kSigma = 0x3c3, kFinalSigma = 0x3c2;
constexpr std::uint32_t kDottedI = 0x130, kDotAbove = 0x307;
constexpr std::uint32_t kCommon = 0x600;  // Latin, Greek and Cyrillic letters, which have a table

std::uint32_t lower(std::uint32_t code) {
    static const auto common = [] {
        std::array<std::uint16_t, kCommon> table{};
        for (std::uint32_t c = 0; c < kCommon; ++c) table[c] = static_cast<std::uint16_t>(lower_case(c));
        return table;
    }();
    return code < kCommon ? common[code] : lower_case(code);
}

// A sigma is final if a letter with a case is before it and none is after it, apart from ignored characters.
bool is_final_sigma(std::string_view text, std::size_t begin, std::size_t end) {
    bool is_after_letter = false;
    for (std::size_t at = begin; at > 0;) {
        at = step_back(text, at);
        const std::uint32_t code = decode(text, at).value;
        if (is_in_ranges(kCaseIgnorable, code)) continue;
        is_after_letter = is_in_ranges(kCased, code);
        break;
    }
    if (!is_after_letter) return false;
    for (std::size_t at = end; at < text.size();) {
        const CodePoint c = decode(text, at);
        if (!is_in_ranges(kCaseIgnorable, c.value)) return !is_in_ranges(kCased, c.value);
        at += c.bytes;
    }
    return true;
}

}  // namespace

void python_lower(std::string_view text, std::string& out) {
    out.reserve(out.size() + text.size());
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x80) {
            out += static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
            ++at;
            continue;
        }
        const CodePoint c = decode(text, at);
        if (c.value == kBadByte) {
            out += text[at];
        } else if (c.value == kCapitalSigma) {
            encode(is_final_sigma(text, at, at + c.bytes) ? kFinalSigma : kSigma, out);
        } else if (c.value == kDottedI) {
            out += 'i';
            encode(kDotAbove, out);
        } else {
            encode(lower(c.value), out);
        }
        at += c.bytes;
    }
}

bool is_regex_word(std::uint32_t code) {
    if (code < 0x80) return is_ascii_letter(static_cast<char>(code)) || (code >= '0' && code <= '9') || code == '_';
    return is_in_ranges(kRegexWord, code);
}

Category category_of(std::uint32_t code) {
    static const auto ascii = [] {
        std::array<Category, 0x80> table{};
        for (std::uint32_t c = 0; c < 0x80; ++c)
            table[c] = is_in_ranges(kPunctuation, c) ? Category::kPunctuation
                       : is_in_ranges(kNumber, c)    ? Category::kNumber
                       : is_in_ranges(kSymbol, c)    ? Category::kSymbol
                                              : Category::kOther;
        return table;
    }();
    if (code < 0x80) return ascii[code];
    if (is_in_ranges(kPunctuation, code)) return Category::kPunctuation;
    if (is_in_ranges(kNumber, code)) return Category::kNumber;
    return is_in_ranges(kSymbol, code) ? Category::kSymbol : Category::kOther;
}

}  // namespace mmeval
