#include "ngram_matcher.h"

#include <algorithm>

namespace mmeval {
namespace {

constexpr std::size_t kAhead = 16;  // n-grams that are prefetched

template <typename Grams>
void fill_with_positions(Grams& grams, std::size_t size) {
    grams.resize(size);
    for (std::size_t i = 0; i < size; ++i) grams[i] = {static_cast<std::uint32_t>(i), 0};
}

}  // namespace

void NgramMatcher::start(Span candidate, const std::vector<Span>& references) {
    candidate_ = candidate;
    references_ = references;
    order_ = 0;
    fill_with_positions(grams_, candidate.size);
    if (reference_grams_.size() < references.size()) reference_grams_.resize(references.size());
    for (std::size_t i = 0; i < references.size(); ++i) fill_with_positions(reference_grams_[i], references[i].size);
    shared_.assign(references.size(), 0);
}

void NgramMatcher::advance() {
    ++order_;
    count_candidate();
    most_.assign(counts_.size(), 0);
    for (std::size_t i = 0; i < references_.size(); ++i) count_reference(i);
    shared_with_any_ = 0;
    for (std::size_t number = 0; number < counts_.size(); ++number)
        shared_with_any_ += std::min(counts_[number], most_[number]);
    // If no reference has an n-gram, none has a longer one that starts with it.
    grams_.erase(std::remove_if(grams_.begin(), grams_.end(), [&](const Gram& gram) { return most_[gram.number] == 0; }),
                 grams_.end());
}

void NgramMatcher::count_candidate() {
    while (!grams_.empty() && grams_.back().position + order_ > candidate_.size) grams_.pop_back();
    numbers_.start(grams_.size());
    counts_.clear();
    for (std::size_t i = 0; i < grams_.size(); ++i) {
        Gram& gram = grams_[i];
        if (numbers_.is_large() && i + kAhead < grams_.size()) numbers_.fetch(key(candidate_, grams_[i + kAhead]));
        gram.number = numbers_.add(key(candidate_, gram));
        if (gram.number == counts_.size()) {
            counts_.push_back(1);
        } else {
            ++counts_[gram.number];
        }
    }
    used_.assign(counts_.size(), 0);
}

void NgramMatcher::count_reference(std::size_t reference) {
    const Span text = references_[reference];
    Grams& grams = reference_grams_[reference];
    while (!grams.empty() && grams.back().position + order_ > text.size) grams.pop_back();
    std::size_t kept = 0, shared = 0;
    for (std::size_t i = 0; i < grams.size(); ++i) {
        const Gram gram = grams[i];
        if (numbers_.is_large() && i + kAhead < grams.size()) numbers_.fetch(key(text, grams[i + kAhead]));
        const std::uint32_t number = numbers_.find(key(text, gram));
        if (number == kMissing) continue;
        shared += used_[number]++ < counts_[number];
        grams[kept++] = {gram.position, number};
    }
    grams.resize(kept);
    for (const Gram& gram : grams) {
        most_[gram.number] = std::max(most_[gram.number], used_[gram.number]);
        used_[gram.number] = 0;
    }
    shared_[reference] = shared;
}

}  // namespace mmeval
