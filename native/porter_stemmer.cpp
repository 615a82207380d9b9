// Porter's stemmer of 1980 with the changes of NLTK's PorterStemmer in its default mode: irregular words, and different
// rules for short words and some endings.
#include "stemmer_parts.h"
#include "stemmers.h"

namespace mmeval {
namespace {

enum Rule {
    kAlways,
    kMeasure,   // the measure of the word without the ending is above the step's minimum
    kMeasureL,  // as above, but the initial 'l' of the ending counts as part of the word
    kAfterSOrT,
    kHasVowel,
    kAgain,     // the step starts over with the result
};

constexpr EndingTable kIrregular({
    {"sky", "sky"}, {"skies", "sky"}, {"dying", "die"}, {"lying", "lie"}, {"tying", "tie"}, {"news", "news"},
    {"innings", "inning"}, {"inning", "inning"}, {"outings", "outing"}, {"outing", "outing"},
    {"cannings", "canning"}, {"canning", "canning"}, {"howe", "howe"}, {"proceed", "proceed"},
    {"exceed", "exceed"}, {"succeed", "succeed"},
});
constexpr EndingTable kStep1a({{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}});
constexpr EndingTable kStep1b({
    {"ied", "i"}, {"eed", "ee", kMeasure}, {"ed", "", kHasVowel}, {"ing", "", kHasVowel},
});
constexpr EndingTable kStep2({
    {"ational", "ate", kMeasure}, {"tional", "tion", kMeasure}, {"enci", "ence", kMeasure},
    {"anci", "ance", kMeasure}, {"izer", "ize", kMeasure}, {"bli", "ble", kMeasure}, {"alli", "al", kAgain},
    {"entli", "ent", kMeasure}, {"eli", "e", kMeasure}, {"ousli", "ous", kMeasure}, {"ization", "ize", kMeasure},
    {"ation", "ate", kMeasure}, {"ator", "ate", kMeasure}, {"alism", "al", kMeasure}, {"iveness", "ive", kMeasure},
    {"fulness", "ful", kMeasure}, {"ousness", "ous", kMeasure}, {"aliti", "al", kMeasure},
    {"iviti", "ive", kMeasure}, {"biliti", "ble", kMeasure}, {"fulli", "ful", kMeasure}, {"logi", "log", kMeasureL},
});
constexpr EndingTable kStep3({
    {"icate", "ic", kMeasure}, {"ative", "", kMeasure}, {"alize", "al", kMeasure}, {"iciti", "ic", kMeasure},
    {"ical", "ic", kMeasure}, {"ful", "", kMeasure}, {"ness", "", kMeasure},
});
constexpr EndingTable kStep4({
    {"al", "", kMeasure}, {"ance", "", kMeasure}, {"ence", "", kMeasure}, {"er", "", kMeasure},
    {"ic", "", kMeasure}, {"able", "", kMeasure}, {"ible", "", kMeasure}, {"ant", "", kMeasure},
    {"ement", "", kMeasure}, {"ment", "", kMeasure}, {"ent", "", kMeasure}, {"ion", "", kAfterSOrT},
    {"ou", "", kMeasure}, {"ism", "", kMeasure}, {"ate", "", kMeasure}, {"iti", "", kMeasure},
    {"ous", "", kMeasure}, {"ive", "", kMeasure}, {"ize", "", kMeasure},
});

// The facts about the start of a word that the rules need, from one pass over it.
struct Shape {
    explicit Shape(std::string_view text) : size(text.size()), last(text.empty() ? '\0' : text.back()) {
        bool vowel = true;  // so that a 'y' at the start is a consonant
        for (std::size_t i = 0; i < size; ++i) {
            const bool now = is_in(kVowels, text[i]) || (text[i] == 'y' && !vowel);
            measure += i > 0 && vowel && !now;
            has_vowel |= now;
            kinds = kinds << 1 | now;
            vowel = now;
        }
        doubled = size > 1 && text[size - 2] == last && !vowel;
    }

    // Consonant, vowel, consonant other than w, x, y; NLTK adds words of a vowel and any consonant.
    bool is_short_end() const {
        if (size == 2) return (kinds & 3) == 2;
        return size > 2 && (kinds & 7) == 2 && last != 'w' && last != 'x' && last != 'y';
    }

    static constexpr std::uint32_t kVowels = letter_set("aeiou");
    std::size_t size;
    char last;
    std::size_t measure = 0;  // how often a consonant follows a vowel
    unsigned kinds = 0;       // the last letters, the lowest bit for the last one: 1 is a vowel
    bool has_vowel = false, doubled = false;
};

Shape shape_without(std::string_view word, std::size_t tail) { return Shape(word.substr(0, word.size() - tail)); }

bool holds(int rule, const Ending& ending, std::string_view word, std::size_t least) {
    if (rule == kAlways) return true;
    const Shape shape = shape_without(word, ending.text.size() - (rule == kMeasureL));
    if (rule == kHasVowel) return shape.has_vowel;
    return shape.measure > least && (rule != kAfterSOrT || shape.last == 's' || shape.last == 't');
}

// Only the longest ending is tried. If its rule does not hold, no shorter one is used.
template <std::size_t N>
const Ending* replace_in(const EndingTable<N>& table, std::size_t least, std::string& word) {
    const Ending* ending = table.find(word);
    if (!ending || !holds(ending->rule, *ending, word, least)) return nullptr;
    replace_ending(word, *ending);
    return ending;
}

// In words of four letters, -ies and -ied lose only one letter: "dies" and "tied" become "die" and "tie".
template <std::size_t N>
const Ending* replace_in_step_1(const EndingTable<N>& table, std::string& word) {
    const bool four = word.size() == 4;
    const Ending* ending = replace_in(table, 0, word);
    if (ending && ending->replacement == "i" && four) word += 'e';
    return ending;
}

void step_1b(std::string& word) {
    const Ending* ending = replace_in_step_1(kStep1b, word);
    if (!ending || ending->rule != kHasVowel) return;
    const Shape shape(word);
    if (has_ending(word, "at") || has_ending(word, "bl") || has_ending(word, "iz")) {
        word += 'e';
    } else if (shape.doubled) {
        if (shape.last != 'l' && shape.last != 's' && shape.last != 'z') word.pop_back();
    } else if (shape.measure == 1 && shape.is_short_end()) {
        word += 'e';
    }
}

void step_1c(std::string& word) {
    if (word.size() > 2 && word.back() == 'y' && !(shape_without(word, 1).kinds & 1)) word.back() = 'i';
}

void step_5(std::string& word) {
    if (word.empty()) return;
    if (word.back() == 'e') {
        const Shape shape = shape_without(word, 1);
        if (shape.measure > 1 || (shape.measure == 1 && !shape.is_short_end())) word.pop_back();
    }
    if (has_ending(word, "ll") && shape_without(word, 1).measure > 1) word.pop_back();
}

void stem_units(std::string& word) {
    if (const Ending* irregular = kIrregular.find_whole(word)) {
        word.assign(irregular->replacement);
        return;
    }
    if (word.size() < 3) return;
    replace_in_step_1(kStep1a, word);
    step_1b(word);
    step_1c(word);
    const Ending* ending = replace_in(kStep2, 0, word);
    if (ending && ending->rule == kAgain) replace_in(kStep2, 0, word);  // now it ends in -al: at most once more
    replace_in(kStep3, 0, word);
    replace_in(kStep4, 1, word);
    step_5(word);
}

}  // namespace

void stem_porter(std::string_view word, std::string& stem) {
    if (is_ascii(word)) {
        stem.assign(word);
        stem_units(stem);
        return;
    }
    std::string units;
    to_units(word, Count::kCodePoints, units);  // as in Python
    stem_units(units);
    from_units(units, word, stem);
}

}  // namespace mmeval
