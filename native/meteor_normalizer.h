// The text normaliser of METEOR 1.5 (its option -norm): punctuation set apart, quotes and dashes unified, lower case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "token_buffer.h"

namespace mmeval {

class MeteorNormalizer {
public:
    // In English, an apostrophe stays with the following letters (it 's). In Russian, it is a token (it ' s). Apart
    // from the prefixes, nothing else differs.
    enum class Apostrophes : std::uint8_t { kEnglish, kApart };

    // `prefixes` is the text of nonbreaking/english.prefixes (or russian.prefixes): words that keep a full stop, one
    // per line. "#NUMERIC_ONLY#" after a word means only before a number.
    explicit MeteorNormalizer(std::string_view prefixes, Apostrophes apostrophes = Apostrophes::kEnglish);

    // Appends the tokens of a text (UTF-8; bad bytes become U+FFFD as in Java). Linear in the text's length.
    // Thread-safe.
    void tokenize(std::string_view text, TokenBuffer& out) const;

private:
    enum class Stop : std::uint8_t { kStays, kStaysBeforeDigit };

    bool keeps_stop(std::string_view word, char32_t next) const;
    std::size_t take_plain(std::string_view text, std::size_t begin, TokenBuffer& out) const;
    void take_words(std::u32string_view words, char32_t next, std::size_t first, TokenBuffer& out) const;

    std::unordered_map<std::string, Stop> prefixes_;
    std::size_t longest_prefix_ = 0;
    Apostrophes apostrophes_;
};

}  // namespace mmeval
