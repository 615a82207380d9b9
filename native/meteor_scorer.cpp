#include "meteor_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "meteor_matcher.h"
#include "parallel.h"

namespace mmeval {
namespace {

using Stats = MeteorStats;

// Precision (side 0) or recall (side 1). All content words are added before any function word, as in the program, to
// get the same last digit.
double weighted_share(const double* stats, int side, const MeteorParameters& p) {
    const double* matched = stats + Stats::kMatched + side;
    double share = 0.0;
    for (int module = 0; module < kModules; ++module) share += matched[4 * module] * p.weights[module] * p.delta;
    for (int module = 0; module < kModules; ++module) share += matched[4 * module + 2] * p.weights[module] * (1 - p.delta);
    const double function_words = stats[Stats::kFunctionWords + side];
    const double content_words = stats[Stats::kWords + side] - function_words;
    return share / (p.delta * content_words + (1 - p.delta) * function_words);
}

// Converts texts to words of a lexicon.
class TextReader {
public:
    TextReader(const Texts& texts, const MeteorNormalizer& normalizer, Tokenizer tokenize, MeteorLexicon& lexicon)
        : texts_(texts), normalizer_(normalizer), tokenize_(texts, tokenize), is_tokenized_(tokenize != nullptr),
          lexicon_(lexicon) {}

    void read(std::size_t image, std::size_t number, MeteorText& out) {
        std::string_view text = texts_[number];
        if (is_tokenized_) {
            tokens_.clear();
            tokenize_(image, number, tokens_);
            joined_.clear();
            for (std::size_t i = 0; i < tokens_.size(); ++i) {
                if (i > 0) joined_ += ' ';
                joined_ += tokens_[i];
            }
            text = joined_;
        }
        words_.clear();
        normalizer_.tokenize(text, words_);
        out.words.clear();
        for (std::size_t i = 0; i < words_.size(); ++i) out.words.push_back(lexicon_.add(words_[i]));
        out.look_up(lexicon_);
    }

private:
    const Texts& texts_;
    const MeteorNormalizer& normalizer_;
    TextTokenizer tokenize_;
    bool is_tokenized_;
    MeteorLexicon& lexicon_;
    TokenBuffer tokens_, words_;
    std::string joined_;
};

void count_words(const MeteorLexicon& lexicon, const MeteorText& text, int side, double* stats) {
    stats[Stats::kWords + side] = static_cast<double>(text.words.size());
    for (const std::uint32_t word : text.words) stats[Stats::kFunctionWords + side] += lexicon[word].is_function_word;
}

void count_matched(const MeteorLexicon& lexicon, const MeteorText& text, std::uint32_t start, std::uint32_t words,
                   Module module, int side, double* stats) {
    for (std::uint32_t i = start; i < start + words; ++i) {
        const int kind = lexicon[text.words[i]].is_function_word ? 2 : 0;
        stats[Stats::kMatched + 4 * module + kind + side] += 1;
    }
    stats[Stats::kAllMatched + side] += words;
}

void stats_of(const MeteorLexicon& lexicon, const MeteorText& candidate, const MeteorText& reference,
              const std::vector<PhraseMatch>& alignment, double* stats) {
    std::fill_n(stats, Stats::kSize, 0.0);
    count_words(lexicon, candidate, 0, stats);
    count_words(lexicon, reference, 1, stats);
    const PhraseMatch* before = nullptr;
    for (const PhraseMatch& match : alignment) {
        count_matched(lexicon, candidate, match.candidate, match.candidate_words, match.module, 0, stats);
        count_matched(lexicon, reference, match.reference, match.reference_words, match.module, 1, stats);
        const bool continues = before != nullptr && before->candidate + before->candidate_words == match.candidate &&
                               before->reference + before->reference_words == match.reference;
        if (!continues) stats[Stats::kChunks] += 1;
        before = &match;
    }
    // If everything matches in one chunk, there is no fragmentation, neither here nor in a corpus.
    const bool whole = stats[Stats::kAllMatched] == stats[Stats::kWords] &&
                       stats[Stats::kAllMatched + 1] == stats[Stats::kWords + 1];
    if (whole && stats[Stats::kChunks] == 1) stats[Stats::kChunks] = 0;
}

}  // namespace

double meteor_from_stats(const double* stats, const MeteorParameters& p) {
    const double matched = (stats[Stats::kAllMatched] + stats[Stats::kAllMatched + 1]) / 2;
    if (matched == 0) return 0.0;
    const double precision = weighted_share(stats, 0, p), recall = weighted_share(stats, 1, p);
    const double mean = 1.0 / ((1.0 - p.alpha) / precision + p.alpha / recall);
    const double penalty = p.gamma * std::pow(stats[Stats::kChunks] / matched, p.beta);
    return std::max(0.0, mean * (1.0 - penalty));
}

void MeteorScorer::score(const Texts& texts, Tokenizer tokenize, std::size_t threads, double* scores,
                         double* stats) const {
    in_pieces(texts.images(), threads, [&](std::size_t, std::size_t begin, std::size_t end) {
        MeteorLexicon lexicon(data_, stemmer_);
        TextReader reader(texts, normalizer_, tokenize, lexicon);
        MeteorMatcher matcher;
        BeamAligner aligner;
        MeteorText candidate, reference;
        double row[Stats::kSize];
        for (std::size_t image = begin; image < end; ++image) {
            const std::size_t first = texts.first_text(image);
            reader.read(image, first, candidate);
            double* best = stats + image * Stats::kSize;
            std::fill_n(best, Stats::kSize, 0.0);
            scores[image] = -1.0;
            for (std::size_t text = first + 1; text < texts.image_ends[image]; ++text) {
                reader.read(image, text, reference);
                if (!matcher.find(lexicon, candidate, reference)) {
                    scores[image] = std::numeric_limits<double>::quiet_NaN();
                    break;
                }
                const auto& alignment = aligner.align(matcher.matches(), candidate.words.size(), reference.words.size());
                stats_of(lexicon, candidate, reference, alignment, row);
                const double value = meteor_from_stats(row, parameters_);
                if (value <= scores[image]) continue;
                scores[image] = value;
                std::copy_n(row, Stats::kSize, best);
            }
        }
    });
}

}  // namespace mmeval
