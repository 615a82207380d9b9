// The Snowball Russian stemmer, in its current version and that of 2014. It works on bytes: it only removes letters
// from the end of a word, which all have two bytes, and their first byte is never a second byte.
#include "stemmer_parts.h"
#include "stemmers.h"

namespace mmeval {
namespace {

enum Rule { kAlways, kAfterA /* after an а or я, which stays */ };

constexpr std::size_t kLetter = 2;  // bytes

constexpr EndingTable kPerfectiveGerund({
    {"в", "", kAfterA}, {"вши", "", kAfterA}, {"вшись", "", kAfterA}, {"ив", ""}, {"ивши", ""}, {"ившись", ""},
    {"ыв", ""}, {"ывши", ""}, {"ывшись", ""},
});
constexpr EndingTable kReflexive({{"ся", ""}, {"сь", ""}});
constexpr EndingTable kAdjective({
    {"ее", ""}, {"ие", ""}, {"ые", ""}, {"ое", ""}, {"ими", ""}, {"ыми", ""}, {"ей", ""}, {"ий", ""}, {"ый", ""},
    {"ой", ""}, {"ем", ""}, {"им", ""}, {"ым", ""}, {"ом", ""}, {"его", ""}, {"ого", ""}, {"ему", ""}, {"ому", ""},
    {"их", ""}, {"ых", ""}, {"ую", ""}, {"юю", ""}, {"ая", ""}, {"яя", ""}, {"ою", ""}, {"ею", ""},
});
constexpr EndingTable kParticiple({
    {"ем", "", kAfterA}, {"нн", "", kAfterA}, {"вш", "", kAfterA}, {"ющ", "", kAfterA}, {"щ", "", kAfterA},
    {"ивш", ""}, {"ывш", ""}, {"ующ", ""},
});
constexpr EndingTable kVerb({
    {"ла", "", kAfterA}, {"на", "", kAfterA}, {"ете", "", kAfterA}, {"йте", "", kAfterA}, {"ли", "", kAfterA},
    {"й", "", kAfterA}, {"л", "", kAfterA}, {"ем", "", kAfterA}, {"н", "", kAfterA}, {"ло", "", kAfterA},
    {"но", "", kAfterA}, {"ет", "", kAfterA}, {"ют", "", kAfterA}, {"ны", "", kAfterA}, {"ть", "", kAfterA},
    {"ешь", "", kAfterA}, {"нно", "", kAfterA},
    {"ила", ""}, {"ыла", ""}, {"ена", ""}, {"ейте", ""}, {"уйте", ""}, {"ите", ""}, {"или", ""}, {"ыли", ""},
    {"ей", ""}, {"уй", ""}, {"ил", ""}, {"ыл", ""}, {"им", ""}, {"ым", ""}, {"ен", ""}, {"ило", ""}, {"ыло", ""},
    {"ено", ""}, {"ят", ""}, {"ует", ""}, {"уют", ""}, {"ит", ""}, {"ыт", ""}, {"ены", ""}, {"ить", ""},
    {"ыть", ""}, {"ишь", ""}, {"ую", ""}, {"ю", ""},
});
constexpr EndingTable kNoun({
    {"а", ""}, {"ев", ""}, {"ов", ""}, {"ие", ""}, {"ье", ""}, {"е", ""}, {"иями", ""}, {"ями", ""}, {"ами", ""},
    {"еи", ""}, {"ии", ""}, {"и", ""}, {"ией", ""}, {"ей", ""}, {"ой", ""}, {"ий", ""}, {"й", ""}, {"иям", ""},
    {"ям", ""}, {"ием", ""}, {"ем", ""}, {"ам", ""}, {"ом", ""}, {"о", ""}, {"у", ""}, {"ах", ""}, {"иях", ""},
    {"ях", ""}, {"ы", ""}, {"ь", ""}, {"ию", ""}, {"ью", ""}, {"ю", ""}, {"ия", ""}, {"ья", ""}, {"я", ""},
});
constexpr EndingTable kI({{"и", ""}});
constexpr EndingTable kDerivational({{"ост", ""}, {"ость", ""}});
constexpr EndingTable kSuperlative({{"ейш", ""}, {"ейше", ""}});

bool is_vowel_at(std::string_view word, std::size_t i) {
    if (i + 1 >= word.size()) return false;
    const auto second = static_cast<unsigned char>(word[i + 1]);
    if (word[i] == '\xd0') return second == 0xb0 || second == 0xb5 || second == 0xb8 || second == 0xbe;  // а е и о
    if (word[i] != '\xd1') return false;
    return second == 0x83 || second == 0x8b || (second >= 0x8d && second <= 0x8f);  // у ы э ю я
}

std::size_t after_vowel(std::string_view word, std::size_t i) {
    while (i < word.size() && !is_vowel_at(word, i)) ++i;
    return i < word.size() ? i + kLetter : i;
}

// The result may be in the middle of a consonant. That is harmless, because regions are compared with starts of
// letters.
std::size_t after_consonant(std::string_view word, std::size_t i) {
    while (i < word.size() && is_vowel_at(word, i)) i += kLetter;
    return i < word.size() ? i + 1 : i;
}

class RussianWord {
public:
    explicit RussianWord(std::string& word) : word_(word) {
        region_ = after_vowel(word, 0);
        region2_ = after_consonant(word, after_vowel(word, after_consonant(word, region_)));
    }

    void stem() {
        if (!cut(kPerfectiveGerund)) {
            cut(kReflexive);
            if (cut(kAdjective)) {
                cut(kParticiple);
            } else if (!cut(kVerb)) {
                cut(kNoun);
            }
        }
        cut(kI);
        cut_derivational();
        tidy_up();
    }

private:
    std::string_view region() const { return std::string_view(word_).substr(region_); }
    void drop(std::size_t letters) { word_.resize(word_.size() - letters * kLetter); }

    template <std::size_t N>
    bool cut(const EndingTable<N>& table) {
        const Ending* ending = table.find(region());
        if (!ending) return false;
        if (ending->rule == kAfterA) {
            const std::string_view rest = region().substr(0, region().size() - ending->text.size());
            if (!has_ending(rest, "а") && !has_ending(rest, "я")) return false;
        }
        word_.resize(word_.size() - ending->text.size());
        return true;
    }

    void cut_derivational() {
        const Ending* ending = kDerivational.find(region());
        if (ending && word_.size() - ending->text.size() >= region2_) replace_ending(word_, *ending);
    }

    void tidy_up() {
        if (cut(kSuperlative) || !has_ending(region(), "ь")) {
            if (has_ending(region(), "нн")) drop(1);
        } else {
            drop(1);
        }
    }

    std::string& word_;
    std::size_t region_;   // after the first vowel: nothing before it is removed
    std::size_t region2_;  // after the second consonant that follows a vowel
};

// No other bytes can look like a ё, because its first byte is never a second byte.
void replace_yo(std::string& word) {
    for (std::size_t i = 0; i + 1 < word.size(); ++i)
        if (word[i] == '\xd1' && word[i + 1] == '\x91') word.replace(i, kLetter, "е");
}

}  // namespace

void stem_russian(std::string_view word, std::string& stem) {
    stem.assign(word);
    replace_yo(stem);
    RussianWord(stem).stem();
}

void stem_russian_2014(std::string_view word, std::string& stem) {
    stem.assign(word);
    RussianWord(stem).stem();
}

}  // namespace mmeval
