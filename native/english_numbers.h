// English number words as digits, as Whisper's normalizer for English writes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transcript_characters.h"

namespace mmeval {

// Words by hash, without conversion from UTF-32.
template <typename Value>
class WordTable {
public:
    void add(std::u32string word, Value value) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        place(std::move(word), std::move(value));
    }
    const Value* find(std::u32string_view word) const {
        if (word.size() < shortest_ || word.size() > longest_) return nullptr;
        for (std::size_t slot = hash(word) & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
            if (slots_[slot].word.empty()) return nullptr;
            if (slots_[slot].word == word) return &slots_[slot].value;
        }
    }

private:
    struct Slot {
        std::u32string word;
        Value value{};
    };

    static std::size_t hash(std::u32string_view word) {
        std::uint64_t h = word.size();
        for (char32_t c : word) h = (h ^ c) * 0x9e3779b97f4a7c15u;
        return static_cast<std::size_t>(h >> 29);
    }
    void place(std::u32string word, Value value) {
        std::size_t slot = hash(word) & (slots_.size() - 1);
        while (!slots_[slot].word.empty() && slots_[slot].word != word) slot = (slot + 1) & (slots_.size() - 1);
        size_ += slots_[slot].word.empty();
        shortest_ = std::min(shortest_, word.size());
        longest_ = std::max(longest_, word.size());
        slots_[slot] = {std::move(word), std::move(value)};
    }
    void grow() {
        std::vector<Slot> old = std::move(slots_);
        slots_.assign(old.empty() ? 64 : 2 * old.size(), {});
        size_ = 0;
        for (Slot& slot : old)
            if (!slot.word.empty()) place(std::move(slot.word), std::move(slot.value));
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0, shortest_ = ~std::size_t{0}, longest_ = 0;
};

class EnglishNumbers {
public:
    using Spellings = std::vector<std::pair<std::u32string, std::u32string>>;

    // Words that are not numbers are replaced by their other spelling.
    EnglishNumbers(const SpokenCharacters& characters, const Spellings& spellings);

    // A text in lower case without symbols except . % $ ¢ € £; the result has one space between words.
    void normalize(std::u32string& text, std::u32string& spare) const;

private:
    enum class Kind : std::uint8_t {
        kOther, kZero, kOne, kOneWithEnding, kTen, kTenWithEnding, kPower, kPowerWithEnding,
        kSign, kCurrency, kPer, kPercent, kAnd, kRepeat, kPoint
    };
    struct Word {
        Kind kind = Kind::kOther;
        std::uint8_t value = 0;   // of a number, the zeros of a power of ten, or how often a digit is repeated
        char32_t symbol = 0;      // of a sign or a currency
        const char32_t* ending = U"";
    };
    class Reader;  // turns words into numbers, one by one

    Word word(std::u32string_view text) const {
        const Word* known = words_.find(text);
        return known == nullptr ? Word{} : *known;
    }
    bool is_number(std::u32string_view text) const;
    void write_halves(std::u32string& text, std::u32string& spare) const;
    void separate_digits(std::u32string& text, std::u32string& spare) const;
    void join_endings(std::u32string& text, std::u32string& spare) const;
    void join_cents(std::u32string& text, std::u32string& spare) const;
    void write_cents(std::u32string& text, std::u32string& spare) const;
    void write_ones(std::u32string& text, std::u32string& spare) const;
    bool is_word_at(const std::u32string& text, std::size_t i) const {
        return i < text.size() && characters_.is(text[i], SpokenCharacter::kWord);
    }
    std::size_t cents_at(const std::u32string& text, std::size_t i) const;

    const SpokenCharacters& characters_;
    WordTable<Word> words_;
    WordTable<std::u32string> spellings_;
};

}  // namespace mmeval
