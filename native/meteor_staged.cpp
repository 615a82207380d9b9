#include "meteor_staged.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "parallel.h"

namespace mmeval {
namespace {

// 10PR / (R + 9P); the penalty of 2005 is half the cube of chunks / matches.
double score_of(double matches, double candidate_words, double reference_words, double chunks, bool with_penalty) {
    if (matches == 0) return 0.0;
    const double precision = matches / candidate_words, recall = matches / reference_words;
    const double mean = 10 * precision * recall / (recall + 9 * precision);
    if (!with_penalty) return mean;
    const double fragmentation = chunks / matches;
    return mean * (1 - 0.5 * fragmentation * fragmentation * fragmentation);
}

}  // namespace

StagedMeteor::StagedMeteor(const Texts& texts, Tokenizer tokenize, Stemmer stemmer) : image_ends_(texts.image_ends) {
    TokenBuffer buffer;
    std::string stem;
    for (std::size_t text = 0; text < texts.ends.size(); ++text) {
        buffer.clear();
        tokenize(texts[text], buffer);
        for (std::size_t i = 0; i < buffer.size(); ++i) {
            const std::uint32_t word = words_.add(buffer[i]);
            tokens_.push_back(word);
            if (word < by_word_.size()) continue;
            stemmer(buffer[i], stem);
            by_word_.push_back({word, stems_.add(stem), nullptr, 0});
        }
        token_ends_.push_back(tokens_.size());
    }
}

void StagedMeteor::set_synsets(std::vector<std::uint32_t> synsets, const std::vector<std::uint64_t>& ends) {
    if (ends.size() != by_word_.size())
        throw std::invalid_argument("every word needs a list of synsets, which may be empty");
    std::uint64_t begin = 0;
    for (const std::uint64_t end : ends) {
        if (end < begin || end > synsets.size()) throw std::invalid_argument("the synsets' ends are out of order");
        const auto first = synsets.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = synsets.begin() + static_cast<std::ptrdiff_t>(end);
        if (!std::is_sorted(first, last)) throw std::invalid_argument("a word's synsets must be in ascending order");
        begin = end;
    }
    synsets_ = std::move(synsets);
    begin = 0;
    for (std::size_t word = 0; word < ends.size(); begin = ends[word++]) {
        by_word_[word].synsets = synsets_.data() + begin;
        by_word_[word].synset_count = static_cast<std::uint32_t>(ends[word] - begin);
    }
}

void StagedMeteor::read(std::size_t text, Words& out) const {
    out.clear();
    for (std::size_t i = text == 0 ? 0 : token_ends_[text - 1]; i < token_ends_[text]; ++i) out.push_back(by_word_[tokens_[i]]);
}

void StagedMeteor::score(bool with_penalty, std::size_t threads, double* rows) const {
    in_pieces(images(), threads, [&](std::size_t, std::size_t begin, std::size_t end) {
        StagedAligner aligner;
        Words candidate, reference;
        for (std::size_t image = begin; image < end; ++image) {
            double* row = rows + image * kColumns;
            std::fill_n(row, static_cast<std::size_t>(kColumns), 0.0);
            row[kScore] = -1.0;
            bool proven = true;
            const std::size_t first = first_text(image);
            read(first, candidate);
            for (std::size_t text = first + 1; text < image_ends_[image]; ++text) {
                read(text, reference);
                const Alignment& alignment =
                    aligner.align(candidate.data(), candidate.size(), reference.data(), reference.size());
                proven = proven && alignment.exact;
                const auto matches = static_cast<double>(alignment.matches.size());
                const auto chunks = static_cast<double>(alignment.chunks);
                const auto words = static_cast<double>(candidate.size()), others = static_cast<double>(reference.size());
                const double score = score_of(matches, words, others, chunks, with_penalty);
                if (score <= row[kScore]) continue;
                const auto crossings = static_cast<double>(alignment.crossings);
                const double values[] = {score, matches, words, others, chunks, crossings};
                std::copy(std::begin(values), std::end(values), row);
            }
            row[kProven] = proven;
        }
    });
}

Alignment StagedMeteor::align(std::size_t image, std::size_t reference) const {
    if (image >= images() || reference + 1 >= image_ends_[image] - first_text(image))
        throw std::out_of_range("there is no such reference");
    Words words, others;
    read(first_text(image), words);
    read(first_text(image) + 1 + reference, others);
    StagedAligner aligner;
    return aligner.align(words.data(), words.size(), others.data(), others.size());
}

}  // namespace mmeval
