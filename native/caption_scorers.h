// The n-gram metrics as scorers: a loop over a batch calls them image by image.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "ngrams.h"
#include "span.h"

namespace mmeval {

inline std::size_t grams_of(std::size_t words, int order) {
    return words + 1 > static_cast<std::size_t>(order) ? words + 1 - order : 0;
}

// Counts of the n-grams in a text, by number. Clearing takes as long as filling.
class Counter {
public:
    // Starts with no text and numbers below `size`.
    void start(std::size_t size) {
        for (const std::uint32_t node : seen_) counts_[node] = 0;
        seen_.clear();
        if (counts_.size() < size) counts_.resize(size, 0);
    }

    // `nodes` are the n-grams of a text of `words` words, order by order.
    void fill(Span nodes, std::size_t words) {
        for (const std::uint32_t node : seen_) counts_[node] = 0;
        seen_.clear();
        const std::uint32_t* at = nodes.begin();
        for (int n = 0; n < kOrders; ++n) {
            order_begin_[n] = seen_.size();
            for (const std::uint32_t* end = at + grams_of(words, n + 1); at != end; ++at)
                if (counts_[*at]++ == 0) seen_.push_back(*at);
        }
        order_begin_[kOrders] = seen_.size();
    }
    std::uint32_t operator[](std::uint32_t node) const { return counts_[node]; }

    // The distinct n-grams of order n + 1, in the order of their first occurrence.
    Span order(int n) const { return {seen_.data() + order_begin_[n], order_begin_[n + 1] - order_begin_[n]}; }

private:
    std::vector<std::uint32_t> counts_;
    std::vector<std::uint32_t> seen_;
    std::size_t order_begin_[kOrders + 1] = {};
};

constexpr double kSigma = 6.0;
constexpr double kE = 2.718281828459045;  // used with pow, because exp can differ from it in the last bit
constexpr double kTiny = 1e-15, kSmall = 1e-9;  // coco-caption's guards against 0 / 0

// BLEU-1..4 from counts, as coco-caption computes it for an image and for a corpus.
inline void bleu_from_stats(const double* stats, double* scores) {
    double product = 1.0;
    for (int k = 0; k < kOrders; ++k) {
        product *= (stats[k] + kTiny) / (stats[kOrders + k] + kSmall);
        scores[k] = std::pow(product, 1.0 / (k + 1));
    }
    const double ratio = (stats[2 * kOrders] + kTiny) / (stats[2 * kOrders + 1] + kSmall);
    if (ratio < 1)
        for (int k = 0; k < kOrders; ++k) scores[k] *= std::exp(1 - 1 / ratio);
}

// The loop calls start() for a block of images; then candidate() for an image, reference() for each of its references, then image() for the score.
class CiderScorer {
public:
    explicit CiderScorer(double* out, int orders = kOrders) : orders_(orders), out_(out) {}
    void start(std::size_t, const double* idf) { idf_ = idf; }  // the idf of the n-grams that come next, by number

    void candidate(const Counter& counts, std::size_t words) {
        bigrams_ = static_cast<double>(grams_of(words, 2));
        references_ = 0;
        for (int n = 0; n < orders_; ++n) {
            sums_[n] = 0.0;
            nodes_[n].assign(counts.order(n).begin(), counts.order(n).end());
            values_[n].clear();
            double squares = 0.0;
            for (const std::uint32_t node : nodes_[n]) {
                values_[n].push_back(counts[node] * idf_[node]);
                squares += values_[n].back() * values_[n].back();
            }
            norms_[n] = std::sqrt(squares);
        }
    }

protected:
    // The similarity of candidate and reference in one order. `share` is the contribution of an n-gram in both.
    template <typename Share>
    double similarity(const Counter& counts, int n, Share share) const {
        double shared = 0.0, squares = 0.0;
        for (std::size_t i = 0; i < nodes_[n].size(); ++i) {
            const std::uint32_t node = nodes_[n][i];
            if (counts[node] > 0) shared += share(values_[n][i], counts[node] * idf_[node]);
        }
        for (const std::uint32_t node : counts.order(n)) {
            const double value = counts[node] * idf_[node];
            squares += value * value;
        }
        const double norms = norms_[n] * std::sqrt(squares);
        return norms != 0 ? shared / norms : shared;
    }
    void finish(std::size_t image, double scale) {
        double sum = 0.0;
        for (int n = 0; n < orders_; ++n) sum += sums_[n];
        out_[image] = sum / orders_ / references_ * scale;
    }

    int orders_;  // n-grams of 1 to this many words
    double bigrams_ = 0.0, references_ = 0.0, sums_[kOrders] = {};

private:
    const double* idf_ = nullptr;
    double* out_;
    std::vector<std::uint32_t> nodes_[kOrders];
    std::vector<double> values_[kOrders];
    double norms_[kOrders] = {};
};

class PlainCider : public CiderScorer {
public:
    using CiderScorer::CiderScorer;
    void reference(const Counter& counts, std::size_t) {
        ++references_;
        // Relative frequencies instead of counts would divide numerator and norms by the same value. Rounding can lift
        // a perfect match above 1.
        for (int n = 0; n < orders_; ++n)
            sums_[n] += at_most_1(similarity(counts, n, [](double c, double r) { return c * r; }));
    }
    void image(std::size_t number) { finish(number, 1.0); }

private:
    static double at_most_1(double value) { return value > 1.0 ? 1.0 : value; }  // a NaN stays a NaN
};

class CiderD : public CiderScorer {
public:
    using CiderScorer::CiderScorer;
    void reference(const Counter& counts, std::size_t words) {
        ++references_;
        const double delta = bigrams_ - static_cast<double>(grams_of(words, 2));
        const double penalty = std::pow(kE, -(delta * delta) / (2 * kSigma * kSigma));
        for (int n = 0; n < orders_; ++n)
            sums_[n] += similarity(counts, n, [](double c, double r) { return std::min(c, r) * r; }) * penalty;
    }
    void image(std::size_t number) { finish(number, 10.0); }
};

// CIDEr-D with other penalties: for the repetition of words, and for a length that differs in proportion to the reference's.
class CiderR : public CiderScorer {
public:
    // `repetition` has the penalty of each reference, in the order in which they come.
    CiderR(double* out, int orders, const double* repetition) : CiderScorer(out, orders), repetition_(repetition) {}
    void reference(const Counter& counts, std::size_t words) {
        ++references_;
        const double length = static_cast<double>(grams_of(words, 2)) + 1, delta = length - (bigrams_ + 1);
        const double by_length = std::pow(kE, -(delta * delta) / (length * length));
        const double penalty = std::pow(*repetition_++, kRepetitionWeight) * std::pow(by_length, kLengthWeight);
        for (int n = 0; n < orders_; ++n)
            sums_[n] += similarity(counts, n, [](double c, double r) { return std::min(c, r) * r; }) * penalty;
    }
    void image(std::size_t number) { finish(number, 10.0); }

private:
    static constexpr double kRepetitionWeight = 0.8, kLengthWeight = 0.2;
    const double* repetition_;
};

class Bleu {
public:
    Bleu(double* scores, double* stats) : scores_(scores), stats_(stats) {}
    void start(std::size_t nodes, const double*) {
        if (most_.size() < nodes) most_.resize(nodes, 0);
    }

    void candidate(const Counter& counts, std::size_t words) {
        length_ = words;
        distance_ = static_cast<std::size_t>(-1);
        for (int n = 0; n < kOrders; ++n) {
            nodes_[n].assign(counts.order(n).begin(), counts.order(n).end());
            counts_[n].clear();
            for (const std::uint32_t node : nodes_[n]) counts_[n].push_back(counts[node]);
        }
    }
    void reference(const Counter& counts, std::size_t words) {
        for (const auto& nodes : nodes_)
            for (const std::uint32_t node : nodes) most_[node] = std::max(most_[node], counts[node]);
        const std::size_t away = words > length_ ? words - length_ : length_ - words;
        if (away < distance_ || (away == distance_ && words < closest_)) {
            distance_ = away;
            closest_ = words;
        }
    }
    void image(std::size_t number) {
        double* row = stats_ + number * kBleuStats;
        for (int n = 0; n < kOrders; ++n) {
            std::uint32_t correct = 0;
            for (std::size_t i = 0; i < nodes_[n].size(); ++i) {
                correct += std::min(counts_[n][i], most_[nodes_[n][i]]);
                most_[nodes_[n][i]] = 0;
            }
            row[n] = correct;
            row[kOrders + n] = static_cast<double>(grams_of(length_, n + 1));
        }
        row[2 * kOrders] = static_cast<double>(length_);
        row[2 * kOrders + 1] = static_cast<double>(closest_);
        bleu_from_stats(row, scores_ + number * kOrders);
    }

private:
    std::vector<std::uint32_t> most_;  // the largest count of each candidate n-gram in any reference
    std::vector<std::uint32_t> nodes_[kOrders], counts_[kOrders];
    std::size_t length_ = 0, closest_ = 0, distance_ = 0;
    double *scores_, *stats_;
};

}  // namespace mmeval
