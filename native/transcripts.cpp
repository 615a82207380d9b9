#include "transcripts.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "bits.h"
#include "utf8.h"

namespace mmeval {
namespace {

constexpr std::uint32_t kNoNumber = 0xffffffff;

char32_t code_at(std::string_view text, std::size_t& i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
        ++i;
        return first;
    }
    const CodePoint point = decode(text, i);
    i += point.bytes;
    return point.value == kBadByte ? U'\ufffd' : point.value;
}

void decode_all(std::string_view text, std::u32string& out) {
    out.clear();
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) out.push_back(code_at(text, i));
}

constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15u;
constexpr std::size_t kPadding = 8;  // bytes after the texts, so that eight bytes can be read anywhere

std::uint64_t eight_bytes(const char* text) {
    std::uint64_t bytes;
    std::memcpy(&bytes, text, sizeof bytes);
    return bytes;
}

// A word, which is not empty. Up to eight bytes it is its own key; that of a longer word is a hash of it.
struct Word {
    std::string_view text;
    std::uint64_t key = 0;

    Word() = default;
    explicit Word(std::string_view word) : text(word) {
        const std::size_t size = word.size();
        if (size <= 8) {
            key = eight_bytes(word.data());
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            key <<= 64 - 8 * size;
#else
            key = 0;
            std::memcpy(&key, word.data(), size);
#endif
            return;
        }
        key = eight_bytes(word.data() + size - 8);
        for (std::size_t i = 0; i + 8 < size; i += 8) {
            key = (key ^ eight_bytes(word.data() + i)) * kFactor;
            key ^= key >> 32;
        }
    }
    bool operator==(const Word& other) const {
        return key == other.key && text.size() == other.text.size() && (text.size() <= 8 || text == other.text);
    }
    std::uint64_t hash() const { return (key ^ key >> 32 ^ text.size()) * kFactor >> 32; }
};

struct Character {
    char32_t code = 0;
    bool operator==(const Character& other) const { return code == other.code; }
    std::uint64_t hash() const { return code * kFactor >> 32; }
};

// A text as numbers: equal units have equal numbers, and those of the reference are 0, 1, 2, …
template <typename Unit>
class UnitNumbers {
public:
    void start(std::size_t units) {
        std::size_t slots = 64;
        while (slots < 2 * units) slots *= 2;
        if (slots > slots_.size()) slots_.assign(slots, {});
        mask_ = slots - 1;
        if (++round_ == 0) {
            std::fill(slots_.begin(), slots_.end(), Slot{});
            round_ = 1;
        }
        count_ = 0;
    }
    std::uint32_t add(const Unit& unit) {
        Slot& slot = find(unit);
        if (slot.round != round_) slot = {unit, round_, count_++};
        return slot.number;
    }
    std::uint32_t look_up(const Unit& unit) {
        const Slot& slot = find(unit);
        return slot.round == round_ ? slot.number : kNoNumber;
    }
    std::uint32_t count() const { return count_; }

private:
    struct Slot {
        Unit unit;
        std::uint32_t round = 0, number = 0;
    };

    Slot& find(const Unit& unit) {
        std::size_t at = unit.hash() & mask_;
        while (slots_[at].round == round_ && !(slots_[at].unit == unit)) at = (at + 1) & mask_;
        return slots_[at];
    }

    std::vector<Slot> slots_;
    std::size_t mask_ = 0;
    std::uint32_t round_ = 0, count_ = 0;
};

// The first of eight bytes whose highest bit is set. A borrow may set those of later bytes.
std::size_t first_marked(std::uint64_t marks) {
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return static_cast<std::size_t>(lowest_bit(marks)) / 8;
#else
    char bytes[8];
    std::memcpy(bytes, &marks, sizeof bytes);
    std::size_t place = 0;
    while ((bytes[place] & 0x80) == 0) ++place;
    return place;
#endif
}

// The first byte at or after i that is not between ! and ~: white space, a control character or beyond ASCII.
std::size_t skip_plain(std::string_view text, std::size_t i) {
    constexpr std::uint64_t kOnes = 0x0101010101010101u, kHigh = 0x8080808080808080u;
    for (; i + 8 <= text.size(); i += 8) {
        const std::uint64_t bytes = eight_bytes(text.data() + i);
        const std::uint64_t others = (bytes | (bytes - 0x21 * kOnes)) & kHigh;
        if (others != 0) return i + first_marked(others);
    }
    while (i < text.size() && static_cast<unsigned char>(text[i] - 0x21) < 0x5f) ++i;
    return i;
}

// Words as jiwer splits them: at spaces and at runs of white space. A single tab or line break is part of a word.
class WordSplitter {
public:
    explicit WordSplitter(const SpokenCharacters& characters) : characters_(characters) {}

    void split(std::string_view text, std::vector<Word>& words) const {
        words.clear();
        std::size_t begin = 0, i = 0;
        while ((i = skip_plain(text, i)) < text.size()) {
            const std::size_t space = i;
            const std::size_t characters = skip_space(text, i);
            if (characters == 0) continue;  // a control character, or one beyond ASCII
            const bool is_edge = space == begin || i == text.size();
            if (characters > 1 || is_edge || text[space] == ' ') {
                if (space > begin) words.emplace_back(text.substr(begin, space - begin));
                begin = i;
            }
        }
        if (i > begin) words.emplace_back(text.substr(begin, i - begin));
    }

private:
    // The number of spaces at i, which moves behind them, or behind one other character.
    std::size_t skip_space(std::string_view text, std::size_t& i) const {
        std::size_t count = 0;
        while (i < text.size()) {
            if (count > 0 && static_cast<unsigned char>(text[i] - 0x21) < 0x5e) return count;
            std::size_t next = i;
            if (!characters_.is(code_at(text, next), SpokenCharacter::kSpace)) {
                if (count == 0) i = next;
                return count;
            }
            i = next;
            ++count;
        }
        return count;
    }

    const SpokenCharacters& characters_;
};

// Numbers the units of one row's texts.
class WordNumberer {
public:
    explicit WordNumberer(const SpokenCharacters& characters) : splitter_(characters) {}
    void read(std::string_view hypothesis) { splitter_.split(hypothesis, hypothesis_); }
    std::size_t number(std::string_view reference, std::vector<std::uint32_t>& left, std::vector<std::uint32_t>& right) {
        splitter_.split(reference, reference_);
        numbers_.start(reference_.size());
        for (const Word& word : reference_) left.push_back(numbers_.add(word));
        for (const Word& word : hypothesis_) right.push_back(numbers_.look_up(word));
        return numbers_.count();
    }

private:
    WordSplitter splitter_;
    std::vector<Word> hypothesis_, reference_;
    UnitNumbers<Word> numbers_;
};

class CharacterNumberer {
public:
    explicit CharacterNumberer(const SpokenCharacters& characters) : characters_(characters) {}
    void read(std::string_view hypothesis) { hypothesis_ = stripped(hypothesis); }
    std::size_t number(std::string_view text, std::vector<std::uint32_t>& left, std::vector<std::uint32_t>& right) {
        const std::string_view reference = stripped(text);
        numbers_.start(reference.size());
        std::fill(std::begin(ascii_), std::end(ascii_), kNoNumber);
        left.resize(reference.size());
        std::size_t size = 0;
        for (std::size_t i = 0; i < reference.size(); ++size) {
            const char32_t code = code_at(reference, i);
            std::uint32_t number = code < 128 ? ascii_[code] : kNoNumber;
            if (number == kNoNumber) number = numbers_.add({code});
            if (code < 128) ascii_[code] = number;
            left[size] = number;
        }
        left.resize(size);
        right.resize(hypothesis_.size());
        size = 0;
        for (std::size_t i = 0; i < hypothesis_.size(); ++size) {
            const char32_t code = code_at(hypothesis_, i);
            right[size] = code < 128 ? ascii_[code] : numbers_.look_up({code});
        }
        right.resize(size);
        return numbers_.count();
    }

private:
    std::string_view stripped(std::string_view text) const {
        const auto is_space = [&](char32_t code) { return characters_.is(code, SpokenCharacter::kSpace); };
        std::size_t begin = 0, end = text.size();
        for (std::size_t next = begin; begin < end && is_space(code_at(text, next));) begin = next;
        while (end > begin) {
            const std::size_t last = step_back(text, end);
            std::size_t next = last;
            if (!is_space(code_at(text, next))) break;
            end = last;
        }
        return text.substr(begin, end - begin);
    }

    const SpokenCharacters& characters_;
    std::string_view hypothesis_;
    std::uint32_t ascii_[128];
    UnitNumbers<Character> numbers_;
};

void write(const std::vector<EditRun>& runs, std::string& out) {
    if (runs.empty() || (runs.size() == 1 && runs[0].kind == Edit::kHit)) return;
    const char* separator = "";
    for (const EditRun& run : runs) {
        char digits[24];
        const auto end = std::to_chars(digits, digits + sizeof digits, run.length).ptr;
        out.append(separator).append(digits, end);
        out += "HSDI"[static_cast<std::size_t>(run.kind)];
        separator = " ";
    }
}

template <typename Numberer>
SpeechEdits edits_by(Numberer numberer, const Texts& texts) {
    SpeechEdits out;
    const std::size_t pairs = texts.ends.size() - texts.images();
    out.counts.reserve(pairs * kEdits);
    out.ends.reserve(pairs);
    EditAligner aligner;
    std::vector<std::uint32_t> left, right;
    for (std::size_t row = 0; row < texts.images(); ++row) {
        const std::size_t first = texts.first_text(row);
        numberer.read(texts[first]);
        for (std::size_t text = first + 1; text < texts.image_ends[row]; ++text) {
            left.clear();
            right.clear();
            const std::size_t kinds = numberer.number(texts[text], left, right);
            const auto& runs = aligner.align({left.data(), left.size()}, {right.data(), right.size()}, kinds);
            double counts[kEdits] = {};
            for (const EditRun& run : runs)
                counts[static_cast<std::size_t>(run.kind)] += static_cast<double>(run.length);
            out.counts.insert(out.counts.end(), std::begin(counts), std::end(counts));
            write(runs, out.alignments);
            out.ends.push_back(out.alignments.size());
        }
    }
    return out;
}

}  // namespace

void TranscriptNormalizer::normalize(std::string_view text, std::string& out) {
    decode_all(text, text_);
    rules_.apply(rule_, text_, spare_);
    for (const char32_t code : text_) {
        if (code < 0x80)
            out += static_cast<char>(code);
        else
            encode(code, out);
    }
}

// jiwer's rule strips texts, which `edits` does anyway.
Transcripts::Transcripts(Texts texts, const TranscriptRules& rules, TranscriptRules::Name rule)
    : texts_(std::move(texts)), rules_(rules) {
    if (rule == TranscriptRules::Name::kJiwer) {
        texts_.bytes.append(kPadding, '\0');
        return;
    }
    TranscriptNormalizer normalizer(rules, rule);
    std::string bytes;
    bytes.reserve(texts_.bytes.size() + texts_.bytes.size() / 8);
    std::vector<std::uint64_t> ends;
    ends.reserve(texts_.ends.size());
    for (std::size_t text = 0; text < texts_.ends.size(); ++text) {
        normalizer.normalize(texts_[text], bytes);
        ends.push_back(bytes.size());
    }
    bytes.append(kPadding, '\0');
    texts_.bytes = std::move(bytes);
    texts_.ends = std::move(ends);
}

void Transcripts::reference_ends(std::int64_t* ends) const {
    for (std::size_t row = 0; row < rows(); ++row)
        ends[row] = static_cast<std::int64_t>(texts_.image_ends[row] - row - 1);
}

SpeechEdits Transcripts::edits(SpeechUnit unit) const {
    const SpokenCharacters& characters = rules_.characters();
    return unit == SpeechUnit::kWord ? edits_by(WordNumberer(characters), texts_)
                                     : edits_by(CharacterNumberer(characters), texts_);
}

}  // namespace mmeval
