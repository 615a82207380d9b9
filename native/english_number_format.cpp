// How numbers are written around the number words: halves, endings, cents, "one".
#include "english_numbers.h"

namespace mmeval {
namespace {

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_letter(char32_t c) { return c >= U'a' && c <= U'z'; }
bool is_currency(char32_t c) { return c == U'$' || c == U'£' || c == U'€'; }

bool starts_at(const std::u32string& text, std::size_t i, std::u32string_view word) {
    return text.compare(i, word.size(), word) == 0;
}

}  // namespace

// "two and a half" is "two point five", but "me and a half" stays.
void EnglishNumbers::write_halves(std::u32string& text, std::u32string& spare) const {
    const auto is_space = [&](std::size_t i) { return i < text.size() && characters_.is(text[i], SpokenCharacter::kSpace); };
    // The end of "and a half" at i, or 0.
    const auto match = [&](std::size_t i) -> std::size_t {
        if (!starts_at(text, i, U"and") || (i > 0 && is_word_at(text, i - 1))) return 0;
        for (const std::u32string_view word : {std::u32string_view(U"a"), std::u32string_view(U"half")}) {
            i += word[0] == U'a' ? 3 : 1;
            if (!is_space(i)) return 0;
            while (is_space(i)) ++i;
            if (!starts_at(text, i, word)) return 0;
        }
        i += 4;
        return is_word_at(text, i) ? 0 : i;
    };
    spare.clear();
    bool is_first = true;
    const auto add = [&](std::u32string_view piece) {
        if (!is_first) spare += U' ';
        is_first = false;
        spare += piece;
    };
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const bool is_end = i == text.size();
        const std::size_t next = is_end ? 0 : match(i);
        if (!is_end && next == 0) continue;
        const std::u32string_view piece = std::u32string_view(text).substr(begin, i - begin);
        std::size_t last_end = piece.size();
        while (last_end > 0 && characters_.is(piece[last_end - 1], SpokenCharacter::kSpace)) --last_end;
        if (last_end > 0) {
            add(piece);
            std::size_t last = last_end;
            while (last > 0 && !characters_.is(piece[last - 1], SpokenCharacter::kSpace)) --last;
            const Kind kind = word(piece.substr(last, last_end - last)).kind;
            const bool is_value = kind == Kind::kZero || kind == Kind::kOne || kind == Kind::kTen || kind == Kind::kPower;
            if (!is_end) add(is_value ? U"point five" : U"and a half");
        }
        if (is_end) break;
        begin = next;
        i = next - 1;
    }
    text.swap(spare);
}

// A space between a letter and a digit.
void EnglishNumbers::separate_digits(std::u32string& text, std::u32string& spare) const {
    spare.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (i > 0 && ((is_letter(text[i - 1]) && is_digit(text[i])) || (is_digit(text[i - 1]) && is_letter(text[i]))))
            spare += U' ';
        spare += text[i];
    }
    text.swap(spare);
}

// But not before an ending such as "th".
void EnglishNumbers::join_endings(std::u32string& text, std::u32string& spare) const {
    spare.clear();
    for (std::size_t i = 0; i < text.size();) {
        spare += text[i++];
        if (!is_digit(text[i - 1])) continue;
        std::size_t end = i;
        while (end < text.size() && characters_.is(text[end], SpokenCharacter::kSpace)) ++end;
        if (end == i) continue;
        for (const std::u32string_view ending : {U"st", U"nd", U"rd", U"th", U"s"})
            if (starts_at(text, end, ending) && !is_word_at(text, end + ending.size())) {
                spare += ending;
                i = end + ending.size();
                break;
            }
    }
    text.swap(spare);
}

// The end of one or two digits that end a word at i, or 0.
std::size_t EnglishNumbers::cents_at(const std::u32string& text, std::size_t i) const {
    const std::size_t begin = i;
    while (i < text.size() && i < begin + 2 && is_digit(text[i])) ++i;
    return i == begin || is_word_at(text, i) ? 0 : i;
}

// "$2 and ¢7" is "$2.07".
void EnglishNumbers::join_cents(std::u32string& text, std::u32string& spare) const {
    if (text.find(U'¢') == std::u32string::npos) return;
    spare.clear();
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i + 1;
        while (end < text.size() && is_digit(text[end])) ++end;
        std::size_t cents = end;
        if (is_currency(text[i]) && end > i + 1 && starts_at(text, end, U" ")) {
            ++cents;
            if (starts_at(text, cents, U"and ")) cents += 4;
            const std::size_t last = starts_at(text, cents, U"¢") ? cents_at(text, cents + 1) : 0;
            if (last > 0) {
                spare.append(text, i, end - i);
                spare += last - cents == 2 ? U".0" : U".";
                spare.append(text, cents + 1, last - cents - 1);
                i = last;
                continue;
            }
        }
        spare += text[i++];
    }
    text.swap(spare);
}

// "$0.07" is "¢7".
void EnglishNumbers::write_cents(std::u32string& text, std::u32string& spare) const {
    if (text.find_first_of(U"$£€") == std::u32string::npos) return;
    spare.clear();
    for (std::size_t i = 0; i < text.size();) {
        const bool starts = is_currency(text[i]) && starts_at(text, i + 1, U"0") && i + 2 < text.size();
        const std::size_t end = starts ? cents_at(text, i + 3) : 0;
        if (end == 0) {
            spare += text[i++];
            continue;
        }
        spare += U'¢';
        const bool has_zero = end - i == 5 && text[i + 3] == U'0';
        spare.append(text, i + 3 + has_zero, end - i - 3 - has_zero);
        i = end;
    }
    text.swap(spare);
}

// "1" and "1s" as words are "one" and "ones".
void EnglishNumbers::write_ones(std::u32string& text, std::u32string& spare) const {
    spare.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool starts = text[i] == U'1' && (i == 0 || !is_word_at(text, i - 1));
        const bool is_one = starts && !is_word_at(text, i + 1);
        const bool is_plural = starts && starts_at(text, i + 1, U"s") && !is_word_at(text, i + 2);
        if (is_one || is_plural)
            spare += U"one";
        else
            spare += text[i];
    }
    text.swap(spare);
}

}  // namespace mmeval
