// METEOR 1.5 of captions, equal to the published program: normalised, matched, aligned and weighted.
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

// The statistics of a segment's score; their sums give the corpus score. Words of candidate and reference, function
// words of both, for each module the content words and the function words matched on both sides, then chunks and all
// words matched on both sides.
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

    // For each image, the score of its best reference (the first of equals) and its statistics. The score is NaN if the
    // texts are too long to align. If `tokenize` is nullptr, the normaliser gets the texts unchanged.
    void score(const Texts& texts, Tokenizer tokenize, std::size_t threads, double* scores, double* stats) const;

private:
    const MeteorData& data_;
    MeteorNormalizer normalizer_;
    Stemmer stemmer_;
    MeteorParameters parameters_;
};

}  // namespace mmeval
