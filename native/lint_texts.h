// Checks of ASCII texts for lint. The same results as lint/texts.py, text/words.py and text/languages.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mmeval {

// The words of a text, without case and punctuation, one after another.
struct Words {
    std::string joined;
    std::vector<std::uint32_t> ends;

    std::size_t size() const { return ends.size(); }
    std::uint32_t start(std::size_t word) const { return word == 0 ? 0 : ends[word - 1]; }
    std::string_view operator[](std::size_t word) const {
        return std::string_view(joined).substr(start(word), ends[word] - start(word));
    }
    std::string_view last() const { return (*this)[size() - 1]; }
};

bool is_ascii(std::string_view text);
void split_words(std::string_view text, Words& out);
bool has_words(std::string_view text, const Words& words);
bool has_last_word(std::string_view text, std::string_view word);
std::string_view without_space(std::string_view text);
std::string_view without_space_at_end(std::string_view text);
bool ends_open(std::string_view text);
bool ends_closed(std::string_view text);

constexpr std::size_t kLanguages = 9;  // the last is never a result
using Hits = std::array<std::uint8_t, kLanguages>;

// The index of the language with the most function words, at least two; -1 for none.
int language_of(const Hits& hits);
bool is_off_language(const Hits& answer, const Hits& references);

// Function words, words that cannot end a sentence, and labels such as "answer", which are followed by a colon.
class LintLexicon {
public:
    static constexpr std::size_t kLongest = 8;

    LintLexicon() : slots_(kSlots) {}

    // `function_word_in` and `unfinished_in` are languages, as bits.
    void add_word(std::string_view word, std::uint32_t function_word_in, std::uint32_t unfinished_in);
    void add_label(std::string_view label) { labels_.emplace_back(label); }
    std::uint8_t unfinished_in(std::string_view word) const;

    // False only if the text certainly has no markup: no special tokens, tags, labels, JSON or control characters.
    bool may_have_markup(std::string_view text) const;

private:
    friend class FunctionWords;
    struct Slot {
        std::uint64_t key = 0;
        std::uint16_t number = 0, function_word_in = 0;
        std::uint8_t unfinished_in = 0;
    };
    static constexpr std::size_t kSlots = 2048;

    const Slot* find(std::string_view word) const;
    bool has_label(std::string_view text) const;

    std::vector<Slot> slots_;
    std::vector<std::string> labels_;
    std::uint16_t words_ = 0;
};

// Counts the distinct function words of each language.
class FunctionWords {
public:
    explicit FunctionWords(const LintLexicon& lexicon) : lexicon_(lexicon), seen_(lexicon.words_) {}

    void start() { hits_.fill(0), ++round_; }
    void add(const Words& words);
    const Hits& hits() const { return hits_; }

private:
    const LintLexicon& lexicon_;
    std::vector<std::uint64_t> seen_;  // the round in which a word was counted last
    std::uint64_t round_ = 0;
    Hits hits_{};
};

// Looks for phrases that repeat at the end of a text.
class Repetition {
public:
    // False only if the words certainly do not repeat themselves.
    bool may_repeat(const Words& words);

private:
    static constexpr std::size_t kTail = 256, kTable = 1024;

    std::size_t number_words(const Words& words, std::size_t first);
    bool repeats(const Words& words, std::size_t first, std::size_t period, std::size_t least) const;

    struct Entry {
        std::uint64_t round = 0;
        std::string_view word;
        std::uint16_t number = 0;
    };
    std::array<Entry, kTable> table_{};
    std::uint64_t round_ = 0;
    std::vector<std::uint16_t> numbers_;
};

// False only if the words are certainly not the question, whose words are `question`, nor most of it.
bool may_repeat_question(const Words& words, std::string_view question);

}  // namespace mmeval
