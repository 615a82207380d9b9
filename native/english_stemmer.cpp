// The Snowball English stemmer ("Porter2") of 2014, which METEOR 1.5 uses. Later Snowball versions have more exceptions
// and other rules.
#include "stemmer_parts.h"
#include "stemmers.h"

namespace mmeval {
namespace {

// A consonant 'y' is written 'Y' during stemming, so it is in none of these sets.
constexpr std::uint32_t kVowels = letter_set("aeiouy");
constexpr std::uint32_t kNoShortEnd = letter_set("aeiouywx");
constexpr std::uint32_t kDoubled = letter_set("bdfgmnprt");
constexpr std::uint32_t kBeforeLi = letter_set("cdeghkmnrt");

bool is_vowel(char c) { return is_in(kVowels, c); }

enum Rule {
    kAlways,
    kKeep,         // blocks shorter endings
    kShorten,      // -ied, -ies
    kAfterVowel,   // a vowel before the letter in front of the ending
    kInRegion1,    // -eed
    kHasVowel,     // -ed, -ing
    kAfterL,
    kAfterLi,      // a letter that -li may follow
    kInRegion2,
    kAfterSOrT,
};

constexpr EndingTable kExceptions({
    {"skis", "ski"},     {"skies", "sky"},   {"dying", "die"},   {"lying", "lie"},   {"tying", "tie"},
    {"idly", "idl"},     {"gently", "gentl"}, {"ugly", "ugli"},   {"early", "earli"}, {"only", "onli"},
    {"singly", "singl"}, {"sky", "sky"},     {"news", "news"},   {"howe", "howe"},   {"atlas", "atlas"},
    {"cosmos", "cosmos"}, {"bias", "bias"},   {"andes", "andes"},
});
constexpr EndingTable kLateExceptions({
    {"inning", ""}, {"outing", ""}, {"canning", ""}, {"herring", ""},
    {"earring", ""}, {"proceed", ""}, {"exceed", ""}, {"succeed", ""},
});
constexpr EndingTable kStep0({{"'", ""}, {"'s", ""}, {"'s'", ""}});
constexpr EndingTable kStep1a({
    {"sses", "ss"}, {"ied", "i", kShorten}, {"ies", "i", kShorten},
    {"us", "", kKeep}, {"ss", "", kKeep}, {"s", "", kAfterVowel},
});
constexpr EndingTable kStep1b({
    {"eed", "ee", kInRegion1}, {"eedly", "ee", kInRegion1}, {"ed", "", kHasVowel},
    {"edly", "", kHasVowel}, {"ing", "", kHasVowel}, {"ingly", "", kHasVowel},
});
constexpr EndingTable kStep2({
    {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"abli", "able"}, {"entli", "ent"}, {"izer", "ize"},
    {"ization", "ize"}, {"ational", "ate"}, {"ation", "ate"}, {"ator", "ate"}, {"alism", "al"}, {"aliti", "al"},
    {"alli", "al"}, {"fulness", "ful"}, {"ousli", "ous"}, {"ousness", "ous"}, {"iveness", "ive"}, {"iviti", "ive"},
    {"biliti", "ble"}, {"bli", "ble"}, {"fulli", "ful"}, {"lessli", "less"}, {"ogi", "og", kAfterL},
    {"li", "", kAfterLi},
});
constexpr EndingTable kStep3({
    {"tional", "tion"}, {"ational", "ate"}, {"alize", "al"}, {"icate", "ic"}, {"iciti", "ic"}, {"ical", "ic"},
    {"ful", ""}, {"ness", ""}, {"ative", "", kInRegion2},
});
constexpr EndingTable kStep4({
    {"al", ""}, {"ance", ""}, {"ence", ""}, {"er", ""}, {"ic", ""}, {"able", ""}, {"ible", ""}, {"ant", ""},
    {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ism", ""}, {"ate", ""}, {"iti", ""}, {"ous", ""}, {"ive", ""},
    {"ize", ""}, {"ion", "", kAfterSOrT},
});

class EnglishWord {
public:
    explicit EnglishWord(std::string& word) : word_(word) {}

    void stem() {
        if (const Ending* exception = kExceptions.find_whole(word_)) {
            word_.assign(exception->replacement);
            return;
        }
        if (word_.size() < 3) return;
        if (word_[0] == '\'') word_.erase(0, 1);
        mark_consonant_y();
        find_regions();
        if (const Ending* ending = kStep0.find(word_)) replace_ending(word_, *ending);
        step_1a();
        if (!kLateExceptions.find_whole(word_)) {
            step_1b();
            step_1c();
            replace_in(kStep2, region1_);
            replace_in(kStep3, region1_);
            replace_in(kStep4, region2_);
            step_5();
        }
        if (has_consonant_y_)
            for (char& c : word_)
                if (c == 'Y') c = 'y';
    }

private:
    void mark_consonant_y() {
        bool after_vowel = true;  // a 'y' at the start of the word is a consonant, too
        for (char& c : word_) {
            if (c == 'y' && after_vowel) {
                c = 'Y';
                has_consonant_y_ = true;
            }
            after_vowel = is_vowel(c);
        }
    }

    // The position after the first consonant that follows a vowel, from `start` on.
    std::size_t next_region(std::size_t start) const {
        while (start < word_.size() && !is_vowel(word_[start])) ++start;
        while (start < word_.size() && is_vowel(word_[start])) ++start;
        return start < word_.size() ? start + 1 : start;
    }

    void find_regions() {
        region1_ = 0;
        for (const std::string_view start : {"gener", "commun", "arsen"})
            if (word_.compare(0, start.size(), start) == 0) region1_ = start.size();
        if (region1_ == 0) region1_ = next_region(0);
        region2_ = next_region(region1_);
    }

    bool has_vowel_before(std::size_t end) const {
        for (std::size_t i = 0; i < end; ++i)
            if (is_vowel(word_[i])) return true;
        return false;
    }

    // Whether the first `end` letters end in a short syllable.
    bool is_short_before(std::size_t end) const {
        if (end < 2 || !is_vowel(word_[end - 2])) return false;
        if (end == 2) return !is_vowel(word_[1]);
        return !is_in(kNoShortEnd, word_[end - 1]) && word_[end - 1] != 'Y' && !is_vowel(word_[end - 3]);
    }

    void step_1a() {
        const Ending* ending = kStep1a.find(word_);
        if (!ending || ending->rule == kKeep) return;
        const std::size_t start = word_.size() - ending->text.size();
        if (ending->rule == kAfterVowel && (start == 0 || !has_vowel_before(start - 1))) return;
        replace_ending(word_, *ending);
        if (ending->rule == kShorten && start < 2) word_ += 'e';
    }

    void step_1b() {
        const Ending* ending = kStep1b.find(word_);
        if (!ending) return;
        const std::size_t start = word_.size() - ending->text.size();
        if (ending->rule == kInRegion1) {
            if (start >= region1_) replace_ending(word_, *ending);
            return;
        }
        if (!has_vowel_before(start)) return;
        replace_ending(word_, *ending);
        if (has_ending(word_, "at") || has_ending(word_, "bl") || has_ending(word_, "iz")) {
            word_ += 'e';
        } else if (start >= 2 && word_[start - 1] == word_[start - 2] && is_in(kDoubled, word_[start - 1])) {
            word_.pop_back();
        } else if (start == region1_ && is_short_before(start)) {
            word_ += 'e';
        }
    }

    void step_1c() {
        const std::size_t size = word_.size();
        if (size > 2 && (word_[size - 1] == 'y' || word_[size - 1] == 'Y') && !is_vowel(word_[size - 2]))
            word_[size - 1] = 'i';
    }

    bool holds(int rule, std::size_t start) const {
        const char before = start > 0 ? word_[start - 1] : '\0';
        switch (rule) {
            case kAfterL: return before == 'l';
            case kAfterLi: return is_in(kBeforeLi, before);
            case kInRegion2: return start >= region2_;
            case kAfterSOrT: return before == 's' || before == 't';
            default: return true;
        }
    }

    template <std::size_t N>
    void replace_in(const EndingTable<N>& table, std::size_t region) {
        const Ending* ending = table.find(word_);
        if (!ending) return;
        const std::size_t start = word_.size() - ending->text.size();
        if (start >= region && holds(ending->rule, start)) replace_ending(word_, *ending);
    }

    void step_5() {
        if (word_.empty()) return;
        const std::size_t start = word_.size() - 1;
        const bool drop_e = word_[start] == 'e' &&
                            (start >= region2_ || (start >= region1_ && !is_short_before(start)));
        const bool drop_l = word_[start] == 'l' && start >= region2_ && start > 0 && word_[start - 1] == 'l';
        if (drop_e || drop_l) word_.pop_back();
    }

    std::string& word_;
    std::size_t region1_ = 0, region2_ = 0;
    bool has_consonant_y_ = false;
};

}  // namespace

void stem_english(std::string_view word, std::string& stem) {
    if (is_ascii(word)) {
        stem.assign(word);
        EnglishWord(stem).stem();
        return;
    }
    std::string units;
    to_units(word, Count::kUtf16, units);  // as in the Java program
    EnglishWord(units).stem();
    from_units(units, word, stem);
}

}  // namespace mmeval
