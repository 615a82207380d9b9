#include "ter_tokenizer.h"

#include "python_text.h"
#include "tokenizers.h"

namespace mmeval {
namespace {

bool is_asian_punctuation(std::uint32_t c) {
    return c == 0x3001 || c == 0x3002 || (c >= 0x3008 && c <= 0x3011) || (c >= 0x3014 && c <= 0x301f) ||
           (c >= 0xff61 && c <= 0xff65) || c == 0x30fb;
}

bool is_full_width_punctuation(std::uint32_t c) {
    return c == 0xff0e || c == 0xff0c || c == 0xff1f || c == 0xff1a || c == 0xff1b || c == 0xff01 || c == 0xff02 ||
           c == 0xff08 || c == 0xff09;
}

// Characters that are words by themselves: Han, strokes, radicals and compatibility forms. Kana are not.
bool is_asian_word(std::uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3200 && c <= 0x4dbf) || (c >= 0x31c0 && c <= 0x31ef) ||
           (c >= 0x2e80 && c <= 0x2eff) || (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe4f);
}

bool is_removed(char c) {
    return c == '.' || c == ',' || c == '?' || c == ':' || c == ';' || c == '!' || c == '"' || c == '(' || c == ')';
}

// Puts spaces around some characters, or removes others. `changes` tells which: it appends what replaces the character
// and returns true, or returns false.
template <typename Changes>
void change(std::string& text, std::string& out, Changes changes) {
    out.clear();
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = decode(text, at);
        const std::string_view bytes = std::string_view(text).substr(at, c.bytes);
        if (!changes(c.value, bytes, out)) out.append(bytes);
        at += c.bytes;
    }
    text.swap(out);
}

}  // namespace

void TerTokenizer::normalize(std::string& text) const {
    text = replaced(replaced(text, "\n-", ""), "\n", " ");
    if (text.find('&') != std::string::npos) {
        text = replaced(replaced(text, "&quot;", "\""), "&amp;", "&");
        text = replaced(replaced(text, "&lt;", "<"), "&gt;", ">");
    }
    text = replaced(surround_separators(' ' + text + ' '), "'s ", " 's ");
    text = separate_points_and_dashes(text);
}

void TerTokenizer::operator()(std::string_view text, TokenBuffer& out) {
    text = python_rstrip(text);
    text_.clear();
    if (text.empty()) return;
    if (options_.case_sensitive) {
        text_.assign(text);
    } else {
        python_lower(text, text_);
    }
    if (options_.normalized) {
        normalize(text_);
        if (options_.asian_support)
            change(text_, changed_, [](std::uint32_t c, std::string_view bytes, std::string& to) {
                if (!is_asian_word(c) && !is_asian_punctuation(c) && !is_full_width_punctuation(c)) return false;
                to.append(" ").append(bytes).append(" ");
                return true;
            });
    }
    if (options_.no_punct)
        change(text_, changed_, [&](std::uint32_t c, std::string_view, std::string&) {
            if (c < 0x80) return is_removed(static_cast<char>(c));
            return options_.asian_support && (is_asian_punctuation(c) || is_full_width_punctuation(c));
        });
    whitespace_tokenize(text_, out);
}

}  // namespace mmeval
