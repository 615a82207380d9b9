// Writes the tokens of the Penn Treebank rules. The rules are in ptb_rules, the matching is in ptb_scanner.h.
#include "ptb_tokenizer.h"

#include <cstring>

#include "bits.h"
#include "ptb_lower.h"
#include "ptb_scanner.h"
#include "utf8.h"

namespace mmeval {
namespace {

using namespace ptb;
using Bytes = std::string_view;

// The number of ASCII letters at the start of s; eight bytes at a time if the machine's byte order allows it.
size_t letters_at(Bytes s) {
    size_t n = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    constexpr uint64_t kOnes = 0x0101010101010101ull;
    for (; n + 8 <= s.size(); n += 8) {
        uint64_t word;
        std::memcpy(&word, s.data() + n, 8);
        // the top bit of a byte of `letters` is set for a letter: at least 'a', not above 'z', and ASCII
        const uint64_t low = (word | kOnes * 0x20) & kOnes * 0x7f;
        const uint64_t letters = (low + kOnes * (0x80 - 'a')) & ~(low + kOnes * (0x7f - 'z')) & ~word;
        const uint64_t others = ~letters & kOnes * 0x80;
        if (others != 0) return n + static_cast<size_t>(lowest_bit(others)) / 8;
    }
#endif
    while (n < s.size() && is_ascii_letter(s[n])) ++n;
    return n;
}

// Tokens that coco-caption drops (its upper-case bracket names never occur after lower-casing).
bool is_punctuation(Bytes t) {
    switch (t.size()) {
        case 1:
            switch (t[0]) {
                case '\'': case '`': case '.': case '?': case '!': case ',': case ':': case '-': case ';': return true;
                default: return false;
            }
        case 2: return t == "''" || t == "``" || t == "--";
        case 3: return t == "...";
        default: return false;
    }
}

class Tokenizer {
public:
    // `size` is the length of the caption. If the text is longer, the rest is the next lines of its file.
    Tokenizer(Bytes text, size_t size, TokenBuffer& out)
        : text_(text), size_(size), scanner_(text, text.size() > size), out_(out) {}

    void run() {
        for (size_t i = 0; i < size_;) i = step(i);
    }

    // Reads one match, or white space, at i. Returns the position after it.
    size_t step(size_t i) {
        if (text_[i] == ' ') return skip_blanks(i);
        const size_t end = plain_word_end(i);
        if (end != i) return letters(i, end);
        const Match m = scanner_.longest(i);
        return m.state == 0 ? i + decode(text_, i).bytes : spell(i, m);
    }

private:
    // The end of an ordinary word that starts at i, or i. A run of ASCII letters before a space or the end is a token
    // by every rule but one (can|not), so most of a caption needs no tables.
    size_t plain_word_end(size_t i) const {
        const size_t end = i + letters_at(text_.substr(i));
        if (end < size_ && text_[end] != ' ') return i;
        return may_split(cut(i, end)) ? i : end;
    }
    // Whether this could be cannot, gonna, gotta, gimme, lemme or wanna.
    static bool may_split(Bytes word) {
        if (word.size() != 5 && word.size() != 6) return false;
        const char third = static_cast<char>(word[2] | 0x20), fourth = static_cast<char>(word[3] | 0x20);
        return third == fourth && (third == 'n' || third == 't' || third == 'm');
    }

    // White space is skipped as a whole, so that a wide space after a space cannot start a web address.
    size_t skip_blanks(size_t i) const {
        while (i < size_) {
            if (text_[i] == ' ') {
                ++i;
                continue;
            }
            const CodePoint c = decode(text_, i);
            const bool blank = (c.value >= 9 && c.value <= 13) || c.value == 0x85 || c.value == 0xa0 ||
                               (c.value >= 0x2000 && c.value <= 0x200a) || c.value == 0x2028 || c.value == 0x2029 ||
                               c.value == 0x3000;
            if (!blank) break;
            i += c.bytes;
        }
        return i;
    }

    // Writes the token or tokens of a match that starts at b. Returns the position after it.
    size_t spell(size_t b, const Match& m) {
        const size_t e = m.end;
        switch (m.action()) {
            case kPlain: return plain(b, e);
            case kWord: return word(b, e);
            case kSkip: return e;
            // two tokens in one word: can|not
            case kSplit3: plain(b, b + 3); return plain(b + 3, e);
            // words split before a contraction
            case kBeforeNt: return word(b, before_apostrophe(e - 1) - 1);
            case kBeforeAux: return word(b, before_aux(b, e));
            case kAux: return aux(b, e);
            case kAuxLook: return aux(b, before_last(e));
            case kLook1: return plain(b, before_last(e));
            case kLook2: return plain(b, step_back(text_, before_last(e)));
            case kYallLook: return plain(b, before_last(e));
            case kTwasLook: return plain(b, b + 2);
            // abbreviations; the lookahead starts at the first space
            case kTwoDots: {
                const size_t end = abbreviation_end(b);
                plain(b, end);
                fixed(".");
                return end;
            }
            case kLetter: return plain(b, b + 1);
            case kNumbered: return plain(b, text_.find('.', b) + 1);
            case kLookByte: return caps(b, e - 1);
            case kCaps: return caps(b, e);
            case kTag: return rewritten(b, e, false);
            case kSpaced: return rewritten(b, e, true);
            case kFace: return rewritten(b, e, true);
            case kFaceLook: return rewritten(b, before_last(e), true);
            // quotes; an entity is six bytes long, its character one
            case kOpen2: fixed("``"); return text_[b] == '&' ? b + 6 : b + 1;
            case kClose2: fixed("''"); return e;
            case kOpen1: fixed("`"); return b + 1;
            case kClose1: fixed("'"); return e;
            case kQuotes: return quotes(b, e);
            // fixed spellings
            case kLess: fixed("<"); return e;
            case kGreater: fixed(">"); return e;
            case kAmpersand: fixed("&"); return e;
            case kDash: fixed("--"); return e;
            case kEllipsis: fixed("..."); return e;
            case kQuarter: fixed("1/4"); return e;
            case kHalf: fixed("1/2"); return e;
            case kThreeQuarters: fixed("3/4"); return e;
            case kThird: fixed("1/3"); return e;
            case kTwoThirds: fixed("2/3"); return e;
            case kDollar: fixed("$"); return e;
            case kPound: fixed("#"); return e;
            case kCents: fixed("cents"); return e;
            case kLrb: fixed("-lrb-"); return e;
            case kRrb: fixed("-rrb-"); return e;
            case kLsb: fixed("-lsb-"); return e;
            case kRsb: fixed("-rsb-"); return e;
            case kLcb: fixed("-lcb-"); return e;
            case kRcb: fixed("-rcb-"); return e;
            default: return e;
        }
    }

    Bytes cut(size_t b, size_t e) const { return text_.substr(b, e - b); }

    void finish() {
        const size_t begin = out_.ends.empty() ? 0 : out_.ends.back();
        if (is_punctuation(Bytes(out_.bytes).substr(begin))) {
            out_.bytes.resize(begin);
        } else {
            out_.ends.push_back(static_cast<uint32_t>(out_.bytes.size()));
        }
    }

    void fixed(Bytes spelling) {
        if (is_punctuation(spelling)) return;
        out_.bytes.append(spelling);
        finish();
    }

    // A token of ASCII letters only, which one bit makes lower case.
    size_t letters(size_t b, size_t e) {
        const size_t old = out_.bytes.size();
        out_.bytes.append(text_, b, e - b);
        char* to = &out_.bytes[old];
        for (size_t i = 0; i < e - b; ++i) to[i] = static_cast<char>(to[i] | 0x20);
        out_.ends.push_back(static_cast<uint32_t>(out_.bytes.size()));
        return e;
    }

    size_t plain(size_t b, size_t e) {
        append_lower(cut(b, e), out_.bytes);
        finish();
        return e;
    }

    // Words lose their soft hyphens. A word of soft hyphens only becomes "-".
    size_t word(size_t b, size_t e) {
        const Bytes token = cut(b, e);
        if (token.find('\xc2') == Bytes::npos) return plain(b, e);
        std::string bare;
        for (size_t i = 0; i < token.size(); ++i) {
            if (token[i] == '\xc2' && i + 1 < token.size() && token[i + 1] == '\xad') {
                ++i;
            } else {
                bare += token[i];
            }
        }
        if (bare.empty()) bare = "-";
        append_lower(bare, out_.bytes);
        finish();
        return e;
    }

    // AT&amp;T is written at&t.
    size_t caps(size_t b, size_t e) {
        const Bytes entity = "&amp;";
        if (cut(b, e).find(entity) == Bytes::npos) return word(b, e);
        std::string bare;
        for (size_t i = b; i < e; ++i) {
            bare += text_[i];
            if (text_.compare(i, entity.size(), entity) == 0) i += entity.size() - 1;
        }
        append_lower(bare, out_.bytes);
        finish();
        return e;
    }

    // Curly apostrophes of 's and n't become straight ones.
    size_t aux(size_t b, size_t e) {
        for (size_t i = b; i < e;) {
            if (cut(i, e).substr(0, 6) == "&apos;") {
                out_.bytes += '\'';
                i += 6;
                continue;
            }
            const CodePoint c = decode(text_, i);
            if (c.value >= 0x80 && c.value != kBadByte) {
                append_quote(c.value);
            } else {
                append_lower(cut(i, i + c.bytes), out_.bytes);
            }
            i += c.bytes;
        }
        finish();
        return e;
    }

    // Spaces inside a token become no-break spaces, brackets become their names.
    size_t rewritten(size_t b, size_t e, bool brackets) {
        std::string copy;
        for (size_t i = b; i < e; ++i) {
            const char c = text_[i];
            const size_t wide = line_break_at(i);
            if (wide > 0) {
                copy += "\xc2\xa0";
                i += wide - 1;
            } else if (c == ' ' || (c >= '\n' && c <= '\r')) {
                copy += "\xc2\xa0";
            } else if (brackets && c == '(') {
                copy += "-lrb-";
            } else if (brackets && c == ')') {
                copy += "-rrb-";
            } else {
                copy += c;
            }
        }
        append_lower(copy, out_.bytes);
        finish();
        return e;
    }

    // The length of a next line, line or paragraph separator (U+0085, U+2028, U+2029) at i, which count as spaces; or
    // 0.
    size_t line_break_at(size_t i) const {
        const CodePoint c = decode(text_, i);
        return c.value == 0x85 || c.value == 0x2028 || c.value == 0x2029 ? c.bytes : 0;
    }

    void append_quote(uint32_t c) {
        switch (c) {
            case 0x93: case 0xab: case 0x201c: out_.bytes += "``"; break;
            case 0x94: case 0xbb: case 0x201d: out_.bytes += "''"; break;
            case 0x91: case 0x2018: case 0x201b: case 0x2039: out_.bytes += '`'; break;
            case 0x92: case 0x2019: case 0x203a: out_.bytes += '\''; break;
            default: encode(c, out_.bytes);
        }
    }

    size_t quotes(size_t b, size_t e) {
        for (size_t i = b; i < e;) {
            const CodePoint c = decode(text_, i);
            append_quote(c.value);
            i += c.bytes;
        }
        finish();
        return e;
    }

    // The end of a match without its last character, which may be the line break after the text.
    size_t before_last(size_t e) const { return e > text_.size() ? text_.size() : step_back(text_, e); }

    // Start of the apostrophe (one character or an entity) that ends before `e`.
    size_t before_apostrophe(size_t e) const { return text_[e - 1] == ';' ? e - 6 : step_back(text_, e); }

    size_t before_aux(size_t b, size_t e) const {
        size_t i = e;
        while (i > b && is_ascii_letter(text_[i - 1])) --i;
        return before_apostrophe(i);
    }

    size_t abbreviation_end(size_t b) const {
        size_t i = b;
        while (i < text_.size() && (is_ascii_letter(text_[i]) || text_[i] == '.')) ++i;
        return i;
    }

    Bytes text_;
    size_t size_;
    Scanner scanner_;
    TokenBuffer& out_;
};

}  // namespace

void ptb_tokenize(std::string_view text, TokenBuffer& out) { ptb_tokenize(text, text.size(), out); }

void ptb_tokenize(std::string_view text, std::size_t size, TokenBuffer& out) {
    out.clear();
    out.bytes.reserve(size);
    Tokenizer(text, size, out).run();
}

void PtbNumberer::number(std::string_view text, std::size_t size, std::vector<std::uint32_t>& ids) {
    buffer_.clear();
    Tokenizer tokenizer(text, size, buffer_);
    for (size_t i = 0; i < size;) {
        uint64_t letters = 0;
        size_t end = i;
        for (; end < size && end - i < 8 && is_ascii_letter(text[end]); ++end)
            letters = letters << 8 | static_cast<unsigned char>(text[end]);
        const bool is_plain = end > i && end < size && text[end] == ' ';
        Word& place = known_[(letters * 0x9e3779b97f4a7c15ull) >> 51];
        if (is_plain && place.letters == letters) {
            ids.push_back(place.id);
            const bool one_blank = end + 1 < size && text[end + 1] > ' ';  // not the first of several
            i = one_blank ? end + 1 : end;
            continue;
        }
        const size_t next = tokenizer.step(i);
        for (size_t k = 0; k < buffer_.size(); ++k) ids.push_back(vocabulary_.add(buffer_[k]));
        if (is_plain && next == end && buffer_.size() == 1) place = {letters, ids.back()};
        buffer_.clear();
        i = next;
    }
}

}  // namespace mmeval
