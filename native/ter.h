// TER as sacrebleu computes it.
#pragma once

#include <cstddef>

#include "captions.h"
#include "ter_tokenizer.h"

namespace mmeval {

constexpr std::size_t kTerStats = 2;  // the fewest edits, and the mean length of the references

// Into one score and `stride` statistics per sample, of which the first kTerStats are set.
void score_ter(const Texts& texts, const TerOptions& options, std::size_t stride, double* scores, double* stats);

}  // namespace mmeval
