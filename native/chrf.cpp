#include "chrf.h"

#include <algorithm>

#include "python_text.h"

namespace mmeval {
namespace {

constexpr double kEpsilon = 1e-16;

bool is_ascii_punctuation(char c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

Span span_of(const std::vector<std::uint32_t>& symbols) { return {symbols.data(), symbols.size()}; }

}  // namespace

double chrf_from_stats(const double* stats, const ChrfOptions& options) {
    const double factor = options.beta * options.beta;
    double smoothed = 0, precisions = 0, recalls = 0;
    int effective = 0;
    for (std::size_t i = 0; i < options.orders(); ++i, stats += 3) {
        const double precision = stats[0] > 0 ? stats[2] / stats[0] : kEpsilon;
        const double recall = stats[1] > 0 ? stats[2] / stats[1] : kEpsilon;
        const double below = factor * precision + recall;
        smoothed += below > 0 ? (1 + factor) * precision * recall / below : kEpsilon;
        if (stats[0] > 0 && stats[1] > 0) {
            precisions += precision;
            recalls += recall;
            ++effective;
        }
    }
    if (options.eps_smoothing) return 100 * smoothed / static_cast<double>(options.orders());
    if (effective == 0) return 0.0;
    const double precision = precisions / effective, recall = recalls / effective;
    if (precision + recall == 0) return 0.0;
    double score = (1 + factor) * precision * recall;
    score /= factor * precision + recall;
    return 100 * score;
}

void Chrf::add_word(std::string_view word, std::vector<std::uint32_t>& words) {
    const std::size_t first = decode(word, 0).bytes;
    if (word.size() > first && is_ascii_punctuation(word.back())) {
        words.push_back(words_.add(word.substr(0, word.size() - 1)));
        words.push_back(words_.add(word.substr(word.size() - 1)));
    } else if (word.size() > first && is_ascii_punctuation(word.front())) {
        words.push_back(words_.add(word.substr(0, 1)));
        words.push_back(words_.add(word.substr(1)));
    } else {
        words.push_back(words_.add(word));
    }
}

void Chrf::read(std::string_view text, Symbols& out) {
    out.characters.clear();
    out.words.clear();
    if (options_.lowercase) {
        lowered_.clear();
        python_lower(text, lowered_);
        text = lowered_;
    }
    std::size_t word = 0;
    const auto finish = [&](std::size_t end) {
        if (options_.word_order > 0 && end > word) add_word(text.substr(word, end - word), out.words);
    };
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = decode(text, at);
        if (is_python_space(c.value)) {
            finish(at);
            word = at + c.bytes;
            if (options_.whitespace) out.characters.push_back(c.value);
        } else {
            out.characters.push_back(c.value);
        }
        at += c.bytes;
    }
    finish(text.size());
}

void Chrf::count(const std::vector<Symbols>& texts, bool of_words, std::size_t orders, double* stats) {
    const auto symbols = [&](std::size_t text) { return of_words ? span_of(texts[text].words) : span_of(texts[text].characters); };
    spans_.clear();
    for (std::size_t text = 1; text < symbols_.size(); ++text) spans_.push_back(symbols(text));
    matcher_.start(symbols(0), spans_);
    const auto grams = [](Span text, std::size_t order) { return static_cast<double>(text.size < order ? 0 : text.size + 1 - order); };
    for (std::size_t order = 1; order <= orders; ++order, stats += 3) {
        matcher_.advance();
        for (std::size_t i = 0; i < spans_.size(); ++i) {
            double* row = stats + i * options_.statistics();
            row[1] = grams(spans_[i], order);
            row[0] = row[1] > 0 ? grams(symbols(0), order) : 0;  // as sacrebleu: nothing to find, nothing to count
            row[2] = static_cast<double>(matcher_.shared_with(i));
        }
    }
}

double Chrf::choose(std::size_t references, double* stats) const {
    double best = -1;
    for (std::size_t i = 0; i < references; ++i) {
        const double* row = each_.data() + i * options_.statistics();
        const double score = chrf_from_stats(row, options_);
        if (score <= best) continue;
        best = score;
        std::copy_n(row, options_.statistics(), stats);
    }
    return best;
}

void Chrf::score(const Texts& texts, std::size_t stride, double* scores, double* stats) {
    for (std::size_t sample = 0; sample < texts.images(); ++sample, stats += stride) {
        const std::size_t first = texts.first_text(sample), end = texts.image_ends[sample];
        words_.start();
        symbols_.resize(end - first);
        for (std::size_t text = first; text < end; ++text) read(texts[text], symbols_[text - first]);
        each_.assign((end - first - 1) * options_.statistics(), 0.0);
        count(symbols_, false, options_.char_order, each_.data());
        if (options_.word_order > 0) count(symbols_, true, options_.word_order, each_.data() + 3 * options_.char_order);
        scores[sample] = choose(end - first - 1, stats);
    }
}

}  // namespace mmeval
