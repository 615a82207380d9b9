// The statistics of BLEU as sacrebleu computes it, and the score of one sentence.
#pragma once

#include <cstddef>
#include <cstdint>

#include "captions.h"
#include "tokenizers.h"

namespace mmeval {

enum class Smoothing : std::uint8_t { kNone, kFloor, kAddK, kExp };

struct BleuOptions {
    Tokenizer tokenize = nullptr;
    bool lowercase = false, effective_order = false;
    Smoothing smoothing = Smoothing::kExp;
    double smooth_value = 0;
    std::size_t orders = 4;

    // Length, closest reference length, n-grams of each order that match, n-grams of each order.
    std::size_t statistics() const { return 2 + 2 * orders; }
};

double sacrebleu_from_stats(const double* stats, const BleuOptions& options);

// Into one score and `stride` statistics per sample, of which the first options.statistics() are set.
void sentence_bleu(const Texts& texts, const BleuOptions& options, std::size_t stride, double* scores, double* stats);

}  // namespace mmeval
