// Checks of texts for lint. The same results as lint/facts.py and text/languages.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lint_characters.h"

namespace mmeval {

bool is_ascii(std::string_view text);

// A text in UTF-8; ASCII is read without looking up its characters.
struct Text {
    std::string_view bytes;
    bool is_plain = true;  // ASCII

    Text() = default;
    explicit Text(std::string_view text) : bytes(text), is_plain(is_ascii(text)) {}
    Text(std::string_view text, bool is_plain) : bytes(text), is_plain(is_plain) {}
};

std::size_t length_of(Text text);  // in characters

// The words of a text, without case and punctuation, one after another.
struct Words {
    std::string joined;
    std::vector<std::uint32_t> ends;
    bool is_plain = true;

    std::size_t size() const { return ends.size(); }
    std::uint32_t start(std::size_t word) const { return word == 0 ? 0 : ends[word - 1]; }
    std::string_view operator[](std::size_t word) const {
        return std::string_view(joined).substr(start(word), ends[word] - start(word));
    }
    std::string_view last() const { return (*this)[size() - 1]; }
};

void split_words(Text text, CharacterReader& reader, Words& out);
bool has_words(Text text, CharacterReader& reader, const Words& words);
bool has_last_word(std::string_view text, std::string_view word);  // of ASCII text
Text without_space(Text text, CharacterReader& reader);
Text without_space_at_end(Text text, CharacterReader& reader);
bool is_blank(Text text, CharacterReader& reader);  // invisible
bool ends_open(Text text, CharacterReader& reader);
bool ends_closed(Text text, CharacterReader& reader);

// Whether the answer's script makes up less than a fifth of the letters of its references.
bool is_off_script(Text answer, const std::vector<Text>& references, CharacterReader& reader);

constexpr std::size_t kLanguages = 9;  // the last is never a result
using Hits = std::array<std::uint8_t, kLanguages>;

// The index of the language with the most function words, at least two; -1 for none.
int language_of(const Hits& hits);
bool is_off_language(const Hits& answer, const Hits& references);

// Function words, words that cannot end a sentence, and labels such as "answer", which are followed by a colon.
class LintLexicon {
public:
    static constexpr std::size_t kLongest = 16;  // bytes

    LintLexicon() : slots_(kSlots) {}

    // `function_word_in` and `unfinished_in` are languages, as bits.
    void add_word(std::string_view word, std::uint32_t function_word_in, std::uint32_t unfinished_in);
    void add_label(std::string_view label) { labels_.emplace_back(label); }
    std::uint8_t unfinished_in(std::string_view word) const;

    // False only if the text certainly has no markup: no special tokens, tags, labels, JSON or control characters.
    bool may_have_markup(Text text, CharacterReader& reader) const;

    CharacterTable characters;

private:
    friend class FunctionWords;
    struct Key {
        std::uint64_t first = 0, second = 0;

        explicit Key(std::string_view word);
        Key() = default;
        bool operator==(const Key& other) const { return first == other.first && second == other.second; }
        std::size_t slot() const { return (first ^ second * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u >> 53; }
    };
    struct Slot {
        Key key;
        std::uint16_t number = 0;
        std::uint8_t unfinished_in = 0;
        Hits hits{};  // 1 for each language of which it is a function word
        bool is_function_word = false;
    };
    static constexpr std::size_t kSlots = 2048;

    const Slot* find(std::string_view word) const;
    bool has_label(Text text, CharacterReader& reader) const;
    bool starts_with_label(Text line, CharacterReader& reader) const;

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
bool may_repeat_question(const Words& words, const Words& question);

}  // namespace mmeval
