// Scanner and spelling of the Penn Treebank tokenizer; the token rules are in ptb_rules.py, compiled to ptb_tables.h.
#include "ptb_tokenizer.h"

#include <algorithm>
#include <utility>

#include "ptb_tables.h"

namespace mmeval {
namespace {

using namespace ptb;

using Bytes = std::string_view;

// ---------------------------------------------------------------- characters

struct CodePoint {
    uint32_t value;  // kBad for a byte that starts no valid sequence
    uint32_t bytes;
};
constexpr uint32_t kBad = 0xffffffff;

bool is_tail(unsigned char b) { return (b & 0xc0) == 0x80; }

// The code point at s[i], i < s.size(); over-long forms, surrogates and stray bytes are bad, one byte at a time.
CodePoint decode(Bytes s, size_t i) {
    const auto at = [&](size_t k) { return static_cast<unsigned char>(s[i + k]); };
    const size_t left = s.size() - i;
    const unsigned char b = at(0);
    if (b < 0x80) return {b, 1};
    if (b >= 0xc2 && b < 0xe0 && left > 1 && is_tail(at(1))) return {(b & 0x1fu) << 6 | (at(1) & 0x3fu), 2};
    if (b >= 0xe0 && b < 0xf0 && left > 2 && is_tail(at(1)) && is_tail(at(2))) {
        const uint32_t c = (b & 0xfu) << 12 | (at(1) & 0x3fu) << 6 | (at(2) & 0x3fu);
        if (c >= 0x800 && (c < 0xd800 || c > 0xdfff)) return {c, 3};
    }
    if (b >= 0xf0 && b < 0xf5 && left > 3 && is_tail(at(1)) && is_tail(at(2)) && is_tail(at(3))) {
        const uint32_t c =
            (b & 7u) << 18 | (at(1) & 0x3fu) << 12 | (at(2) & 0x3fu) << 6 | (at(3) & 0x3fu);
        if (c >= 0x10000 && c <= 0x10ffff) return {c, 4};
    }
    return {kBad, 1};
}

void encode(uint32_t c, std::string& out) {
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xc0 | c >> 6);
        out += static_cast<char>(0x80 | (c & 0x3f));
    } else {
        out += static_cast<char>(0xe0 | c >> 12);
        out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
        out += static_cast<char>(0x80 | (c & 0x3f));
    }
}

int class_of(uint32_t c) {
    return c < 0x10000 ? kClassPage[kClassIndex[c >> 8] * 256 + (c & 255)] : kJunkClass;
}

uint32_t lower_of(uint32_t c) {
    return c < 0x10000 ? (c + kLowerPage[kLowerIndex[c >> 8] * 256 + (c & 255)]) & 0xffff : c;
}

// Start of the code point that ends at s[end - 1].
size_t step_back(Bytes s, size_t end) {
    size_t i = end - 1;
    while (i > 0 && end - i < 4 && is_tail(static_cast<unsigned char>(s[i]))) --i;
    return i;
}

bool is_ascii_letter(char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }

// ---------------------------------------------------------------- lower case

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

// Does this character belong to the same word as the letters around it (letters, digits, _ and marks do)?
bool joins_word(uint32_t c) {
    if (c < 0x80) return is_ascii_letter(static_cast<char>(c)) || (c >= '0' && c <= '9') || c == '_';
    const int cls = class_of(c);  // compared with those of a letter, a capital, a mark and a digit
    return c == 0xad || cls == class_of(0xe9) || cls == class_of(0xc9) || cls == class_of(0x300) || cls == class_of(0x663);
}
bool joins_letters(uint32_t c) { return c == '\'' || c == '-' || c == '.' || c == ':' || c == 0xb7 || c == 0x2010 || c == 0x2019; }

// A capital sigma is final when its word has a cased letter before it and none after it.
bool is_final_sigma(Bytes token, size_t at) {
    bool before = false;
    uint32_t right = 0;  // the character looked at last
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
        if (c.value == kBad || c.value >= 0x10000) {
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

void append_lower(Bytes token, std::string& out) {
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

// ---------------------------------------------------------------- matching

constexpr int kStride = 128;  // a power of two: the row of a state is found by a shift
static_assert(kClasses <= kStride, "rows are too short");

// next[state * kStride + class]; 0 = stop.  Unpacked once, on first use.
const uint16_t* transitions() {
    static const std::vector<uint16_t> table = [] {
        std::vector<uint16_t> next(static_cast<size_t>(kStates) * kStride, 0);
        const uint16_t* from = kPackedRows;
        for (int state = 0; state < kStates; ++state) {
            uint16_t* row = &next[static_cast<size_t>(state) * kStride];
            const int like = *from++;
            if (like < kStates) std::copy_n(&next[static_cast<size_t>(like) * kStride], kClasses, row);
            for (int left = *from++; left > 0; --left, from += 2) row[from[0]] = from[1];
        }
        return next;
    }();
    return table.data();
}

// Long looks ahead that came to nothing.  Some rules read far before they know (an e-mail address wants an @), and a
// text may make every token start such a search; a search that reaches a (place, state) known to fail stops there, so
// the whole text takes linear time.  Only places 32 bytes apart are kept, and only for looks of more than 32 bytes.
class FailedLooks {
public:
    static constexpr size_t kSpacing = 32;

    bool contains(size_t place, int state) const {
        if (slots_.empty()) return false;
        for (size_t i = slot(key(place, state));; i = (i + 1) & (slots_.size() - 1)) {
            if (slots_[i] == key(place, state)) return true;
            if (slots_[i] == 0) return false;
        }
    }

    void insert(size_t place, int state) {
        if (count_ * 2 >= slots_.size()) grow();
        put(key(place, state));
    }

private:
    static uint64_t key(size_t place, int state) {
        return static_cast<uint64_t>(place / kSpacing) * kStates + static_cast<uint64_t>(state) + 1;
    }
    size_t slot(uint64_t k) const { return static_cast<size_t>(k * 0x9e3779b97f4a7c15ull >> 20) & (slots_.size() - 1); }
    void put(uint64_t k) {
        size_t i = slot(k);
        while (slots_[i] != 0 && slots_[i] != k) i = (i + 1) & (slots_.size() - 1);
        if (slots_[i] == 0) ++count_;
        slots_[i] = k;
    }
    void grow() {
        std::vector<uint64_t> old(slots_.empty() ? 256 : slots_.size() * 2, 0);
        old.swap(slots_);
        count_ = 0;
        for (uint64_t k : old)
            if (k != 0) put(k);
    }

    std::vector<uint64_t> slots_;
    size_t count_ = 0;
};

struct Match {
    size_t end = 0;         // end of the longest match, looked-at text included; text.size() + 1 when beyond the text
    int state = 0;  // the state that ended it; 0 when nothing matched

    Action action() const { return static_cast<Action>(kAccept[state]); }
};

class Scanner {
public:
    Scanner(Bytes text, Bytes following) : text_(text), following_(following.substr(0, kPeek)), next_(transitions()) {}

    Match longest(size_t begin) {
        Match best;
        int state = kStart;
        size_t i = begin;
        const size_t soon = std::min(text_.size(), begin + FailedLooks::kSpacing);
        run(i, soon, state, best);
        if (state == 0) return best;
        if (i < text_.size()) return look_far(i, state, best);
        look_past_end(state, best);
        return best;
    }

private:
    static constexpr size_t kPeek = 64;  // the longest peek past the end is a blank and a word

    // Walks from i until `stop` is reached or the state is dead (0).
    void run(size_t& i, size_t stop, int& state, Match& best) const {
        while (i < stop) {
            const unsigned char b = static_cast<unsigned char>(text_[i]);
            int cls;
            if (b < 0x80) {
                cls = kClassPage[b];  // page 0 holds the first 256 code points
                ++i;
            } else {
                const CodePoint c = decode(text_, i);
                cls = class_of(c.value);
                i += c.bytes;
            }
            state = next_[state * kStride + cls];
            if (state == 0) return;
            if (state >= kFirstAccept) best = {i, state};
        }
    }

    Match look_far(size_t i, int state, Match best) {
        passed_.clear();
        while (i < text_.size()) {
            if (failed_.contains(i, state)) {
                state = 0;
                break;
            }
            const size_t matched = best.end;
            passed_.emplace_back(i, state);
            const size_t place = (i / FailedLooks::kSpacing + 1) * FailedLooks::kSpacing;
            run(i, std::min(place, text_.size()), state, best);
            if (best.end != matched) passed_.clear();
            if (state == 0) break;
        }
        const size_t matched = best.end;
        if (state != 0) look_past_end(state, best);
        if (best.end == matched)
            for (const auto& p : passed_) failed_.insert(p.first, p.second);
        return best;
    }

    // The line break after the text and the caption after that can only serve as looked-at text.
    void look_past_end(int state, Match& best) const {
        state = next_[state * kStride + kEolClass];
        if (state == 0) return;
        if (state >= kFirstAccept) best = {text_.size() + 1, state};
        for (size_t i = 0; i <= following_.size();) {
            CodePoint c{0, 1};
            if (i < following_.size()) c = decode(following_, i);
            state = next_[state * kStride + (i < following_.size() ? class_of(c.value) : kEolClass)];
            if (state == 0) return;
            if (state >= kFirstAccept) best = {text_.size() + 1, state};
            i += c.bytes;
        }
    }

    Bytes text_;
    Bytes following_;
    const uint16_t* next_;
    FailedLooks failed_;
    std::vector<std::pair<size_t, int>> passed_;  // places since the last match of the look under way
};

// ---------------------------------------------------------------- spelling

// Tokens that coco-caption throws away (its upper-case bracket names never occur after lower-casing).
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
    Tokenizer(Bytes text, Bytes following, bool keep_all, TokenBuffer& out)
        : text_(text), scanner_(text, following), keep_all_(keep_all), out_(out) {}

    void run() {
        for (size_t i = 0; i < text_.size();) i = step(i);
    }

    // Reads one match, or the blanks, at i and says where to go on.
    size_t step(size_t i) {
        if (text_[i] == ' ') return skip_blanks(i);
        const size_t end = plain_word_end(i);
        if (end != i) return plain(i, end);
        const Match m = scanner_.longest(i);
        return m.state == 0 ? i + decode(text_, i).bytes : spell(i, m);
    }

private:
    // End of an ordinary word that starts at i, or i.  A run of ASCII letters before a blank or the end is a token by
    // every rule but one (can|not), so most of a caption needs no tables.
    size_t plain_word_end(size_t i) const {
        size_t end = i;
        while (end < text_.size() && is_ascii_letter(text_[end])) ++end;
        if (end < text_.size() && text_[end] != ' ') return i;
        return (end - i == 5 || end - i == 6) && may_split(text_[end - 1]) ? i : end;
    }
    static bool may_split(char last) { return (last | 0x20) == 'a' || (last | 0x20) == 'e' || (last | 0x20) == 't'; }

    // Blanks go in one piece, so that a wide blank after a blank cannot start a web address.
    size_t skip_blanks(size_t i) const {
        while (i < text_.size()) {
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

    // Writes the token or tokens of a match that starts at b and says where to go on.
    size_t spell(size_t b, const Match& m) {
        const size_t e = m.end;
        switch (m.action()) {
            case kPlain: return plain(b, e);
            case kWord: return word(b, e);
            case kSkip: return e;
            // two tokens in one word: can|not
            case kSplit3: plain(b, b + 3); return plain(b + 3, e);
            // words cut before a contraction
            case kBeforeNt: return word(b, before_apostrophe(e - 1) - 1);
            case kBeforeAux: return word(b, before_aux(b, e));
            case kAux: return aux(b, e);
            case kAuxLook: return aux(b, before_last(e));
            case kLook1: return plain(b, before_last(e));
            case kLook2: return plain(b, step_back(text_, before_last(e)));
            case kYallLook: return plain(b, before_last(e));
            case kTwasLook: return plain(b, b + 2);
            // abbreviations; the looked-at text starts at the first blank
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
            // quotes; an entity is six bytes long, its sign one
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
        if (!keep_all_ && is_punctuation(Bytes(out_.bytes).substr(begin))) {
            out_.bytes.resize(begin);
        } else {
            out_.ends.push_back(static_cast<uint32_t>(out_.bytes.size()));
        }
    }

    void fixed(Bytes spelling) {
        if (!keep_all_ && is_punctuation(spelling)) return;
        out_.bytes.append(spelling);
        finish();
    }

    size_t plain(size_t b, size_t e) {
        append_lower(cut(b, e), out_.bytes);
        finish();
        return e;
    }

    // Words lose their soft hyphens; of soft hyphens alone one "-" is left.
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

    // AT&amp;T is spelt at&t.
    size_t caps(size_t b, size_t e) {
        const Bytes entity = "&amp;";
        if (cut(b, e).find(entity) == Bytes::npos) return word(b, e);
        std::string bare(cut(b, e));
        for (size_t i = 0; (i = bare.find(entity, i)) != std::string::npos; ++i) bare.replace(i, entity.size(), "&");
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
            if (c.value >= 0x80 && c.value != kBad) {
                append_quote(c.value);
            } else {
                append_lower(cut(i, i + c.bytes), out_.bytes);
            }
            i += c.bytes;
        }
        finish();
        return e;
    }

    // Blanks inside one token are no-break spaces, brackets have names.
    size_t rewritten(size_t b, size_t e, bool brackets) {
        std::string copy;
        for (const char c : cut(b, e)) {
            if (c == ' ' || (c >= '\n' && c <= '\r')) {
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

    // End of a match without its last character, which may be the line break after the text.
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
    Scanner scanner_;
    bool keep_all_;
    TokenBuffer& out_;
};

void tokenize(Bytes text, Bytes following, bool keep_all, TokenBuffer& out) {
    out.clear();
    out.bytes.reserve(text.size());
    Tokenizer(text, following, keep_all, out).run();
}

}  // namespace

void ptb_tokenize(std::string_view text, TokenBuffer& out) { tokenize(text, {}, false, out); }
void ptb_tokenize_raw(std::string_view text, TokenBuffer& out) { tokenize(text, {}, true, out); }
void ptb_tokenize(std::string_view text, std::string_view following, TokenBuffer& out) {
    tokenize(text, following, false, out);
}
void ptb_tokenize_raw(std::string_view text, std::string_view following, TokenBuffer& out) {
    tokenize(text, following, true, out);
}

void PtbNumberer::number(std::string_view text, std::vector<std::uint32_t>& ids) {
    buffer_.clear();
    Tokenizer tokenizer(text, {}, false, buffer_);
    for (size_t i = 0; i < text.size();) {
        uint64_t letters = 0;
        size_t end = i;
        for (; end < text.size() && end - i < 8 && is_ascii_letter(text[end]); ++end)
            letters = letters << 8 | static_cast<unsigned char>(text[end]);
        const bool is_plain = end > i && end < text.size() && text[end] == ' ';
        Word& place = known_[(letters * 0x9e3779b97f4a7c15ull) >> 51];
        if (is_plain && place.letters == letters) {
            ids.push_back(place.id);
            i = end + 1;
            continue;
        }
        const size_t next = tokenizer.step(i);
        const size_t found = buffer_.size();
        for (size_t k = 0; k < found; ++k) ids.push_back(vocabulary_.add(buffer_[k]));
        if (is_plain && next == end && found == 1) place = {letters, ids.back()};
        buffer_.clear();
        i = next;
    }
}

}  // namespace mmeval
