#include "lint_texts.h"

#include <algorithm>
#include <cstring>

#include "lint_bytes.h"

namespace mmeval {

bool is_ascii(std::string_view text) {
    std::uint64_t bits = 0;
    std::size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, text.data() + i, 8);
        bits |= eight;
    }
    for (; i < text.size(); ++i) bits |= static_cast<std::uint64_t>(text[i]) & 0x80;
    return (bits & 0x8080808080808080u) == 0;
}

std::size_t length_of(Text text) { return text.is_plain ? text.bytes.size() : count_characters(text.bytes); }

namespace {

void split_plain(std::string_view text, Words& out) {
    out.joined.resize(text.size());
    char* next = out.joined.data();
    char* const begin = next;
    bool in_word = false;
    for (const char c : text) {
        const char folded = word_character(c);
        if (folded != 0) {
            *next++ = folded;
        } else if (in_word) {
            out.ends.push_back(static_cast<std::uint32_t>(next - begin));
        }
        in_word = folded != 0;
    }
    if (in_word) out.ends.push_back(static_cast<std::uint32_t>(next - begin));
    out.joined.resize(static_cast<std::size_t>(next - begin));
}

// Calls `add(bytes)` for the case-folded characters of words, and `end()` after each word, until one returns false.
template <typename Add, typename End>
bool each_word(std::string_view text, CharacterReader& reader, Add add, End end) {
    bool in_word = false;
    for (std::size_t i = 0; i < text.size();) {
        if (!is_wide(text[i])) {
            const char folded = word_character(text[i++]);
            if (folded != 0 ? !add(std::string_view(&folded, 1)) : in_word && !end()) return false;
            in_word = folded != 0;
            continue;
        }
        const Character& character = reader.next(text, i);
        if (character.is(Character::kWord)) {
            if (!add(character.folded())) return false;
            in_word = true;
            continue;
        }
        if (in_word && !end()) return false;
        in_word = false;
        if (character.is(Character::kUnspaced) && !(add(character.folded()) && end())) return false;
    }
    return !in_word || end();
}

}  // namespace

void split_words(Text text, CharacterReader& reader, Words& out) {
    out.ends.clear();
    out.is_plain = text.is_plain;
    if (text.is_plain) return split_plain(text.bytes, out);
    out.joined.clear();
    const auto add = [&out](std::string_view bytes) { return out.joined.append(bytes), true; };
    const auto end = [&out] { return out.ends.push_back(static_cast<std::uint32_t>(out.joined.size())), true; };
    each_word(text.bytes, reader, add, end);
}

bool has_words(Text text, CharacterReader& reader, const Words& words) {
    std::size_t word = 0, at = 0;
    const auto add = [&](std::string_view bytes) {
        if (words.joined.compare(at, bytes.size(), bytes) != 0) return false;
        at += bytes.size();
        return true;
    };
    const auto end = [&] { return word < words.size() && at == words.ends[word++]; };
    return each_word(text.bytes, reader, add, end) && word == words.size();
}

bool has_last_word(std::string_view text, std::string_view word) {
    std::size_t end = text.size();
    while (end > 0 && word_character(text[end - 1]) == 0) --end;
    std::size_t start = end;
    while (start > 0 && word_character(text[start - 1]) != 0) --start;
    return end - start == word.size() && starts_with(text.substr(start), word);
}

Text without_space_at_end(Text text, CharacterReader& reader) {
    std::string_view& bytes = text.bytes;
    while (!bytes.empty()) {
        if (!is_wide(bytes.back())) {
            if (!is_space(bytes.back())) break;
            bytes.remove_suffix(1);
        } else {
            if (!reader.last(bytes).is(Character::kSpace)) break;
            bytes.remove_suffix(bytes.size() - step_back(bytes, bytes.size()));
        }
    }
    return text;
}

Text without_space(Text text, CharacterReader& reader) {
    text = without_space_at_end(text, reader);
    while (!text.bytes.empty()) {
        std::size_t next = 1;
        if (is_wide(text.bytes.front())) next = 0;
        if (next == 1 ? !is_space(text.bytes.front()) : !reader.next(text.bytes, next).is(Character::kSpace)) break;
        text.bytes.remove_prefix(next);
    }
    return text;
}

bool is_blank(Text text, CharacterReader& reader) {
    for (std::size_t i = 0; i < text.bytes.size();) {
        if (!is_wide(text.bytes[i])) {
            if (!is_space(text.bytes[i++])) return false;
            continue;
        }
        const Character& character = reader.next(text.bytes, i);
        if (!character.is(Character::kSpace) && !character.is(Character::kFormat)) return false;
    }
    return true;
}

namespace {

bool ends_in_dots(std::string_view text) { return text.size() > 2 && text.substr(text.size() - 3) == "..."; }

}  // namespace

bool ends_open(Text text, CharacterReader& reader) {
    if (text.bytes.empty()) return false;
    const char last = text.bytes.back();
    return is_wide(last) ? reader.last(text.bytes).is(Character::kOpens)
                         : contains(",;:-([{", last) || ends_in_dots(text.bytes);
}

bool ends_closed(Text text, CharacterReader& reader) {
    if (text.bytes.empty()) return false;
    const char last = text.bytes.back();
    return is_wide(last) ? reader.last(text.bytes).is(Character::kCloses)
                         : contains(".!?\"')]}*`", last) && !ends_in_dots(text.bytes);
}

namespace {

constexpr std::size_t kExamined = 5000;  // characters: EXAMINED in text/languages.py

// The number of letters of each script.
struct Scripts {
    std::array<std::uint32_t, 256> counts{};
    std::uint32_t letters = 0;

    void add(std::string_view text, CharacterReader& reader) {
        std::size_t characters = 0;
        for (std::size_t i = 0; i < text.size() && characters < kExamined; ++characters) {
            const std::uint8_t script = reader.next(text, i).script;
            if (script == 0) continue;
            ++counts[script];
            ++letters;
        }
    }

    // The script of at least 3 in 5 letters; 0 for none.
    std::uint8_t dominant() const {
        const auto most = std::max_element(counts.begin(), counts.end());
        return letters < 2 || 5 * std::uint64_t{*most} < 3 * std::uint64_t{letters}
                   ? 0
                   : static_cast<std::uint8_t>(most - counts.begin());
    }
};

}  // namespace

bool is_off_script(Text answer, const std::vector<Text>& references, CharacterReader& reader) {
    if (answer.is_plain && std::all_of(references.begin(), references.end(), [](const Text& text) { return text.is_plain; }))
        return false;  // Latin letters only
    if (answer.is_plain && references[0].is_plain &&
        std::any_of(references[0].bytes.begin(), references[0].bytes.end(), is_letter))
        return false;
    Scripts of_answer;
    of_answer.add(answer.bytes, reader);
    const std::uint8_t script = of_answer.dominant();
    if (script == 0) return false;
    std::uint64_t shared = 0, letters = 0;
    for (const Text& reference : references) {
        Scripts scripts;
        scripts.add(reference.bytes, reader);
        if (scripts.dominant() == script) return false;
        shared += scripts.counts[script];
        letters += scripts.letters;
    }
    return letters > 1 && 5 * shared < letters;
}

}  // namespace mmeval
