#include "transcript_rules.h"

namespace mmeval {
namespace {

bool opens(char32_t c) { return c == U'<' || c == U'['; }
bool closes(char32_t c) { return c == U'>' || c == U']'; }

template <typename Opens, typename Closes>
void remove_between(std::u32string& text, std::u32string& spare, Opens opens, Closes closes, bool may_be_empty) {
    spare.clear();
    std::size_t close = 0;  // the next closing bracket after i, once it has been looked for
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (opens(text[i])) {
            if (close <= i)
                for (close = i + 1; close < text.size() && !closes(text[close]); ++close) {
                }
            if (close < text.size() && (may_be_empty || close > i + 1)) {
                i = close;
                continue;
            }
        }
        spare += text[i];
    }
    text.swap(spare);
}

}  // namespace

void remove_brackets(std::u32string& text, std::u32string& spare) {
    if (text.find_first_of(U"<[") != std::u32string::npos) remove_between(text, spare, opens, closes, true);
    if (text.find(U'(') == std::u32string::npos) return;
    remove_between(text, spare, [](char32_t c) { return c == U'('; }, [](char32_t c) { return c == U')'; }, false);
}

void TranscriptRules::strip(std::u32string& text) const {
    std::size_t begin = 0, end = text.size();
    while (begin < end && characters_.is(text[begin], SpokenCharacter::kSpace)) ++begin;
    while (end > begin && characters_.is(text[end - 1], SpokenCharacter::kSpace)) --end;
    text.erase(end);
    text.erase(0, begin);
}

void TranscriptRules::apply(Name name, std::u32string& text, std::u32string& spare) const {
    switch (name) {
        case Name::kJiwer:
            strip(text);
            return;
        case Name::kBasic:
            characters_.lower(text, spare);
            text.clear();
            for (char32_t c : spare)
                if (!characters_.is(c, SpokenCharacter::kPunctuation)) text += c;
            [[fallthrough]];
        case Name::kNone:
            characters_.collapse(text, spare);
            text.swap(spare);
            strip(text);
            return;
        case Name::kWhisperBasic:
            characters_.lower(text, spare);
            text.swap(spare);
            remove_brackets(text, spare);
            characters_.nfkc(text);
            for (char32_t& c : text)
                if (characters_.is(c, SpokenCharacter::kSymbol)) c = U' ';
            characters_.lower(text, spare);
            characters_.collapse(spare, text);
            return;
        case Name::kWhisperEnglish:
            english_.normalize(text, spare);
            return;
    }
}

}  // namespace mmeval
