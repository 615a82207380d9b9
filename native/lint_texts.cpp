#include "lint_texts.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace mmeval {
namespace {

// The lower-case character of a word, or 0 for a character between words: punctuation, space and control characters.
constexpr std::array<char, 256> word_characters() {
    std::array<char, 256> table{};
    for (int c = '0'; c <= '9'; ++c) table[c] = static_cast<char>(c);
    for (int c = 'a'; c <= 'z'; ++c) table[c] = table[c - 32] = static_cast<char>(c);
    for (char c : {'$', '+', '<', '=', '>', '^', '`', '|', '~'}) table[static_cast<int>(c)] = c;
    return table;
}
constexpr std::array<char, 256> kWordCharacters = word_characters();

inline char word_character(char c) { return kWordCharacters[static_cast<unsigned char>(c)]; }
inline bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
inline bool is_space(char c) { return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31); }
inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; }

bool contains(std::string_view characters, char c) { return characters.find(c) != std::string_view::npos; }

bool starts_with(std::string_view text, std::string_view folded) {
    return text.size() >= folded.size() &&
           std::equal(folded.begin(), folded.end(), text.begin(), [](char a, char b) { return a == lower(b); });
}

inline std::uint64_t packed(std::string_view word) {
    std::uint64_t key = 0;
    std::memcpy(&key, word.data(), word.size());
    return key;
}

inline std::size_t slot_of(std::uint64_t key) { return key * 0x9e3779b97f4a7c15u >> 53; }

// Whether `close` follows `open` within a number of characters, anywhere in the text.
bool has_pair(std::string_view text, char open, char close, std::size_t within) {
    for (std::size_t at = text.find(open); at != std::string_view::npos; at = text.find(open, at + 1))
        if (text.substr(at + 1, within).find(close) != std::string_view::npos) return true;
    return false;
}

}  // namespace

bool is_ascii(std::string_view text) {
    std::uint64_t bits = 0;
    std::size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, text.data() + i, 8);
        bits |= eight;
    }
    for (; i < text.size(); ++i) bits |= static_cast<std::uint64_t>(text[i]) & 0x80;
    return (bits & 0x8080808080808080u) == 0;
}

void split_words(std::string_view text, Words& out) {
    out.joined.resize(text.size());
    out.ends.clear();
    char* next = out.joined.data();
    char* const begin = next;
    bool in_word = false;
    for (const char c : text) {
        const char folded = word_character(c);
        if (folded != 0) {
            *next++ = folded;
        } else if (in_word) {
            out.ends.push_back(static_cast<std::uint32_t>(next - begin));
        }
        in_word = folded != 0;
    }
    if (in_word) out.ends.push_back(static_cast<std::uint32_t>(next - begin));
    out.joined.resize(static_cast<std::size_t>(next - begin));
}

bool has_words(std::string_view text, const Words& words) {
    std::size_t word = 0, at = 0;
    bool in_word = false;
    for (const char c : text) {
        const char folded = word_character(c);
        if (folded != 0) {
            if (at == words.joined.size() || words.joined[at] != folded) return false;
            ++at;
        } else if (in_word && at != words.ends[word++]) {
            return false;
        }
        in_word = folded != 0;
    }
    if (in_word && at != words.ends[word++]) return false;
    return word == words.size();
}

bool has_last_word(std::string_view text, std::string_view word) {
    std::size_t end = text.size();
    while (end > 0 && word_character(text[end - 1]) == 0) --end;
    std::size_t start = end;
    while (start > 0 && word_character(text[start - 1]) != 0) --start;
    return end - start == word.size() && starts_with(text.substr(start), word);
}

std::string_view without_space_at_end(std::string_view text) {
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

std::string_view without_space(std::string_view text) {
    text = without_space_at_end(text);
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    return text;
}

bool ends_open(std::string_view text) {
    return !text.empty() && (contains(",;:-([{", text.back()) || (text.size() > 2 && text.substr(text.size() - 3) == "..."));
}

bool ends_closed(std::string_view text) {
    return !text.empty() && contains(".!?\"')]}*`", text.back()) &&
           !(text.size() > 2 && text.substr(text.size() - 3) == "...");
}

int language_of(const Hits& hits) {
    const auto most = std::max_element(hits.begin(), hits.end());
    const auto index = most - hits.begin();
    if (*most < 2 || index + 1 == kLanguages || std::count(most, hits.end(), *most) > 1) return -1;
    return static_cast<int>(index);
}

bool is_off_language(const Hits& answer, const Hits& references) {
    const int actual = language_of(answer), expected = language_of(references);
    return actual >= 0 && expected >= 0 && answer[actual] - answer[expected] >= 2;
}

void LintLexicon::add_word(std::string_view word, std::uint32_t function_word_in, std::uint32_t unfinished_in) {
    if (word.empty() || word.size() > kLongest || !is_ascii(word) || word.find('\0') != std::string_view::npos)
        throw std::invalid_argument("a word of the lexicon must have 1 to 8 ASCII characters");
    if (words_ == kSlots / 2) throw std::invalid_argument("the lexicon has too many words");
    std::size_t slot = slot_of(packed(word));
    while (slots_[slot].key != 0) slot = (slot + 1) % kSlots;
    slots_[slot] = {packed(word), words_++, static_cast<std::uint16_t>(function_word_in),
                    static_cast<std::uint8_t>(unfinished_in)};
}

const LintLexicon::Slot* LintLexicon::find(std::string_view word) const {
    if (word.size() > kLongest) return nullptr;
    const std::uint64_t key = packed(word);
    for (std::size_t slot = slot_of(key); slots_[slot].key != 0; slot = (slot + 1) % kSlots)
        if (slots_[slot].key == key) return &slots_[slot];
    return nullptr;
}

std::uint8_t LintLexicon::unfinished_in(std::string_view word) const {
    const Slot* slot = find(word);
    return slot == nullptr ? 0 : slot->unfinished_in;
}

void FunctionWords::add(const Words& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const LintLexicon::Slot* slot = lexicon_.find(words[i]);
        if (slot == nullptr || slot->function_word_in == 0 || seen_[slot->number] == round_) continue;
        seen_[slot->number] = round_;
        for (std::size_t language = 0; language < kLanguages; ++language)
            hits_[language] = static_cast<std::uint8_t>(hits_[language] + (slot->function_word_in >> language & 1));
    }
}

bool LintLexicon::may_have_markup(std::string_view text) const {
    bool is_suspect = false;
    for (const char c : text) {
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) return true;
        is_suspect |= c == '<' || c == '[' || c == '{' || c == '`' || c == '&' || c == ':' || c == '#';
    }
    if (!is_suspect) return false;
    const std::string_view inner = without_space(text);
    if (contains("{[", inner.front()) && contains("}]", inner.back())) return true;
    if (text.find('<') < text.rfind('>') && contains(text, '<') && contains(text, '>')) return true;
    if (text.find("```") != std::string_view::npos || text.find("##") != std::string_view::npos) return true;
    return has_pair(text, '[', ']', 6) || has_pair(text, '&', ';', 8) || (contains(text, ':') && has_label(text));
}

bool LintLexicon::has_label(std::string_view text) const {
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        const std::size_t first = std::min(text.find_first_not_of(" \t#*", start), text.size());
        if (first < end) {
            const std::string_view line = text.substr(first, end - first);
            for (const std::string& label : labels_)
                if (starts_with(line, label)) return true;
        }
        start = std::max(end, first) + 1;
    }
    return false;
}

// Gives equal words of the tail equal numbers, and returns how many there are.
std::size_t Repetition::number_words(const Words& words, std::size_t first) {
    ++round_;
    numbers_.clear();
    std::uint16_t count = 0;
    for (std::size_t i = first; i < words.size(); ++i) {
        const std::string_view word = words[i];
        std::uint64_t hash = word.size();
        for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
        std::size_t slot = (hash ^ hash >> 32) % kTable;
        while (table_[slot].round == round_ && table_[slot].word != word) slot = (slot + 1) % kTable;
        if (table_[slot].round != round_) table_[slot] = {round_, word, count++};
        numbers_.push_back(table_[slot].number);
    }
    return count;
}

bool Repetition::may_repeat(const Words& words) {
    constexpr std::size_t kLongWord = 30, kEnough = 12, kLongestPeriod = 32;
    const std::size_t first = words.size() > kTail ? words.size() - kTail : 0, count = words.size() - first;
    for (std::size_t i = first; i < words.size(); ++i)
        if (words[i].size() > kLongWord) return true;  // which may stutter
    if (count < 4) return false;
    const std::size_t least = std::min((count + 2) / 3, kEnough);
    if (3 * (count - number_words(words, first)) < 2 * least) return false;  // too many different words
    for (std::size_t period = 1; period <= std::min(kLongestPeriod, count / 3); ++period)
        if (repeats(words, first, period, least)) return true;
    return false;
}

// Whether the first phrase of `period` words that fills the least number of words has a letter.
bool Repetition::repeats(const Words& words, std::size_t first, std::size_t period, std::size_t least) const {
    const std::size_t span = std::max((period == 1 ? 4 : 3) * period, least);
    std::size_t run = 0;
    for (std::size_t i = period; i < numbers_.size(); ++i) {
        run = numbers_[i] == numbers_[i - period] ? run + 1 : 0;
        if (run < span - period) continue;
        const std::size_t phrase = first + i + 1 - span;
        const std::uint32_t start = words.start(phrase);
        const std::string_view text = std::string_view(words.joined).substr(start, words.ends[phrase + period - 1] - start);
        return std::any_of(text.begin(), text.end(), is_letter);
    }
    return false;
}

bool may_repeat_question(const Words& words, std::string_view question) {
    constexpr double kQuick = 1e7;  // steps of a search that may be quadratic
    if (words.size() == 0 || question.empty()) return false;
    if (words[0] == "question" || words[0] == "q") return true;
    const std::string_view answer = words.joined;
    if (answer.size() < question.size()) {
        if (words.size() < 5 || 4 * answer.size() < 3 * question.size()) return false;
        if (static_cast<double>(answer.size()) * static_cast<double>(question.size() - answer.size() + 1) > kQuick)
            return true;
        return question.find(answer) != std::string_view::npos;
    }
    if (answer.size() % question.size() != 0) return false;
    for (std::size_t start = 0; start < answer.size(); start += question.size())
        if (answer.compare(start, question.size(), question) != 0) return false;
    return true;
}

}  // namespace mmeval
