// chrF and chrF++ as sacrebleu computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "captions.h"
#include "ngram_matcher.h"
#include "sample_words.h"

namespace mmeval {

struct ChrfOptions {
    std::size_t char_order = 6, word_order = 0;
    double beta = 2;
    bool lowercase = false, whitespace = false, eps_smoothing = false;

    std::size_t orders() const { return char_order + word_order; }
    // For each order the n-grams of the candidate and of the reference, and those that both have.
    std::size_t statistics() const { return 3 * orders(); }
};

// The F-score from statistics of a sample or of a corpus, 0 to 100.
double chrf_from_stats(const double* stats, const ChrfOptions& options);

class Chrf {
public:
    explicit Chrf(const ChrfOptions& options) : options_(options) {}
    // Into one score and `stride` statistics per sample, of which the first are those of the reference with the largest
    // F-score.
    void score(const Texts& texts, std::size_t stride, double* scores, double* stats);

private:
    struct Symbols {
        std::vector<std::uint32_t> characters, words;
    };

    void read(std::string_view text, Symbols& out);
    void add_word(std::string_view word, std::vector<std::uint32_t>& words);
    void count(const std::vector<Symbols>& texts, bool of_words, std::size_t orders, double* stats);
    double choose(std::size_t references, double* stats) const;

    ChrfOptions options_;
    SampleWords words_;
    NgramMatcher matcher_;
    std::string lowered_;
    std::vector<Symbols> symbols_;
    std::vector<Span> spans_;
    std::vector<double> each_;  // statistics of each reference
};

}  // namespace mmeval
