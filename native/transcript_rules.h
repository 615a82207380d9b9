// Rules that normalise a transcript before words or characters are compared, by name.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "english_numbers.h"
#include "transcript_characters.h"

namespace mmeval {

// Texts in square or angle brackets, and in parentheses, are removed, as Whisper's normalizers do.
void remove_brackets(std::u32string& text, std::u32string& spare);

// Whisper's normalizer for English.
class EnglishTranscripts {
public:
    EnglishTranscripts(const SpokenCharacters& characters, const EnglishNumbers::Spellings& spellings);
    void normalize(std::u32string& text, std::u32string& spare) const;

private:
    bool is_word(char32_t c) const { return characters_.is(c, SpokenCharacter::kWord); }
    // The end of the word at i.
    std::size_t word_end(const std::u32string& text, std::size_t i) const;
    std::u32string_view word_at(const std::u32string& text, std::size_t i) const;
    template <typename Write>
    void replace_words(std::u32string& text, std::u32string& spare, Write write) const;
    void remove_hesitations(std::u32string& text, std::u32string& spare) const;
    void join_apostrophes(std::u32string& text, std::u32string& spare) const;
    void expand_pairs(std::u32string& text, std::u32string& spare) const;
    void expand_words(std::u32string& text, std::u32string& spare) const;
    void expand_endings(std::u32string& text, std::u32string& spare) const;
    bool expand_perfect(const std::u32string& text, std::size_t& i, std::u32string& out) const;
    bool expand_ending(const std::u32string& text, std::size_t& i, std::u32string& out) const;
    void remove_stops(std::u32string& text, std::u32string& spare) const;
    void remove_commas(std::u32string& text, std::u32string& spare) const;
    void remove_symbols(std::u32string& text, std::u32string& spare) const;

    const SpokenCharacters& characters_;
    EnglishNumbers numbers_;
    WordTable<std::u32string> expansions_;
};

class TranscriptRules {
public:
    enum class Name { kNone, kBasic, kJiwer, kWhisperBasic, kWhisperEnglish };

    TranscriptRules(SpokenCharacters::MakePage make, SpokenCharacters::Convert lower, SpokenCharacters::Convert nfkc,
                    const EnglishNumbers::Spellings& spellings)
        : characters_(std::move(make), std::move(lower), std::move(nfkc)), english_(characters_, spellings) {}

    const SpokenCharacters& characters() const { return characters_; }
    void apply(Name name, std::u32string& text, std::u32string& spare) const;

private:
    void strip(std::u32string& text) const;

    SpokenCharacters characters_;
    EnglishTranscripts english_;
};

}  // namespace mmeval
