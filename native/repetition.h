// The repetition penalty of CIDEr-R.
#pragma once

#include <cstdint>
#include <vector>

#include "ngrams.h"
#include "span.h"

namespace mmeval {

// The geometric mean of 1 / (1 + d) over the different words of a candidate. d is the difference between the counts of the
// word in candidate and reference; for a word that the reference has not, the repetitions in the candidate. Words are what
// \w+ finds in the tokens: "o'clock" is two.
class RepetitionPenalty {
public:
    explicit RepetitionPenalty(const Vocabulary& tokens);
    void candidate(Span tokens);
    double reference(Span tokens);

private:
    template <typename Use>
    void for_each_word(Span tokens, Use use) const {
        for (const std::uint32_t token : tokens)
            for (std::uint64_t i = token == 0 ? 0 : ends_[token - 1]; i < ends_[token]; ++i) use(words_[i]);
    }

    std::vector<std::uint32_t> words_;  // of all tokens
    std::vector<std::uint64_t> ends_;   // in words_, by token
    std::vector<std::int32_t> counts_, other_counts_;  // by word, in the candidate and in the reference
    std::vector<std::uint32_t> different_;             // words of the candidate
};

}  // namespace mmeval
