// The n-grams that a candidate shares with each of its references, one order after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "key_numbers.h"
#include "span.h"

namespace mmeval {

class NgramMatcher {
public:
    // Starts with a sample. The spans must stay valid.
    void start(Span candidate, const std::vector<Span>& references);

    // Goes on to the next order, from 1.
    void advance();

    // How many n-grams of this order the candidate shares with a reference: the sum of the smaller counts.
    std::size_t shared_with(std::size_t reference) const { return shared_[reference]; }
    // The same with the largest count of each n-gram in any reference.
    std::size_t shared_with_any() const { return shared_with_any_; }

private:
    struct Gram {
        std::uint32_t position;
        std::uint32_t number;  // of the n-gram that starts there, in the order before
    };
    using Grams = std::vector<Gram>;

    std::uint64_t key(Span text, const Gram& gram) const {
        const std::uint64_t last = text.data[gram.position + order_ - 1];
        return order_ == 1 ? last : std::uint64_t{gram.number} << 32 | last;
    }
    void count_candidate();
    void count_reference(std::size_t reference);

    Span candidate_{};
    std::vector<Span> references_;
    Grams grams_;                        // of the candidate, if the reference side can still match them
    std::vector<Grams> reference_grams_;  // those that the candidate has
    KeyNumbers numbers_;
    std::vector<std::uint32_t> counts_, used_, most_;  // by number
    std::vector<std::size_t> shared_;
    std::size_t shared_with_any_ = 0;
    std::size_t order_ = 0;
};

}  // namespace mmeval
