// Properties of characters for the normalisation of transcripts. They come from the running Python, so that both agree
// in every version of Unicode.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace mmeval {

struct SpokenCharacter {
    enum Flag : std::uint8_t {
        kSpace = 1,        // str.isspace()
        kWord = 2,         // \w in a regular expression
        kDigit = 4,        // \d in a regular expression
        kPunctuation = 8,  // category P
        kSymbol = 16,      // category M, S or P
        kMoves = 32,       // NFKC may change it or its neighbours
        kContext = 64,     // its lower case depends on its neighbours
    };
    std::uint8_t flags = 0;
    std::uint8_t digit = 0;      // the value of a digit
    std::u32string_view lower;   // in lower case
    std::u32string_view letters; // without symbols and diacritics: see EnglishTranscripts

    bool is(Flag flag) const { return (flags & flag) != 0; }
};

// A page of 256 characters as Python gives it: flags, values of digits, lower cases and letters.
struct SpokenPage {
    static constexpr std::size_t kSize = 256;
    SpokenCharacter characters[kSize];
    std::u32string texts[2 * kSize];
};

// The properties of all characters, page by page; a page is made when it is first needed. Thread-safe.
class SpokenCharacters {
public:
    static constexpr std::size_t kPages = 0x110000 / SpokenPage::kSize;
    using MakePage = std::function<std::unique_ptr<SpokenPage>(std::uint32_t)>;
    using Convert = std::function<std::u32string(const std::u32string&)>;

    SpokenCharacters(MakePage make, Convert lower, Convert nfkc);
    ~SpokenCharacters();
    SpokenCharacters(const SpokenCharacters&) = delete;
    SpokenCharacters& operator=(const SpokenCharacters&) = delete;

    const SpokenCharacter& operator[](char32_t code) const {
        if (code < SpokenPage::kSize) return first_->characters[code];
        const SpokenPage* page = pages_[code / SpokenPage::kSize].load(std::memory_order_acquire);
        if (page == nullptr) page = made(code / SpokenPage::kSize);
        return page->characters[code % SpokenPage::kSize];
    }
    bool is(char32_t code, SpokenCharacter::Flag flag) const {
        return ((code < SpokenPage::kSize ? first_flags_[code] : (*this)[code].flags) & flag) != 0;
    }

    void lower(const std::u32string& text, std::u32string& out) const;
    // Normalised in place, by Python if a character may change.
    void nfkc(std::u32string& text) const;
    // Runs of white space become one space.
    void collapse(const std::u32string& text, std::u32string& out) const;

private:
    const SpokenPage* made(std::uint32_t number) const;

    MakePage make_;
    Convert lower_, nfkc_;
    const SpokenPage* first_;
    std::uint8_t first_flags_[SpokenPage::kSize];  // of the first page, close together
    std::unique_ptr<std::atomic<const SpokenPage*>[]> pages_;
};

}  // namespace mmeval
