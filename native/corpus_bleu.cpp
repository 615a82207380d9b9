#include "corpus_bleu.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ngram_matcher.h"
#include "python_text.h"
#include "sample_words.h"

namespace mmeval {
namespace {

constexpr double kLogOfZero = -9999999999.0;

// The length of the reference that is closest; of two equally close ones, the shorter.
std::size_t closest_length(std::size_t length, const std::vector<Span>& references) {
    const auto distance = [&](Span r) { return r.size > length ? r.size - length : length - r.size; };
    const auto best = std::min_element(references.begin(), references.end(), [&](Span a, Span b) {
        return distance(a) != distance(b) ? distance(a) < distance(b) : a.size < b.size;
    });
    return best == references.end() ? 0 : best->size;
}

}  // namespace

double sacrebleu_from_stats(const double* stats, const BleuOptions& options) {
    const double length = stats[0], reference = stats[1];
    const double *correct = stats + 2, *total = correct + options.orders;
    double brevity = 1.0;
    if (length < reference) brevity = length > 0 ? std::exp(1 - reference / length) : 0.0;
    if (std::all_of(correct, total, [](double count) { return count == 0; })) return 0.0;
    double halving = 1.0, logs = 0.0;
    std::size_t used = options.orders;
    bool is_over = false;  // no n-grams of this order
    std::vector<double> precisions(options.orders, 0.0);
    for (std::size_t n = 0; n < options.orders && !is_over; ++n) {
        const double more = options.smoothing == Smoothing::kAddK && n > 0 ? options.smooth_value : 0.0;
        const double hits = correct[n] + more, all = total[n] + more;
        is_over = all == 0;
        if (is_over) break;
        if (options.effective_order) used = n + 1;
        if (hits != 0) {
            precisions[n] = 100.0 * hits / all;
        } else if (options.smoothing == Smoothing::kExp) {
            halving *= 2;
            precisions[n] = 100.0 / (halving * all);
        } else if (options.smoothing == Smoothing::kFloor) {
            precisions[n] = 100.0 * options.smooth_value / all;
        }
    }
    for (std::size_t n = 0; n < used; ++n) logs += precisions[n] == 0 ? kLogOfZero : std::log(precisions[n]);
    return brevity * std::exp(logs / static_cast<double>(used));
}

void sentence_bleu(const Texts& texts, const BleuOptions& options, std::size_t stride, double* scores, double* stats) {
    SampleWords vocabulary;
    NgramMatcher matcher;
    TokenBuffer tokens;
    std::string lowered;
    std::vector<std::vector<std::uint32_t>> words;
    std::vector<Span> references;
    for (std::size_t sample = 0; sample < texts.images(); ++sample, stats += stride) {
        const std::size_t first = texts.first_text(sample), end = texts.image_ends[sample];
        vocabulary.start();
        words.resize(end - first);
        references.clear();
        for (std::size_t text = first; text < end; ++text) {
            std::string_view sentence = texts[text];
            if (options.lowercase) {
                lowered.clear();
                python_lower(sentence, lowered);
                sentence = lowered;
            }
            tokens.clear();
            options.tokenize(python_rstrip(sentence), tokens);
            std::vector<std::uint32_t>& numbers = words[text - first];
            numbers.clear();
            for (std::size_t i = 0; i < tokens.size(); ++i) numbers.push_back(vocabulary.add(tokens[i]));
            if (text > first) references.push_back({numbers.data(), numbers.size()});
        }
        const std::size_t length = words[0].size();
        stats[0] = static_cast<double>(length);
        stats[1] = static_cast<double>(closest_length(length, references));
        matcher.start({words[0].data(), length}, references);
        for (std::size_t n = 0; n < options.orders; ++n) {
            matcher.advance();
            stats[2 + n] = static_cast<double>(matcher.shared_with_any());
            stats[2 + options.orders + n] = static_cast<double>(length > n ? length - n : 0);
        }
        scores[sample] = sacrebleu_from_stats(stats, options);
    }
}

}  // namespace mmeval
