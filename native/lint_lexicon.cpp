#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "lint_bytes.h"
#include "lint_texts.h"

namespace mmeval {
namespace {

// Whether `close` follows `open` within a number of characters, anywhere in the text.
bool has_pair(std::string_view text, char open, char close, std::size_t within) {
    for (std::size_t at = text.find(open); at != std::string_view::npos; at = text.find(open, at + 1))
        if (text.substr(at + 1, within).find(close) != std::string_view::npos) return true;
    return false;
}

}  // namespace

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

LintLexicon::Key::Key(std::string_view word) {
    std::memcpy(&first, word.data(), std::min<std::size_t>(word.size(), 8));
    if (word.size() > 8) std::memcpy(&second, word.data() + 8, word.size() - 8);
}

void LintLexicon::add_word(std::string_view word, std::uint32_t function_word_in, std::uint32_t unfinished_in) {
    if (word.empty() || word.size() > kLongest || word.find('\0') != std::string_view::npos)
        throw std::invalid_argument("a word of the lexicon must have 1 to 16 bytes");
    if (words_ == kSlots / 2) throw std::invalid_argument("the lexicon has too many words");
    const Key key(word);
    std::size_t slot = key.slot();
    while (slots_[slot].key.first != 0) slot = (slot + 1) % kSlots;
    slots_[slot] = {key, words_++, static_cast<std::uint8_t>(unfinished_in), {}, function_word_in != 0};
    for (std::size_t language = 0; language < kLanguages; ++language)
        slots_[slot].hits[language] = function_word_in >> language & 1;
}

const LintLexicon::Slot* LintLexicon::find(std::string_view word) const {
    if (word.size() > kLongest) return nullptr;
    const Key key(word);
    for (std::size_t slot = key.slot(); slots_[slot].key.first != 0; slot = (slot + 1) % kSlots)
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
        if (slot == nullptr || !slot->is_function_word || seen_[slot->number] == round_) continue;
        seen_[slot->number] = round_;
        // Eight languages at once: no language has so many words that a byte overflows.
        std::uint64_t sum, more;
        std::memcpy(&sum, hits_.data(), 8);
        std::memcpy(&more, slot->hits.data(), 8);
        sum += more;
        std::memcpy(hits_.data(), &sum, 8);
        hits_[8] = static_cast<std::uint8_t>(hits_[8] + slot->hits[8]);
    }
}

bool LintLexicon::may_have_markup(Text text, CharacterReader& reader) const {
    const std::string_view bytes = text.bytes;
    bool is_suspect = false;
    for (const char c : bytes) {
        if ((c < 0x20 && c >= 0 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) return true;
        is_suspect |= c == '<' || c == '[' || c == '{' || c == '`' || c == '&' || c == ':' || c == '#';
    }
    if (!text.is_plain) {
        for (std::size_t i = 0; i < bytes.size();)
            if (!is_wide(bytes[i])) {
                ++i;
            } else if (reader.next(bytes, i).is(Character::kMarkup)) {
                return true;
            }
    }
    if (!is_suspect) return false;
    const std::string_view inner = without_space(text, reader).bytes;
    if (contains("{[", inner.front()) && contains("}]", inner.back())) return true;
    if (contains(bytes, '<') && contains(bytes, '>') && bytes.find('<') < bytes.rfind('>')) return true;
    if (bytes.find("```") != std::string_view::npos || bytes.find("##") != std::string_view::npos) return true;
    const std::size_t width = text.is_plain ? 1 : 4;  // bytes of a character
    return has_pair(bytes, '[', ']', 6 * width) || has_pair(bytes, '&', ';', 8 * width) || has_label(text, reader);
}

bool LintLexicon::has_label(Text text, CharacterReader& reader) const {
    if (text.is_plain && !contains(text.bytes, ':')) return false;
    for (std::size_t start = 0; start < text.bytes.size();) {
        const std::size_t end = std::min(text.bytes.find('\n', start), text.bytes.size());
        const std::size_t first = std::min(text.bytes.find_first_not_of(" \t#*", start), text.bytes.size());
        if (first < end && starts_with_label({text.bytes.substr(first, end - first), text.is_plain}, reader)) return true;
        start = std::max(end, first) + 1;
    }
    return false;
}

bool LintLexicon::starts_with_label(Text line, CharacterReader& reader) const {
    constexpr std::size_t kEnough = 40;  // bytes
    constexpr std::string_view kDotlessI = "\xc4\xb1", kDottedI = "\xc4\xb0";  // regular expressions take both for i
    std::string folded;
    for (std::size_t i = 0; i < line.bytes.size() && folded.size() < kEnough;) {
        const std::string_view pair = line.bytes.substr(i, 2);
        if (!is_wide(line.bytes[i])) {
            folded += lower(line.bytes[i++]);
        } else if (pair == kDotlessI || pair == kDottedI) {
            folded += 'i';
            i += 2;
        } else {
            folded += reader.next(line.bytes, i).folded();
        }
    }
    for (const std::string& label : labels_)
        if (std::string_view(folded).substr(0, label.size()) == label) return true;
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
        if (words[i].size() > kLongWord && count_characters(words[i]) > kLongWord) return true;  // which may stutter
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
        return std::any_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_wide(c); });
    }
    return false;
}

bool may_repeat_question(const Words& words, const Words& asked) {
    constexpr double kQuick = 1e7;  // steps of a search that may be quadratic
    const std::string_view answer = words.joined, question = asked.joined;
    if (words.size() == 0 || question.empty()) return false;
    if (words[0] == "question" || words[0] == "q" || words[0] == "вопрос") return true;
    if (answer.size() < question.size()) {
        if (words.size() < 5) return false;
        const bool is_plain = words.is_plain && asked.is_plain;
        const std::size_t length = is_plain ? answer.size() : count_characters(answer);
        if (4 * length < 3 * (is_plain ? question.size() : count_characters(question))) return false;
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
