#include "tokenizers.h"

#include "ptb_tokenizer.h"
#include "python_text.h"
#include "unicode_lookup.h"
#include "utf8.h"

namespace mmeval {
namespace {

bool is_ascii_word(char32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || (code >= '0' && code <= '9');
}

char32_t lower(char32_t code) {
    if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
    return lower_case(code);
}

// Characters that mteval-v13a always separates: ASCII punctuation except ' , - and .
bool is_separated(char c) {
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
           (c >= ':' && c <= '@') || c == '/';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// One left-to-right pass over pairs of neighbours: if `fits(a, b)`, writes a and b with the requested spaces and
// continues after the pair, like a regular expression's substitution.
template <typename Fits>
std::string pass(const std::string& text, Fits fits, bool space_before, bool space_between, bool space_behind) {
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    std::size_t i = 0;
    while (i < text.size()) {
        if (i + 1 < text.size() && fits(text[i], text[i + 1])) {
            if (space_before) out += ' ';
            out += text[i];
            if (space_between) out += ' ';
            out += text[i + 1];
            if (space_behind) out += ' ';
            i += 2;
        } else {
            out += text[i++];
        }
    }
    return out;
}

}  // namespace

std::string replaced(const std::string& text, std::string_view old, std::string_view fresh) {
    if (text.find(old) == std::string::npos) return text;
    std::string out;
    std::size_t from = 0;
    for (std::size_t at; (at = text.find(old, from)) != std::string::npos; from = at + old.size()) {
        out.append(text, from, at - from);
        out.append(fresh);
    }
    out.append(text, from, std::string::npos);
    return out;
}

std::string surround_separators(const std::string& text) {
    std::string apart;
    apart.reserve(text.size() + text.size() / 4);
    for (const char c : text) {
        if (is_separated(c)) {
            apart += ' ';
            apart += c;
            apart += ' ';
        } else {
            apart += c;
        }
    }
    return apart;
}

std::string separate_points_and_dashes(const std::string& text) {
    std::string apart = pass(text, [](char a, char b) { return !is_digit(a) && is_point(b); }, false, true, true);
    apart = pass(apart, [](char a, char b) { return is_point(a) && !is_digit(b); }, true, true, false);
    return pass(apart, [](char a, char b) { return is_digit(a) && b == '-'; }, false, true, true);
}

void whitespace_tokenize(std::string_view text, TokenBuffer& out) {
    std::size_t begin = 0, at = 0;
    while (at < text.size()) {
        const std::size_t here = at;
        const CodePoint c = decode(text, at);
        at += c.bytes;
        if (!is_python_space(c.value)) continue;
        if (here > begin) out.push(text.substr(begin, here - begin));
        begin = at;
    }
    if (at > begin) out.push(text.substr(begin, at - begin));
}

void mteval_tokenize(std::string_view text, TokenBuffer& out) {
    std::string line = replaced(std::string(text), "<skipped>", "");
    line = replaced(replaced(line, "-\n", ""), "\n", " ");
    if (line.find('&') != std::string::npos) {
        line = replaced(replaced(line, "&quot;", "\""), "&amp;", "&");
        line = replaced(replaced(line, "&lt;", "<"), "&gt;", ">");
    }
    whitespace_tokenize(separate_points_and_dashes(surround_separators(' ' + line + ' ')), out);
}

void unicode_tokenize(std::string_view text, TokenBuffer& out) {
    std::string word;
    const auto finish = [&] {
        if (!word.empty()) out.push(word);
        word.clear();
    };
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = decode(text, at);
        const char32_t code = c.value;
        at += c.bytes;
        if (code < 0x80 ? !is_ascii_word(code) : !is_in_ranges(kWordRanges, code)) {
            finish();
        } else if (code >= 0x80 && is_in_ranges(kIdeographRanges, code)) {
            finish();
            encode(code, word);
            finish();
        } else {
            encode(lower(code), word);
        }
    }
    finish();
}

void evalscope_tokenize(std::string_view text, TokenBuffer& out) {
    std::string plain;
    python_lower(text, plain);
    for (char& c : plain)
        if (c > ' ' && c < 0x7f && c != ':' && !is_ascii_word(c)) c = ' ';
    whitespace_tokenize(plain, out);
}

Tokenizer find_tokenizer(std::string_view name) {
    if (name == "ptb") return ptb_tokenize;
    if (name == "13a") return mteval_tokenize;
    if (name == "whitespace") return whitespace_tokenize;
    if (name == "unicode") return unicode_tokenize;
    if (name == "evalscope") return evalscope_tokenize;
    return nullptr;
}

}  // namespace mmeval
