#include "meteor_matcher.h"

#include <algorithm>
#include <tuple>

#include "utf8.h"

namespace mmeval {
namespace {

struct SuffixRule {
    std::string_view ending, base_ending;
};

// In this order: the first rule whose result has a synset applies.
constexpr SuffixRule kSuffixRules[] = {
    {"s", ""},    {"ses", "s"}, {"xes", "x"}, {"zes", "z"}, {"ches", "ch"}, {"shes", "sh"}, {"men", "man"}, {"ies", "y"}, {"es", "e"},
    {"es", ""},   {"ed", "e"},  {"ed", ""},   {"ing", "e"}, {"ing", ""},    {"er", ""},     {"est", ""},    {"er", "e"},  {"est", "e"},
};

// Java's String.hashCode().
std::uint32_t hash_code(std::string_view text) {
    std::uint32_t hash = 0;
    for (std::size_t i = 0; i < text.size();) {
        const CodePoint c = decode(text, i);
        i += c.bytes;
        if (c.value > 0xFFFF && c.value != kBadByte) {  // a surrogate pair
            hash = hash * 31 + (0xD7C0 + (c.value >> 10));
            hash = hash * 31 + (0xDC00 | (c.value & 0x3FF));
        } else {
            hash = hash * 31 + c.value;
        }
    }
    return hash;
}

bool ends_with(std::string_view text, std::string_view ending) {
    return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

}  // namespace

std::uint32_t MeteorLexicon::add(std::string_view text) {
    const std::uint32_t id = texts_.add(text);
    if (id < words_.size()) return id;
    Word word;
    word.known_as = data_.word(text);
    word.is_function_word = word.known_as != kMissing && data_.is_function_word(word.known_as);
    if (word.known_as != kMissing) word.phrase = data_.longer(MeteorData::kRoot, word.known_as);
    stemmer_(text, stem_);
    word.hash = hash_code(text);
    word.stem_hash = hash_code(stem_);
    look_up_synsets(text, word);
    words_.push_back(word);
    return id;
}

void MeteorLexicon::add_synsets(std::uint32_t known_as) {
    const Span synsets = data_.synsets(known_as);
    synsets_.insert(synsets_.end(), synsets.begin(), synsets.end());
}

void MeteorLexicon::look_up_synsets(std::string_view text, Word& word) {
    word.first_synset = static_cast<std::uint32_t>(synsets_.size());
    Span bases{nullptr, 0};
    if (word.known_as != kMissing) {
        add_synsets(word.known_as);
        bases = data_.exception_bases(word.known_as);
    }
    if (bases.size > 0) {
        for (const std::uint32_t base : bases) add_synsets(base);
    } else if (text.size() > 2 && !ends_with(text, "ss")) {
        for (const SuffixRule& rule : kSuffixRules) {
            if (!ends_with(text, rule.ending)) continue;
            base_.assign(text.substr(0, text.size() - rule.ending.size()));
            base_ += rule.base_ending;
            const std::uint32_t base = data_.word(base_);
            if (base == kMissing || data_.synsets(base).size == 0) continue;
            add_synsets(base);
            break;
        }
    }
    const auto begin = synsets_.begin() + word.first_synset;
    std::sort(begin, synsets_.end());
    synsets_.erase(std::unique(begin, synsets_.end()), synsets_.end());
    word.synsets = static_cast<std::uint32_t>(synsets_.size()) - word.first_synset;
    for (auto synset = synsets_.begin() + word.first_synset; synset != synsets_.end(); ++synset)
        word.synset_mask |= std::uint64_t{1} << (*synset * 0x9E3779B1u >> 26);
}

bool MeteorLexicon::are_synonyms(std::uint32_t a, std::uint32_t b) {
    Answer& answer = place(synonyms_, a, b);
    if (answer.a != a || answer.b != b) answer = {a, b, share_synset(words_[a], words_[b])};
    return answer.value != 0;
}

std::uint32_t MeteorLexicon::longer(std::uint32_t node, std::uint32_t word) {
    if (word == kMissing) return kMissing;
    Answer& answer = place(phrases_, node, word);
    if (answer.a != node || answer.b != word) answer = {node, word, data_.longer(node, word)};
    return answer.value;
}

bool MeteorLexicon::share_synset(const Word& a, const Word& b) const {
    const std::uint32_t *x = synsets_.data() + a.first_synset, *y = synsets_.data() + b.first_synset;
    const std::uint32_t *x_end = x + a.synsets, *y_end = y + b.synsets;
    while (x != x_end && y != y_end) {
        if (*x == *y) return true;
        *x < *y ? ++x : ++y;
    }
    return false;
}

void MeteorText::look_up(MeteorLexicon& lexicon) {
    hashes.clear();
    stem_hashes.clear();
    synset_masks.clear();
    phrases.clear();
    nodes_mask.fill(0);
    for (std::uint32_t start = 0; start < words.size(); ++start) {
        const MeteorLexicon::Word& first = lexicon[words[start]];
        hashes.push_back(first.hash);
        stem_hashes.push_back(first.stem_hash);
        synset_masks.push_back(first.synset_mask);
        std::uint32_t node = first.phrase;
        for (std::uint32_t end = start + 1; node != kMissing; ++end) {
            phrases.push_back({node, start, static_cast<std::uint16_t>(end - start)});
            nodes_mask[node >> 6 & 7] |= std::uint64_t{1} << (node & 63);
            if (end == words.size()) break;
            node = lexicon.longer(node, lexicon[words[end]].known_as);
        }
    }
    by_node = phrases;
    std::sort(by_node.begin(), by_node.end(), [](const Phrase& a, const Phrase& b) {
        return a.node != b.node ? a.node < b.node : a.start < b.start;
    });
}

template <typename Accepts>
bool MeteorMatcher::find_words(std::size_t candidate_words, std::size_t reference_words, Module module, Accepts accepts) {
    for (std::uint32_t i = 0; i < candidate_words; ++i) {
        for (std::uint32_t j = 0; j < reference_words; ++j)
            if (accepts(i, j)) matches_.push_back({i, j, 1, 1, module});
        if (matches_.size() > kMostMatches) return false;
    }
    return true;
}

// Looks up every phrase of `keys` and searches for its paraphrases in `others`.
bool MeteorMatcher::find_paraphrases(const MeteorData& data, const MeteorText& keys, const MeteorText& others,
                                     bool keys_are_reference) {
    for (const MeteorText::Phrase& key : keys.phrases) {
        for (const std::uint32_t node : data.paraphrases(key.node)) {
            if (!others.may_have(node)) continue;
            auto other = std::lower_bound(others.by_node.begin(), others.by_node.end(), node,
                                          [](const MeteorText::Phrase& phrase, std::uint32_t n) { return phrase.node < n; });
            for (; other != others.by_node.end() && other->node == node; ++other) {
                const auto& [in_candidate, in_reference] = keys_are_reference ? std::tie(*other, key) : std::tie(key, *other);
                matches_.push_back({in_candidate.start, in_reference.start, in_candidate.words, in_reference.words, kParaphrase});
            }
            if (matches_.size() > kMostMatches) return false;
        }
    }
    return true;
}

bool MeteorMatcher::find(MeteorLexicon& lexicon, const MeteorText& candidate, const MeteorText& reference) {
    matches_.clear();
    const std::size_t words = candidate.words.size(), others = reference.words.size();
    if (others > 0 && words > kMostPairs / others) return false;
    const auto same = [&](std::size_t i, std::size_t j) { return candidate.hashes[i] == reference.hashes[j]; };
    if (!find_words(words, others, kExact, same)) return false;
    if (candidate.hashes == reference.hashes) return true;
    const auto same_stem = [&](std::size_t i, std::size_t j) {
        return candidate.stem_hashes[i] == reference.stem_hashes[j] && !same(i, j);
    };
    const auto synonyms = [&](std::size_t i, std::size_t j) {
        return (candidate.synset_masks[i] & reference.synset_masks[j]) != 0 && !same(i, j) &&
               lexicon.are_synonyms(candidate.words[i], reference.words[j]);
    };
    return find_words(words, others, kStem, same_stem) && find_words(words, others, kSynonym, synonyms) &&
           find_paraphrases(lexicon.data(), reference, candidate, true) &&
           find_paraphrases(lexicon.data(), candidate, reference, false);
}

}  // namespace mmeval
