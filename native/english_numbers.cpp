#include "english_numbers.h"

#include <algorithm>

namespace mmeval {
namespace {

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }

std::u32string digits_of(unsigned value) {
    std::u32string digits;
    do {
        digits.insert(digits.begin(), U'0' + value % 10);
        value /= 10;
    } while (value > 0);
    return digits;
}

bool is_multiple_of_100(const std::u32string& digits) {
    return digits == U"0" || (digits.size() > 2 && digits.compare(digits.size() - 2, 2, U"00") == 0);
}

// digits + value, if the digits at its place are 0.
void put_at_end(std::u32string& digits, unsigned value) {
    const std::u32string end = digits_of(value);
    if (digits.size() < end.size() || digits == U"0")
        digits = end;
    else
        digits.replace(digits.size() - end.size(), end.size(), end);
}

void strip_zeros(std::u32string& digits) {
    digits.erase(0, std::min(digits.find_first_not_of(U'0'), digits.size() - 1));
}

// A whole number whose part below 1000 is multiplied by a power of ten: "two thousand five" + "hundred" is 2500.
void multiply(std::u32string& digits, unsigned zeros) {
    const std::size_t size = std::min<std::size_t>(3, digits.size());
    unsigned below = 0;
    for (std::size_t i = digits.size() - size; i < digits.size(); ++i) below = below * 10 + (digits[i] - U'0');
    std::u32string sum = digits.substr(0, digits.size() - size) + U"000";
    std::u32string product = digits_of(below) + std::u32string(zeros, U'0');
    if (below == 0) product = U"0";
    const std::size_t longest = std::max(sum.size(), product.size()) + 1;
    sum.insert(0, longest - sum.size(), U'0');
    product.insert(0, longest - product.size(), U'0');
    unsigned carry = 0;
    for (std::size_t i = longest; i-- > 0;) {
        const unsigned digit = (sum[i] - U'0') + (product[i] - U'0') + carry;
        sum[i] = U'0' + digit % 10;
        carry = digit / 10;
    }
    strip_zeros(sum);
    digits = sum;
}

}  // namespace

EnglishNumbers::EnglishNumbers(const SpokenCharacters& characters, const Spellings& spellings)
    : characters_(characters) {
    for (const auto& [word, spelling] : spellings) spellings_.add(word, spelling);
    const auto add = [&](std::u32string word, Kind kind, unsigned value = 0, const char32_t* ending = U"",
                         char32_t symbol = 0) {
        words_.add(std::move(word), {kind, static_cast<std::uint8_t>(value), symbol, ending});
    };
    for (const char32_t* zero : {U"o", U"oh", U"zero"}) add(zero, Kind::kZero);
    static constexpr const char32_t* kOnes[] = {
        U"one", U"two", U"three", U"four", U"five", U"six", U"seven", U"eight", U"nine", U"ten", U"eleven", U"twelve",
        U"thirteen", U"fourteen", U"fifteen", U"sixteen", U"seventeen", U"eighteen", U"nineteen"};
    static constexpr const char32_t* kFirst[] = {U"zeroth", U"first", U"second", U"third"};
    static constexpr const char32_t* kFirstEndings[] = {U"th", U"st", U"nd", U"rd"};
    for (unsigned i = 0; i < 4; ++i) add(kFirst[i], Kind::kOneWithEnding, i, kFirstEndings[i]);
    for (unsigned value = 1; value < 20; ++value) {
        const std::u32string word = kOnes[value - 1];
        add(word, Kind::kOne, value);
        add(value == 6 ? U"sixes" : word + U"s", Kind::kOneWithEnding, value, U"s");
        if (value < 4) continue;
        std::u32string ordinal = word + (word.back() == U't' ? U"h" : U"th");
        if (value == 5) ordinal = U"fifth";
        if (value == 12) ordinal = U"twelfth";
        add(ordinal, Kind::kOneWithEnding, value, U"th");
    }
    static constexpr const char32_t* kTens[] = {U"twent", U"thirt", U"fort", U"fift", U"sixt", U"sevent", U"eight", U"ninet"};
    for (unsigned i = 0; i < 8; ++i) {
        const std::u32string stem = kTens[i];
        const unsigned value = 10 * (i + 2);
        add(stem + U"y", Kind::kTen, value);
        add(stem + U"ies", Kind::kTenWithEnding, value, U"s");
        add(stem + U"ieth", Kind::kTenWithEnding, value, U"th");
    }
    static constexpr const char32_t* kPowers[] = {U"thousand", U"million", U"billion", U"trillion", U"quadrillion",
        U"quintillion", U"sextillion", U"septillion", U"octillion", U"nonillion", U"decillion"};
    const auto add_power = [&](const std::u32string& word, unsigned zeros) {
        add(word, Kind::kPower, zeros);
        add(word + U"s", Kind::kPowerWithEnding, zeros, U"s");
        add(word + U"th", Kind::kPowerWithEnding, zeros, U"th");
    };
    add_power(U"hundred", 2);
    for (unsigned i = 0; i < 11; ++i) add_power(kPowers[i], 3 * (i + 1));
    for (const char32_t* word : {U"minus", U"negative"}) add(word, Kind::kSign, 0, U"", U'-');
    for (const char32_t* word : {U"plus", U"positive"}) add(word, Kind::kSign, 0, U"", U'+');
    for (const char32_t* word : {U"pound", U"pounds"}) add(word, Kind::kCurrency, 0, U"", U'£');
    for (const char32_t* word : {U"euro", U"euros"}) add(word, Kind::kCurrency, 0, U"", U'€');
    for (const char32_t* word : {U"dollar", U"dollars"}) add(word, Kind::kCurrency, 0, U"", U'$');
    for (const char32_t* word : {U"cent", U"cents"}) add(word, Kind::kCurrency, 0, U"", U'¢');
    add(U"per", Kind::kPer);
    add(U"percent", Kind::kPercent);
    add(U"and", Kind::kAnd);
    add(U"double", Kind::kRepeat, 2);
    add(U"triple", Kind::kRepeat, 3);
    add(U"point", Kind::kPoint);
}

// Digits, and optionally a decimal point with more digits.
bool EnglishNumbers::is_number(std::u32string_view text) const {
    bool has_point = false, has_digit = false;
    for (char32_t c : text) {
        if (c == U'.' && has_digit && !has_point) {
            has_point = true;
            has_digit = false;
        } else if (characters_.is(c, SpokenCharacter::kDigit)) {
            has_digit = true;
        } else {
            return false;
        }
    }
    return has_digit;
}

// Reads words from left to right. The current number is a whole number, or a text of digits and points, to which
// further digits are attached as they are.
class EnglishNumbers::Reader {
public:
    Reader(const EnglishNumbers& numbers, std::u32string& out) : numbers_(numbers), out_(out) {}

    // The text's next word with its neighbours, which may be empty. True if the next word is part of it.
    bool read(std::u32string_view before, std::u32string_view text, std::u32string_view after) {
        before_ = before;
        after_ = after;
        const Word word = numbers_.word(text);
        const bool has_symbol = is_symbol(text[0]);
        const std::u32string_view number = has_symbol ? text.substr(1) : text;
        if ((has_symbol || numbers_.characters_.is(text[0], SpokenCharacter::kDigit)) && numbers_.is_number(number)) {
            read_digits(text, number, has_symbol);
            return false;
        }
        switch (word.kind) {
            case Kind::kOther: write_number(); write_word(text); return false;
            case Kind::kZero: to_text(); digits_ += U'0'; return false;
            case Kind::kOne: add_one(word.value); return false;
            case Kind::kOneWithEnding: add_one(word.value); write(digits_ + word.ending); return false;
            case Kind::kTen: add_ten(word.value); return false;
            case Kind::kTenWithEnding: add_ten(word.value); write(digits_ + word.ending); return false;
            case Kind::kPower: multiply_by(word.value, nullptr); return false;
            case Kind::kPowerWithEnding: multiply_by(word.value, word.ending); return false;
            case Kind::kSign:
                write_number();
                if (after_can_be_number()) symbol_ = word.symbol;
                else write(text);
                return false;
            case Kind::kCurrency:
                if (state_ != State::kNone) symbol_ = word.symbol;
                if (state_ != State::kNone) write_number();
                else write(text);
                return false;
            case Kind::kPer:
                if (state_ != State::kNone && after == U"cent") {
                    write(digits_ + U"%");
                    return true;
                }
                write_number();
                write(text);
                return false;
            case Kind::kPercent:
                if (state_ == State::kNone) write(text);
                else write(digits_ + U"%");
                return false;
            default: return read_special(text, word);
        }
    }

    void finish() { write_number(); }

private:
    enum class State { kNone, kWhole, kText };

    static bool is_symbol(char32_t c) {
        return c == U'$' || c == U'£' || c == U'€' || c == U'¢' || c == U'-' || c == U'+';
    }
    bool after_can_be_number() const {
        return numbers_.word(after_).kind != Kind::kOther || numbers_.is_number(after_);
    }
    Kind kind_before() const { return numbers_.word(before_).kind; }

    void write(std::u32string_view text) {
        if (!out_.empty()) out_ += U' ';
        if (symbol_ != 0) out_ += symbol_;
        out_ += text;
        symbol_ = 0;
        state_ = State::kNone;
        digits_.clear();
    }
    void write_word(std::u32string_view word) {
        const std::u32string* spelling = symbol_ == 0 ? numbers_.spellings_.find(word) : nullptr;
        write(spelling == nullptr ? word : std::u32string_view(*spelling));
    }
    void write_number() {
        if (state_ != State::kNone) write(std::u32string(digits_));
    }
    // From here on, digits are attached. A whole 0 disappears.
    void to_text() {
        if (state_ == State::kWhole && digits_ == U"0") digits_.clear();
        state_ = State::kText;
    }

    void read_digits(std::u32string_view text, std::u32string_view number, bool has_symbol) {
        if (state_ == State::kText && digits_.back() == U'.') {
            digits_ += text;
            return;
        }
        write_number();
        if (has_symbol) symbol_ = text[0];
        std::u32string whole, fraction;
        parse(number, whole, fraction);
        state_ = fraction.empty() ? State::kWhole : State::kText;
        digits_ = fraction.empty() ? whole : std::u32string(number);
    }

    void add_one(unsigned value) {
        if (state_ == State::kNone) {
            state_ = State::kWhole;
            digits_ = digits_of(value);
        } else if (state_ == State::kText || kind_before() == Kind::kOne) {
            if (kind_before() == Kind::kTen && value < 10) digits_.pop_back();
            state_ = State::kText;
            digits_ += digits_of(value);
        } else if (value < 10 ? digits_.back() == U'0' : is_multiple_of_100(digits_)) {
            put_at_end(digits_, value);
        } else {
            state_ = State::kText;
            digits_ += digits_of(value);
        }
    }

    void add_ten(unsigned value) {
        if (state_ == State::kWhole && is_multiple_of_100(digits_)) {
            put_at_end(digits_, value);
            return;
        }
        state_ = state_ == State::kNone ? State::kWhole : State::kText;
        digits_ += digits_of(value);
    }

    // The whole part without leading zeros and the decimals without trailing ones; false if the text is not a number.
    bool parse(std::u32string_view text, std::u32string& whole, std::u32string& fraction) const {
        bool has_point = false;
        for (char32_t c : text) {
            const SpokenCharacter& character = numbers_.characters_[c];
            if (c == U'.' && !has_point)
                has_point = true;
            else if (character.is(SpokenCharacter::kDigit))
                (has_point ? fraction : whole) += U'0' + character.digit;
            else
                return false;
        }
        if (whole.empty() && fraction.empty()) return false;
        whole.insert(0, 1, U'0');
        strip_zeros(whole);
        fraction.erase(fraction.find_last_not_of(U'0') + 1);
        return true;
    }

    void multiply_by(unsigned zeros, const char32_t* ending) {
        if (state_ == State::kText) {
            std::u32string whole, fraction;
            if (parse(digits_, whole, fraction) && fraction.size() <= zeros) {
                digits_ = whole + fraction + std::u32string(zeros - fraction.size(), U'0');
                strip_zeros(digits_);
            } else {
                write_number();
                digits_ = U"1" + std::u32string(zeros, U'0');
            }
        } else if (state_ == State::kNone) {
            digits_ = U"1" + std::u32string(zeros, U'0');
        } else {
            multiply(digits_, zeros);
        }
        state_ = State::kWhole;
        if (ending != nullptr) write(digits_ + ending);
    }

    bool read_special(std::u32string_view text, const Word& word) {
        if (!after_can_be_number()) {
            write_number();
            write(text);
            return false;
        }
        const Word next = numbers_.word(after_);
        if (word.kind == Kind::kAnd) {
            if (kind_before() == Kind::kPower) return false;  // "one hundred and five"
        } else if (word.kind == Kind::kRepeat) {
            if (next.kind == Kind::kOne || next.kind == Kind::kZero) {
                to_text();
                for (unsigned i = 0; i < word.value; ++i) digits_ += digits_of(next.value);
                return true;
            }
        } else {
            const bool is_decimal = next.kind == Kind::kOne || next.kind == Kind::kTen || next.kind == Kind::kZero;
            if (is_decimal || numbers_.is_number(after_)) {
                to_text();
                digits_ += U'.';
            }
            return false;
        }
        write_number();
        write(text);
        return false;
    }

    const EnglishNumbers& numbers_;
    std::u32string& out_;
    std::u32string_view before_, after_;
    State state_ = State::kNone;
    std::u32string digits_;
    char32_t symbol_ = 0;  // to be written before the number
};

void EnglishNumbers::normalize(std::u32string& text, std::u32string& spare) const {
    if (text.find(U"half") != std::u32string::npos) write_halves(text, spare);
    if (std::any_of(text.begin(), text.end(), is_digit)) {
        separate_digits(text, spare);
        join_endings(text, spare);
    }
    std::vector<std::u32string_view> words;
    for (std::size_t i = 0; i < text.size();) {
        for (; i < text.size() && characters_.is(text[i], SpokenCharacter::kSpace); ++i) {
        }
        const std::size_t begin = i;
        for (; i < text.size() && !characters_.is(text[i], SpokenCharacter::kSpace); ++i) {
        }
        if (i > begin) words.push_back(std::u32string_view(text).substr(begin, i - begin));
    }
    spare.clear();
    Reader reader(*this, spare);
    for (std::size_t i = 0; i < words.size(); ++i)
        i += reader.read(i > 0 ? words[i - 1] : std::u32string_view(), words[i],
                         i + 1 < words.size() ? words[i + 1] : std::u32string_view());
    reader.finish();
    text.swap(spare);
    if (!std::any_of(text.begin(), text.end(), is_digit)) return;
    join_cents(text, spare);
    write_cents(text, spare);
    write_ones(text, spare);
}

}  // namespace mmeval
