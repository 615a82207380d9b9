// Shared by the stemmers: tables of endings, and words as one byte per character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "utf8.h"

namespace mmeval {

struct Ending {
    std::string_view text;
    std::string_view replacement;
    int rule = 0;  // an additional condition; each stemmer has its own rules
};

constexpr bool has_ending(std::string_view word, std::string_view ending) {
    if (word.size() < ending.size()) return false;
    const std::size_t start = word.size() - ending.size();
    for (std::size_t i = ending.size(); i-- > 0;)
        if (word[start + i] != ending[i]) return false;
    return true;
}

// The endings of one step, sorted by last byte, then longest first, so that a look-up compares only a few.
template <std::size_t N>
class EndingTable {
public:
    constexpr explicit EndingTable(const Ending (&endings)[N]) {
        for (std::size_t i = 0; i < N; ++i) {
            std::size_t k = i;
            for (; k > 0 && before(endings[i], sorted_[k - 1]); --k) sorted_[k] = sorted_[k - 1];
            sorted_[k] = endings[i];
        }
        for (const Ending& ending : sorted_)
            for (std::size_t b = bucket(ending.text) + 1; b <= kBuckets; ++b) ++first_[b];
    }

    // The longest ending that the word has, or nullptr.
    const Ending* find(std::string_view word) const {
        if (word.empty()) return nullptr;
        const std::size_t b = bucket(word);
        for (std::size_t i = first_[b]; i < first_[b + 1]; ++i)
            if (has_ending(word, sorted_[i].text)) return &sorted_[i];
        return nullptr;
    }

    // The entry that is the whole word, or nullptr.
    const Ending* find_whole(std::string_view word) const {
        const Ending* ending = find(word);
        return ending && ending->text.size() == word.size() ? ending : nullptr;
    }

private:
    // The low six bits distinguish all lower-case Latin letters, and the second bytes of all Russian letters.
    static constexpr std::size_t kBuckets = 64;
    static constexpr std::size_t bucket(std::string_view text) {
        return static_cast<unsigned char>(text[text.size() - 1]) % kBuckets;
    }
    static constexpr bool before(const Ending& a, const Ending& b) {
        const std::size_t x = bucket(a.text), y = bucket(b.text);
        return x != y ? x < y : a.text.size() > b.text.size();
    }

    Ending sorted_[N]{};
    std::uint8_t first_[kBuckets + 1]{};
    static_assert(N < 256);
};

// Replaces the ending of the word.
inline void replace_ending(std::string& word, const Ending& ending) {
    word.resize(word.size() - ending.text.size());
    word.append(ending.replacement);
}

constexpr std::uint32_t letter_set(std::string_view letters) {
    std::uint32_t set = 0;
    for (const char c : letters) set |= 1u << (c - 'a');
    return set;
}
inline bool is_in(std::uint32_t set, char c) {
    const unsigned index = static_cast<unsigned char>(c) - unsigned{'a'};
    return index < 26 && (set >> index & 1);
}

inline bool is_ascii(std::string_view word) {
    unsigned char seen = 0;
    for (const char c : word) seen |= static_cast<unsigned char>(c);
    return seen < 0x80;
}

// English rules count and compare characters, and treat all characters outside ASCII as consonants. So a word with such
// characters is stemmed with one byte for each, and they are restored afterwards.
constexpr char kOther[2] = {'\x80', '\x81'};  // alternating: neighbours are equal if their characters are
constexpr char kSecondHalf = '\xff';          // of a surrogate pair
enum class Count { kCodePoints, kUtf16 };

inline void to_units(std::string_view word, Count count, std::string& units) {
    units.clear();
    std::string_view previous;
    bool turn = false;
    for (std::size_t i = 0; i < word.size();) {
        const CodePoint c = decode(word, i);
        const std::string_view text = word.substr(i, c.bytes);
        i += c.bytes;
        turn ^= text != previous;
        previous = text;
        units += c.value < 0x80 ? text[0] : kOther[turn];
        if (count == Count::kUtf16 && c.bytes == 4) units += kSecondHalf;
    }
}

// Stemming only removes characters at the ends and only adds ASCII letters. So the first character outside ASCII that
// remains in `units` is the first one of the word, and so on.
inline void from_units(std::string_view units, std::string_view word, std::string& out) {
    out.clear();
    std::size_t at = 0;
    for (const char unit : units) {
        if (unit == kSecondHalf) continue;
        if (static_cast<unsigned char>(unit) < 0x80) {
            out += unit;
            continue;
        }
        while (static_cast<unsigned char>(word[at]) < 0x80) ++at;
        const std::size_t bytes = decode(word, at).bytes;
        out.append(word.substr(at, bytes));
        at += bytes;
    }
}

}  // namespace mmeval
