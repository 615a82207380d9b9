// Properties of characters beyond ASCII, for lint. They come from the running Python, so that both agree in every
// version of Unicode.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "utf8.h"

namespace mmeval {

// One character, as lint/facts.py writes it.
struct Character {
    enum Flag : std::uint8_t {
        kWord = 1,       // part of a word
        kUnspaced = 2,   // a word of its own
        kUnusual = 4,    // left to Python
        kSpace = 8,
        kFormat = 16,    // invisible, like a zero-width space
        kCloses = 32,    // final punctuation, a closing quotation mark or bracket
        kOpens = 64,     // expects more text
        kMarkup = 128,   // a control character or a trace of a tokenizer
    };
    static constexpr std::size_t kLongest = 13;

    std::uint8_t flags;
    std::uint8_t script;  // of a letter; 0 for none
    std::uint8_t size;
    char bytes[kLongest];  // case-folded

    bool is(Flag flag) const { return (flags & flag) != 0; }
    std::string_view folded() const { return {bytes, size}; }
};
static_assert(sizeof(Character) == 16);

// The properties of all characters, in pages of 256, each of which is made when it is first needed. Thread-safe.
class CharacterTable {
public:
    static constexpr std::size_t kPageSize = 256, kPages = 0x110000 / kPageSize;
    using MakePage = std::function<std::string(std::uint32_t)>;  // its bytes, by number

    CharacterTable();
    ~CharacterTable();
    CharacterTable(const CharacterTable&) = delete;
    CharacterTable& operator=(const CharacterTable&) = delete;

    const Character& at(std::uint32_t code, const MakePage& make) const {
        const Character* page = pages_[code / kPageSize].load(std::memory_order_acquire);
        if (page == nullptr) page = made(code / kPageSize, make);
        return page[code % kPageSize];
    }

private:
    const Character* made(std::uint32_t number, const MakePage& make) const;

    std::unique_ptr<std::atomic<const Character*>[]> pages_;
};

// Reads the characters of some texts, and notes whether one of them is left to Python.
class CharacterReader {
public:
    CharacterReader(const CharacterTable& table, const CharacterTable::MakePage& make) : table_(table), make_(make) {}

    // The character at text[i], which moves on by its bytes.
    const Character& next(std::string_view text, std::size_t& i) {
        const CodePoint point = decode(text, i);
        i += point.bytes;
        return of(point.value);
    }

    const Character& last(std::string_view text) { return of(decode(text, step_back(text, text.size())).value); }

    void start() { saw_unusual_ = false; }
    bool saw_unusual() const { return saw_unusual_; }

private:
    const Character& of(std::uint32_t code) {
        static constexpr Character kNothing{};
        if (code == kBadByte) {
            saw_unusual_ = true;
            return kNothing;
        }
        const Character& character = table_.at(code, make_);
        saw_unusual_ |= character.is(Character::kUnusual);
        return character;
    }

    const CharacterTable& table_;
    const CharacterTable::MakePage& make_;
    bool saw_unusual_ = false;
};

}  // namespace mmeval
