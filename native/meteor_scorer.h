// METEOR 1.5 of captions, equal to the published program's: normalised, matched, aligned and weighted.
#pragma once

#include <cstdint>

#include "captions.h"
#include "meteor_beam.h"
#include "meteor_data.h"
#include "meteor_normalizer.h"
#include "stemmers.h"
#include "tokenizers.h"

namespace mmeval {

struct MeteorParameters {
    double alpha, beta, gamma, delta;
    double weights[kModules];
};

// What a segment's score is made of, and summed over segments the corpus': words of candidate and reference, function
// words of both, for each module content words matched on both sides and function words matched on both sides, then
// chunks and all words matched on both sides.
struct MeteorStats {
    static constexpr std::size_t kSize = 4 + 4 * kModules + 3;
    enum { kWords = 0, kFunctionWords = 2, kMatched = 4, kChunks = 4 + 4 * kModules, kAllMatched };  // two sides each
};

double meteor_from_stats(const double* stats, const MeteorParameters& parameters);

class MeteorScorer {
public:
    MeteorScorer(const MeteorData& data, Stemmer stemmer, MeteorNormalizer::Apostrophes apostrophes,
                 const MeteorParameters& parameters)
        : data_(data), normalizer_(data.prefixes(), apostrophes), stemmer_(stemmer), parameters_(parameters) {}

    // For each image the score of its best reference (the first of equals) and the statistics behind it. An image whose
    // texts are too long to align has a NaN. `tokenize` may be nullptr: then the normaliser gets the texts as they are.
    void score(const Texts& texts, Tokenizer tokenize, std::size_t threads, double* scores, double* stats) const;

private:
    const MeteorData& data_;
    MeteorNormalizer normalizer_;
    Stemmer stemmer_;
    MeteorParameters parameters_;
};

}  // namespace mmeval
