// METEOR's normaliser is a chain of regular expressions. Each is one pass from left to right without overlapping
// matches: the characters of a match, including the space after a comma, are not context for the next one (a-b-c gives
// "a b-c"). The passes here do the same in the same order. Plain words skip them.
#include "meteor_normalizer.h"

#include <algorithm>
#include <iterator>

#include "unicode_lookup.h"
#include "utf8.h"

namespace mmeval {
namespace {

constexpr std::size_t kNone = std::string_view::npos;
constexpr char32_t kReplacement = 0xfffd;

bool is_digit(char32_t c) { return c - U'0' < 10; }
bool is_plain(char c) { return is_ascii_letter(c) || is_digit(static_cast<unsigned char>(c)); }
// Words are split at these. The vertical tab neither splits words nor is set apart.
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'; }

// METEOR's letters. Letters of other scripts are set apart one by one, like punctuation.
bool is_letter(char32_t c) {
    if (c < 0x80) return is_ascii_letter(static_cast<char>(c));
    if (c < 0x180) return c >= 0xc0 && c != 0xd7 && c != 0xf7 && c != 0x17f;
    return (c >= 0x400 && c <= 0x527) || (c >= 0x1d00 && c <= 0x1d7f) || (c >= 0xa640 && c <= 0xa66e) ||
           (c >= 0xa67e && c <= 0xa697);
}
bool is_word(char32_t c) { return is_letter(c) || is_digit(c); }

// Set apart like punctuation, so that the full stop of "end.<no-break space>b" is split off, and removed later.
bool is_wide_blank(char32_t c) {
    return c >= 0xa0 && (c == 0xa0 || (c >= 0x2000 && c <= 0x200a) || c == 0x202f || c == 0x205f || c == 0x3000);
}

// How many of the bytes at s[i], which start no valid code point, Java replaces by one U+FFFD: a possible prefix of a
// code point, or a whole surrogate.
std::size_t bad_length(std::string_view s, std::size_t i) {
    const auto tail = [&](std::size_t k) { return i + k < s.size() && is_tail(static_cast<unsigned char>(s[i + k])); };
    const unsigned char lead = static_cast<unsigned char>(s[i]);
    if (lead < 0xe0 || lead > 0xf4 || !tail(1)) return 1;
    const unsigned char second = static_cast<unsigned char>(s[i + 1]);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) return 1;
    return tail(2) ? 3 : 2;
}

// Java's lower case of a character. A sigma is always a separate token here, so it is never a final sigma.
void append_lower(char32_t c, std::string& out) {
    if (c < 0x80) {
        out += static_cast<char>(c - U'A' < 26 ? c | 0x20 : c);
    } else if (c == 0x130) {
        out += "i\xcc\x87";
    } else {
        encode(lower_case(c), out);
    }
}

// A piece of text that goes through the passes.
struct Passes {
    std::u32string text, spare;
    bool commas = false, apostrophes = false, hyphens = false;

    void run(std::string_view source, bool english) {
        read(source);
        if (commas) part_commas();
        if (hyphens) join_dashes();
        if (apostrophes) english ? part_apostrophes() : set_apostrophes_apart();
        if (hyphens) part(U'-', U" ", [](char32_t c) { return c == U'.' || is_word(c); }, is_word);
    }

private:
    void set_apart(char32_t c) {
        text += U' ';
        text += c;
        text += U' ';
    }

    // Decodes, sets punctuation apart, keeps runs of full stops together and unifies quotes and dashes.
    void read(std::string_view source) {
        text.assign(1, U' ');
        commas = apostrophes = hyphens = false;
        bool open = false;  // the previous character is an apostrophe that may be the first half of a double quote
        for (std::size_t i = 0; i < source.size();) {
            CodePoint c = decode(source, i);
            if (c.value == kBadByte) c = {kReplacement, static_cast<std::uint32_t>(bad_length(source, i))};
            if (c.value == '.') {
                i = read_stops(source, i);
                open = false;
                continue;
            }
            i += c.bytes;
            const bool quote = c.value == '\'' || c.value == '`' || c.value == 0x2018 || c.value == 0x2019;
            if (quote && !open) {
                text += U'\'';
                apostrophes = open = true;
                continue;
            }
            open = false;
            if (quote) {
                text.pop_back();
                set_apart(U'"');
            } else {
                read_other(c.value);
            }
        }
        text += U' ';
    }

    std::size_t read_stops(std::string_view source, std::size_t begin) {
        const std::size_t end = std::min(source.find_first_not_of('.', begin), source.size());
        if (end - begin == 1) {
            text += U'.';
        } else {
            text += U' ';
            text.append(end - begin, U'.');
            text += U' ';
        }
        return end;
    }

    void read_other(char32_t c) {
        if (is_word(c) || c == U'\v') {
            text += c;
        } else if (c < 0x80 && is_blank(static_cast<char>(c))) {
            text += U' ';
        } else if (c == U',') {
            text += c;
            commas = true;
        } else if (c == U'-') {
            text += c;
            hyphens = true;
        } else if (c == 0x2013) {
            set_apart(U'-');
        } else {
            set_apart(c == 0x201c || c == 0x201d ? U'"' : c);
        }
    }

    // Replaces each `mark` between a `left` and a `right` character by `by`. The match consumes both neighbours.
    template <typename Left, typename Right>
    void part(char32_t mark, std::u32string_view by, Left left, Right right) {
        std::size_t done = 0;
        spare.clear();
        for (std::size_t at = text.find(mark, 1); at != kNone && at + 1 < text.size(); at = text.find(mark, at + 1)) {
            if (at <= done || !left(text[at - 1]) || !right(text[at + 1])) continue;
            spare.append(text, done, at - done);
            spare += by;
            spare += text[at + 1];
            done = at + 2;
        }
        if (done == 0) return;
        spare.append(text, done, kNone);
        text.swap(spare);
    }

    void part_commas() {
        const auto other = [](char32_t c) { return !is_digit(c); };
        part(U',', U" , ", other, other);
        part(U',', U" , ", is_digit, other);
        part(U',', U" , ", other, is_digit);
    }

    void join_dashes() {
        std::size_t to = 0;
        for (std::size_t from = 0; from < text.size(); ++from) {
            const char32_t c = text[from];
            if (c == U'-' && from + 1 < text.size() && text[from + 1] == U'-') ++from;
            text[to++] = c;
        }
        text.resize(to);
    }

    void set_apostrophes_apart() {
        spare.swap(text);
        text.clear();
        for (const char32_t c : spare) {
            if (c == U'\'') {
                set_apart(c);
            } else {
                text += c;
            }
        }
    }

    void part_apostrophes() {
        const auto other = [](char32_t c) { return !is_letter(c); };
        part(U'\'', U" ' ", other, other);
        part(U'\'', U" ' ", [](char32_t c) { return !is_word(c); }, is_letter);
        part(U'\'', U" ' ", is_letter, other);
        part(U'\'', U" '", is_letter, is_letter);
        part(U'\'', U" '", is_digit, [](char32_t c) { return c == U's'; });
    }
};

// METEOR trims control characters and spaces (everything up to U+0020) twice: after reading a text, and again after
// normalising it, when wide spaces at the ends are removed.
std::string_view trimmed(std::string_view text) {
    const auto solid = [](char c) { return static_cast<unsigned char>(c) > ' '; };
    const auto* begin = std::find_if(text.data(), text.data() + text.size(), solid);
    std::size_t size = static_cast<std::size_t>(text.data() + text.size() - begin);
    while (size > 0 && !solid(begin[size - 1])) --size;
    return {begin, size};
}

// Trims the start of the normalised text, whose first token is `first`. drop_trailing trims the end.
void push_word(std::u32string_view word, std::size_t first, TokenBuffer& out) {
    thread_local std::string token;
    token.clear();
    for (const char32_t c : word) {
        if (c <= U' ' && token.empty() && out.size() == first) continue;
        append_lower(c, token);
    }
    if (!token.empty()) out.push(token);
}

void drop_trailing(std::size_t first, TokenBuffer& out) {
    while (out.size() > first) {
        const std::size_t begin = out.size() > 1 ? out.ends[out.size() - 2] : 0;
        std::size_t end = out.ends.back();
        while (end > begin && static_cast<unsigned char>(out.bytes[end - 1]) <= ' ') --end;
        out.bytes.resize(end);
        out.ends.back() = static_cast<std::uint32_t>(end);
        if (end > begin) return;
        out.ends.pop_back();
    }
}

// For letters and digits only, which one bit makes lower case.
void push_plain(std::string_view word, TokenBuffer& out) {
    out.push(word);
    for (std::size_t i = out.bytes.size() - word.size(); i < out.bytes.size(); ++i) out.bytes[i] |= 0x20;
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
    while (at < text.size() && is_blank(text[at])) ++at;
    return at;
}

// The position of the next plain character after a space. No match extends past it, so the passes can stop there.
std::size_t find_break(std::string_view text, std::size_t at) {
    for (++at; at < text.size(); ++at)
        if (is_plain(text[at]) && is_blank(text[at - 1])) return at;
    return text.size();
}

char32_t char_at(std::string_view text, std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

}  // namespace

MeteorNormalizer::MeteorNormalizer(std::string_view prefixes, Apostrophes apostrophes) : apostrophes_(apostrophes) {
    constexpr std::string_view kBlanks = " \t\r";
    while (!prefixes.empty()) {
        const std::size_t end = std::min(prefixes.find('\n'), prefixes.size());
        std::string_view line = prefixes.substr(0, end);
        prefixes.remove_prefix(std::min(end + 1, prefixes.size()));
        const std::size_t note = line.find("#NUMERIC_ONLY#");
        if (note != kNone) line = line.substr(0, note);
        line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
        line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
        if (line.empty() || line[0] == '#') continue;
        prefixes_[std::string(line)] = note == kNone ? Stop::kStays : Stop::kStaysBeforeDigit;
        longest_prefix_ = std::max(longest_prefix_, line.size());
    }
}

// Whether a word keeps its full stop, given the first character of the next word.
bool MeteorNormalizer::keeps_stop(std::string_view word, char32_t next) const {
    if (next >= U'a' && next <= U'z') return true;
    if (word.size() > longest_prefix_) return false;
    const auto prefix = prefixes_.find(std::string(word));
    return prefix != prefixes_.end() && (prefix->second == Stop::kStays || is_digit(next));
}

// Takes a word of ASCII letters and digits, a single mark, or such a word followed by a comma or full stop, then a
// space and a plain word. Returns the position after it, or `begin` if the text needs the passes.
std::size_t MeteorNormalizer::take_plain(std::string_view text, std::size_t begin, TokenBuffer& out) const {
    std::size_t end = begin;
    while (end < text.size() && is_plain(text[end])) ++end;
    const std::string_view word = text.substr(begin, end - begin);
    if (end == text.size() || is_blank(text[end])) {
        push_plain(word, out);
        return end;
    }
    const char mark = text[end];
    if ((mark != '.' && mark != ',') || (end + 1 < text.size() && !is_blank(text[end + 1]))) return begin;
    const std::size_t next = skip_blanks(text, end + 1);
    if (next < text.size() && !is_plain(text[next])) return begin;
    if (!word.empty()) push_plain(word, out);
    if (mark == '.' && !word.empty() && keeps_stop(word, char_at(text, next))) {
        out.bytes += mark;
        ++out.ends.back();
    } else {
        out.push(std::string_view(&mark, 1));
    }
    return next;
}

// Splits full stops off the words after all passes, and lower-cases them. `next` is the character after them.
void MeteorNormalizer::take_words(std::u32string_view words, char32_t next, std::size_t first, TokenBuffer& out) const {
    thread_local std::string name;
    std::u32string undotted;
    std::size_t begin = words.find_first_not_of(U' ');
    while (begin != kNone) {
        const std::size_t end = std::min(words.find(U' ', begin), words.size());
        const std::size_t behind = words.find_first_not_of(U' ', end);
        std::u32string_view word = words.substr(begin, end - begin);
        begin = behind;
        if (word.back() != U'.' || word.find_first_not_of(U'.') == kNone) {
            if (!is_wide_blank(word[0])) push_word(word, first, out);
            continue;
        }
        const std::u32string_view stem = word.substr(0, word.size() - 1);
        if (stem.find(U'.') != kNone && std::any_of(stem.begin(), stem.end(), is_letter)) {  // an abbreviation
            undotted.assign(stem);
            undotted.erase(std::remove(undotted.begin(), undotted.end(), U'.'), undotted.end());
            push_word(undotted, first, out);
            continue;
        }
        name.clear();
        for (const char32_t c : stem) encode(c, name);
        if (keeps_stop(name, behind == kNone ? next : words[behind])) {
            push_word(word, first, out);
        } else {
            push_word(stem, first, out);
            push_word(U".", first, out);
        }
    }
}

void MeteorNormalizer::tokenize(std::string_view text, TokenBuffer& out) const {
    thread_local Passes passes;
    const std::size_t first = out.size();
    text = trimmed(text);
    for (std::size_t at = 0; at < text.size(); at = skip_blanks(text, at)) {
        const std::size_t behind = take_plain(text, at, out);
        if (behind > at) {
            at = behind;
            continue;
        }
        const std::size_t end = find_break(text, at);
        passes.run(text.substr(at, end - at), apostrophes_ == Apostrophes::kEnglish);
        take_words(passes.text, char_at(text, end), first, out);
        at = end;
    }
    drop_trailing(first, out);
}

}  // namespace mmeval
