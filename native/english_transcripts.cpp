// Whisper's normalizer for English, as described in appendix C of Radford et al. (2022), Robust Speech Recognition via
// Large-Scale Weak Supervision.
#include "transcript_rules.h"

namespace mmeval {
namespace {

struct Pair {
    std::u32string_view first, second, expansion;
};
// Two words with an apostrophe between them.
constexpr Pair kPairs[] = {
    {U"won", U"t", U"will not"}, {U"can", U"t", U"can not"}, {U"let", U"s", U"let us"}, {U"ain", U"t", U"aint"},
    {U"y", U"all", U"you all"}, {U"i", U"ma", U"i am going to"}, {U"ma", U"am", U"madam"},
};

// Words. Titles have a space after them, so that they stay apart from what follows.
constexpr std::u32string_view kWords[][2] = {
    {U"wanna", U"want to"}, {U"kinda", U"kind of"}, {U"sorta", U"sort of"}, {U"dunno", U"do not know"},
    {U"gotta", U"got to"}, {U"gonna", U"going to"}, {U"imma", U"i am going to"}, {U"woulda", U"would have"},
    {U"coulda", U"could have"}, {U"shoulda", U"should have"}, {U"cause", U"because"}, {U"mr", U"mister "},
    {U"mrs", U"missus "}, {U"st", U"saint "}, {U"dr", U"doctor "}, {U"prof", U"professor "}, {U"capt", U"captain "},
    {U"gov", U"governor "}, {U"ald", U"alderman "}, {U"gen", U"general "}, {U"sen", U"senator "},
    {U"rep", U"representative "}, {U"pres", U"president "}, {U"rev", U"reverend "}, {U"hon", U"honorable "},
    {U"asst", U"assistant "}, {U"assoc", U"associate "}, {U"lt", U"lieutenant "}, {U"col", U"colonel "},
    {U"jr", U"junior "}, {U"sr", U"senior "}, {U"esq", U"esquire "},
};

// An apostrophe with a verb; with "been" and the like it is the perfect tense.
constexpr Pair kPerfects[] = {
    {U"d", U"been", U" had been"}, {U"s", U"been", U" has been"}, {U"d", U"gone", U" had gone"},
    {U"s", U"gone", U" has gone"}, {U"d", U"done", U" had done"}, {U"s", U"got", U" has got"},
};
constexpr std::u32string_view kEndings[][2] = {
    {U"re", U" are"}, {U"s", U" is"}, {U"d", U" would"}, {U"ll", U" will"},
    {U"t", U" not"}, {U"ve", U" have"}, {U"m", U" am"},
};
constexpr std::u32string_view kHesitations[] = {U"hmm", U"mm", U"mhm", U"mmm", U"uh", U"um"};

bool is_ascii_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_kept(char32_t c) { return c == U'.' || c == U'$' || c == U'¢' || c == U'€' || c == U'£'; }

}  // namespace

EnglishTranscripts::EnglishTranscripts(const SpokenCharacters& characters, const EnglishNumbers::Spellings& spellings)
    : characters_(characters), numbers_(characters, spellings) {
    for (const auto& [word, expansion] : kWords) expansions_.add(std::u32string(word), std::u32string(expansion));
    for (const std::u32string_view word : kHesitations) expansions_.add(std::u32string(word), std::u32string());
}

void EnglishTranscripts::normalize(std::u32string& text, std::u32string& spare) const {
    characters_.lower(text, spare);
    text.swap(spare);
    remove_brackets(text, spare);
    if (text.find(U'\'') == std::u32string::npos) {
        expand_words(text, spare);
    } else {
        remove_hesitations(text, spare);
        join_apostrophes(text, spare);
        expand_pairs(text, spare);
        expand_words(text, spare);
        expand_endings(text, spare);
    }
    remove_commas(text, spare);
    remove_stops(text, spare);
    spare.clear();
    for (char32_t c : text) {
        const std::u32string_view letters = characters_[c].letters;
        if (letters.size() == 1)
            spare += letters[0];
        else
            spare += letters;
    }
    text.swap(spare);
    numbers_.normalize(text, spare);
    if (text.find_first_of(U".$¢€£%") == std::u32string::npos) return;
    remove_symbols(text, spare);
    characters_.collapse(text, spare);
    text.swap(spare);
}

// A full stop that no digit follows becomes a space.
void EnglishTranscripts::remove_stops(std::u32string& text, std::u32string& spare) const {
    if (text.find(U'.') == std::u32string::npos) return;
    spare.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_stop = text[i] == U'.' && (i + 1 == text.size() || !is_ascii_digit(text[i + 1]));
        spare += is_stop ? U' ' : text[i];
        if (is_stop && i + 1 < text.size()) spare += text[++i];
    }
    text.swap(spare);
}

std::size_t EnglishTranscripts::word_end(const std::u32string& text, std::size_t i) const {
    while (i < text.size() && is_word(text[i])) ++i;
    return i;
}

std::u32string_view EnglishTranscripts::word_at(const std::u32string& text, std::size_t i) const {
    return std::u32string_view(text).substr(i, word_end(text, i) - i);
}

// Copies the text and replaces its words: `write(word, i, out)` writes what replaces the word at i and returns the
// position behind what it has read.
template <typename Write>
void EnglishTranscripts::replace_words(std::u32string& text, std::u32string& spare, Write write) const {
    spare.clear();
    for (std::size_t i = 0; i < text.size();) {
        if (is_word(text[i]))
            i = write(word_at(text, i), i, spare);
        else
            spare += text[i++];
    }
    text.swap(spare);
}

void EnglishTranscripts::remove_hesitations(std::u32string& text, std::u32string& spare) const {
    replace_words(text, spare, [](std::u32string_view word, std::size_t i, std::u32string& out) {
        bool is_kept = true;
        for (const std::u32string_view hesitation : kHesitations) is_kept &= word != hesitation;
        if (is_kept) out += word;
        return i + word.size();
    });
}

// White space before an apostrophe is removed.
void EnglishTranscripts::join_apostrophes(std::u32string& text, std::u32string& spare) const {
    spare.clear();
    for (char32_t c : text) {
        if (c == U'\'')
            while (!spare.empty() && characters_.is(spare.back(), SpokenCharacter::kSpace)) spare.pop_back();
        spare += c;
    }
    text.swap(spare);
}

void EnglishTranscripts::expand_pairs(std::u32string& text, std::u32string& spare) const {
    replace_words(text, spare, [&](std::u32string_view word, std::size_t i, std::u32string& out) {
        const std::size_t end = i + word.size();
        const Pair* pair = nullptr;
        if (end < text.size() && text[end] == U'\'')
            for (const Pair& known : kPairs)
                if (word == known.first && word_at(text, end + 1) == known.second) pair = &known;
        out += pair == nullptr ? word : pair->expansion;
        return pair == nullptr ? end : end + 1 + pair->second.size();
    });
}

// Also removes hesitations: a text with apostrophes has none left here.
void EnglishTranscripts::expand_words(std::u32string& text, std::u32string& spare) const {
    replace_words(text, spare, [&](std::u32string_view word, std::size_t i, std::u32string& out) {
        const std::u32string* expansion = expansions_.find(word);
        out += expansion == nullptr ? word : *expansion;
        return i + word.size();
    });
}

// First the perfect tense and "n't", then the other endings: "'ven't" is "have not".
void EnglishTranscripts::expand_endings(std::u32string& text, std::u32string& spare) const {
    for (const auto expand : {&EnglishTranscripts::expand_perfect, &EnglishTranscripts::expand_ending}) {
        spare.clear();
        for (std::size_t i = 0; i < text.size();)
            if (text[i] != U'\'' || !(this->*expand)(text, i, spare)) spare += text[i++];
        text.swap(spare);
    }
}

// The apostrophe at i with the words after it; moves i behind what is written.
bool EnglishTranscripts::expand_perfect(const std::u32string& text, std::size_t& i, std::u32string& out) const {
    const std::u32string_view ending = word_at(text, i + 1);
    const std::size_t end = i + 1 + ending.size();
    if (end < text.size() && text[end] == U' ')
        for (const Pair& perfect : kPerfects)
            if (ending == perfect.first && word_at(text, end + 1) == perfect.second) {
                out += perfect.expansion;
                i = end + 1 + perfect.second.size();
                return true;
            }
    if (ending != U"t" || i == 0 || text[i - 1] != U'n') return false;
    out.pop_back();
    out += U" not";
    i = end;
    return true;
}

bool EnglishTranscripts::expand_ending(const std::u32string& text, std::size_t& i, std::u32string& out) const {
    const std::u32string_view ending = word_at(text, i + 1);
    for (const auto& [known, expansion] : kEndings)
        if (ending == known) {
            out += expansion;
            i += 1 + ending.size();
            return true;
        }
    return false;
}

// Commas between digits.
void EnglishTranscripts::remove_commas(std::u32string& text, std::u32string& spare) const {
    if (text.find(U',') == std::u32string::npos) return;
    const auto is_digit = [&](std::size_t i) { return characters_.is(text[i], SpokenCharacter::kDigit); };
    spare.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        spare += text[i];
        if (i + 2 >= text.size() || text[i + 1] != U',' || !is_digit(i) || !is_digit(i + 2)) continue;
        i += 2;
        spare += text[i];
    }
    text.swap(spare);
}

// Symbols that are not part of a number.
void EnglishTranscripts::remove_symbols(std::u32string& text, std::u32string& spare) const {
    spare.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_alone = is_kept(text[i]) && i + 1 < text.size() && !is_ascii_digit(text[i + 1]);
        spare += is_alone ? U' ' : text[i];
        if (is_alone) spare += text[++i];
    }
    text.clear();
    for (std::size_t i = 0; i < spare.size(); ++i) {
        text += spare[i];
        if (is_ascii_digit(spare[i]) || i + 1 >= spare.size() || spare[i + 1] != U'%') continue;
        text += U' ';
        ++i;
    }
}

}  // namespace mmeval
