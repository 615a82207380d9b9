// The possible matches between words and phrases of a candidate and a reference in METEOR 1.5: exact, by stem, by a
// common synset, or as paraphrases.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meteor_beam.h"
#include "meteor_data.h"
#include "ngrams.h"
#include "span.h"
#include "stemmers.h"

namespace mmeval {

// METEOR's data about each word, looked up when the word first occurs.
class MeteorLexicon {
public:
    struct Word {
        // The program compares hash codes instead of words and stems, so a few pairs ("ll" and "n.", "so" and "u1")
        // count as equal.
        std::uint32_t hash = 0, stem_hash = 0;
        std::uint32_t known_as = kMissing;  // its number in the data
        std::uint32_t phrase = kMissing;    // as a phrase of one word
        std::uint32_t first_synset = 0, synsets = 0;
        std::uint64_t synset_mask = 0;  // words whose masks have no bit in common share no synset
        bool is_function_word = false;
    };

    MeteorLexicon(const MeteorData& data, Stemmer stemmer) : data_(data), stemmer_(stemmer) {}

    std::uint32_t add(std::string_view word);
    const Word& operator[](std::uint32_t id) const { return words_[id]; }
    const MeteorData& data() const { return data_; }
    bool are_synonyms(std::uint32_t a, std::uint32_t b);
    std::uint32_t longer(std::uint32_t node, std::uint32_t word);  // data().longer, cached

private:
    void look_up_synsets(std::string_view text, Word& word);
    void add_synsets(std::uint32_t known_as);
    bool share_synset(const Word& a, const Word& b) const;

    const MeteorData& data_;
    Stemmer stemmer_;
    Vocabulary texts_;
    std::vector<Word> words_;
    std::vector<std::uint32_t> synsets_;
    // Caches of are_synonyms and longer. A pair has one slot, and a new entry replaces the old one.
    struct Answer {
        std::uint32_t a = kMissing, b = kMissing, value = 0;
    };
    static constexpr int kAnswerBits = 16;
    static Answer& place(std::vector<Answer>& answers, std::uint32_t a, std::uint32_t b) {
        return answers[(a * 0x9E3779B1u ^ b * 0x85EBCA6Bu) >> (32 - kAnswerBits)];
    }
    std::vector<Answer> synonyms_ = std::vector<Answer>(1 << kAnswerBits);
    std::vector<Answer> phrases_ = std::vector<Answer>(1 << kAnswerBits);
    std::string stem_, base_;
};

// A text as words of a lexicon, with its phrases that are in the paraphrase table.
struct MeteorText {
    struct Phrase {
        std::uint32_t node, start;
        std::uint16_t words;
    };
    std::vector<std::uint32_t> words, hashes, stem_hashes;
    std::vector<std::uint64_t> synset_masks;  // of each word, contiguous for the inner loops
    std::vector<Phrase> phrases;  // by start, then by length
    std::vector<Phrase> by_node;  // the same by node, then by start
    std::array<std::uint64_t, 8> nodes_mask;

    // Fills the rest from `words`.
    void look_up(MeteorLexicon& lexicon);
    bool may_have(std::uint32_t node) const { return nodes_mask[node >> 6 & 7] >> (node & 63) & 1; }
};

class MeteorMatcher {
public:
    // Limits for texts of thousands of words, or of a few words repeated very often.
    static constexpr std::size_t kMostPairs = 25'000'000, kMostMatches = 1'000'000;

    // Finds the matches, in the order that breaks the aligner's ties. False if there are too many.
    bool find(MeteorLexicon& lexicon, const MeteorText& candidate, const MeteorText& reference);
    const std::vector<PhraseMatch>& matches() const { return matches_; }

private:
    template <typename Accepts>
    bool find_words(std::size_t candidate_words, std::size_t reference_words, Module module, Accepts accepts);
    bool find_paraphrases(const MeteorData& data, const MeteorText& keys, const MeteorText& others, bool keys_are_reference);

    std::vector<PhraseMatch> matches_;
};

}  // namespace mmeval
