// ROUGE as the package rouge-score computes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "captions.h"
#include "span.h"

namespace mmeval {

// Texts as words of a to z and 0 to 9, in lower case and if requested stemmed, with the ends of their lines.
class RougeTexts {
public:
    static constexpr std::size_t kColumns = 3;  // F-measure, precision, recall

    RougeTexts(const Texts& texts, bool with_stems);

    std::size_t samples() const { return sample_ends_.size(); }
    // Into samples x kColumns: those of the reference with the largest F-measure, the first of equal ones.
    void words(double* out) const;
    void pairs(double* out) const;
    void summary_lcs(double* out) const;

private:
    Span words_of(std::size_t text) const;
    Span line(std::size_t number) const;
    std::size_t first_line(std::size_t text) const { return text == 0 ? 0 : text_ends_[text - 1]; }
    template <typename Matcher>
    void ngrams(Matcher matcher, std::size_t order, double* out) const;
    template <typename Score>
    void best_of(double* out, Score score) const;

    std::size_t most_words_ = 0;  // different ones in a sample
    std::vector<std::uint32_t> tokens_;  // numbers of words, from 0 in each sample
    std::vector<std::uint64_t> line_ends_;    // in tokens; lines without words are left out
    std::vector<std::uint64_t> text_ends_;    // in lines
    std::vector<std::uint64_t> sample_ends_;  // in texts
};

}  // namespace mmeval
