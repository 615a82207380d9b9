// METEOR of 2005 and its plain harmonic mean: words matched stage by stage (same word, same stem, synonyms) along the
// alignment with the fewest crossings.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "captions.h"
#include "ngrams.h"
#include "staged_aligner.h"
#include "stemmers.h"
#include "tokenizers.h"

namespace mmeval {

class StagedMeteor {
public:
    // The columns of an image: its score; for the best reference the matches, words of the candidate, words of the
    // reference, chunks and crossings; and whether the alignments of all references are proven to be the best.
    enum Column { kScore, kMatches, kCandidateWords, kReferenceWords, kChunks, kCrossings, kProven, kColumns };

    StagedMeteor(const Texts& texts, Tokenizer tokenize, Stemmer stemmer);

    std::size_t images() const { return image_ends_.size(); }
    const Vocabulary& words() const { return words_; }  // distinct
    // The sorted synsets of each word, concatenated. Without this call there are no synonyms.
    void set_synsets(std::vector<std::uint32_t> synsets, const std::vector<std::uint64_t>& ends);

    void score(bool with_penalty, std::size_t threads, double* rows) const;  // images x kColumns
    Alignment align(std::size_t image, std::size_t reference) const;        // both counted from 0

private:
    using Words = std::vector<AlignerWord>;
    void read(std::size_t text, Words& out) const;
    std::size_t first_text(std::size_t image) const { return image == 0 ? 0 : image_ends_[image - 1]; }

    Vocabulary words_, stems_;
    std::vector<AlignerWord> by_word_;
    std::vector<std::uint32_t> synsets_;
    std::vector<std::uint32_t> tokens_;
    std::vector<std::uint64_t> token_ends_, image_ends_;
};

}  // namespace mmeval
