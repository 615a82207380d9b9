#include "sacrebleu_tokenizers.h"

#include <string>
#include <vector>

#include "python_text.h"

namespace mmeval {
namespace {

struct Range {
    std::uint32_t first, last;
};

// What sacrebleu's tokenizer for Chinese takes for a Chinese character. The first range is wider than its authors meant:
// their limits for the second plane are read as two characters each.
constexpr Range kChinese[] = {
    {0x2001, 0x2a6d}, {0x2e80, 0x2fdf}, {0x2ff0, 0x303f}, {0x3100, 0x312f}, {0x31a0, 0x31ef}, {0x3200, 0x4db5},
    {0x4e00, 0x9fbb}, {0xf900, 0xfa2d}, {0xfa30, 0xfa6a}, {0xfa70, 0xfad9}, {0xfe10, 0xfe1f}, {0xfe30, 0xfe4f},
    {0xff00, 0xffef},
};

bool is_chinese(std::uint32_t code) {
    if (code < 0x2001) return false;
    for (const Range& range : kChinese)
        if (code >= range.first && code <= range.last) return true;
    return false;
}

void zh_tokenize(std::string_view text, TokenBuffer& out) {
    text = python_lstrip(python_rstrip(text));
    std::string apart;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = decode(text, at);
        const std::string_view bytes = text.substr(at, c.bytes);
        if (is_chinese(c.value)) {
            apart.append(" ").append(bytes).append(" ");
        } else {
            apart.append(bytes);
        }
        at += c.bytes;
    }
    whitespace_tokenize(separate_points_and_dashes(surround_separators(apart)), out);
}

void char_tokenize(std::string_view text, TokenBuffer& out) {
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = decode(text, at);
        if (!is_python_space(c.value)) out.push(text.substr(at, c.bytes));
        at += c.bytes;
    }
}

struct Character {
    std::string_view bytes;
    Category category;
};

constexpr Character kSpace{" ", Category::kOther};
using Characters = std::vector<Character>;

// One left-to-right pass over pairs of neighbours, like the substitution of a regular expression: where `fits(a, b)`, a
// space is written between a and b, and one before a or after b.
template <typename Fits>
void pass(Characters& text, Characters& out, bool space_before, Fits fits) {
    out.clear();
    for (std::size_t i = 0; i < text.size();) {
        if (i + 1 == text.size() || !fits(text[i].category, text[i + 1].category)) {
            out.push_back(text[i++]);
            continue;
        }
        if (space_before) out.push_back(kSpace);
        out.push_back(text[i]);
        out.push_back(kSpace);
        out.push_back(text[i + 1]);
        if (!space_before) out.push_back(kSpace);
        i += 2;
    }
    text.swap(out);
}

void intl_tokenize(std::string_view text, TokenBuffer& out) {
    Characters characters, changed;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = decode(text, at);
        characters.push_back({text.substr(at, c.bytes), category_of(c.value)});
        at += c.bytes;
    }
    pass(characters, changed, false,
         [](Category a, Category b) { return a != Category::kNumber && b == Category::kPunctuation; });
    pass(characters, changed, true,
         [](Category a, Category b) { return a == Category::kPunctuation && b != Category::kNumber; });
    std::string apart;
    for (const Character& c : characters) {
        const bool is_symbol = c.category == Category::kSymbol;
        if (is_symbol) apart += ' ';
        apart.append(c.bytes);
        if (is_symbol) apart += ' ';
    }
    whitespace_tokenize(apart, out);
}

}  // namespace

Tokenizer find_sacrebleu_tokenizer(std::string_view name) {
    if (name == "13a") return mteval_tokenize;
    if (name == "intl") return intl_tokenize;
    if (name == "char") return char_tokenize;
    if (name == "zh") return zh_tokenize;
    if (name == "none") return whitespace_tokenize;
    return nullptr;
}

}  // namespace mmeval
