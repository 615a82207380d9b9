#include "repetition.h"

#include <cmath>
#include <cstdlib>

#include "python_text.h"

namespace mmeval {

RepetitionPenalty::RepetitionPenalty(const Vocabulary& tokens) {
    Vocabulary vocabulary;
    for (std::uint32_t token = 0; token < tokens.size(); ++token) {
        const std::string_view text = tokens[token];
        std::size_t begin = 0;
        const auto finish = [&](std::size_t end) {
            if (end > begin) words_.push_back(vocabulary.add(text.substr(begin, end - begin)));
        };
        for (std::size_t at = 0; at < text.size();) {
            const CodePoint c = decode(text, at);
            if (c.value == kBadByte || !is_regex_word(c.value)) {
                finish(at);
                begin = at + c.bytes;
            }
            at += c.bytes;
        }
        finish(text.size());
        ends_.push_back(words_.size());
    }
    counts_.assign(vocabulary.size(), 0);
    other_counts_.assign(vocabulary.size(), 0);
}

void RepetitionPenalty::candidate(Span tokens) {
    for (const std::uint32_t word : different_) counts_[word] = 0;
    different_.clear();
    for_each_word(tokens, [&](std::uint32_t word) {
        if (counts_[word]++ == 0) different_.push_back(word);
    });
}

double RepetitionPenalty::reference(Span tokens) {
    if (different_.empty()) return 1.0;
    for_each_word(tokens, [&](std::uint32_t word) { ++other_counts_[word]; });
    double logs = 0.0;
    for (const std::uint32_t word : different_) {
        const std::int32_t other = other_counts_[word];
        const std::int32_t more = other > 0 ? std::abs(other - counts_[word]) : counts_[word] - 1;
        if (more > 0) logs -= std::log1p(more);
    }
    for_each_word(tokens, [&](std::uint32_t word) { other_counts_[word] = 0; });
    return std::exp(logs / static_cast<double>(different_.size()));
}

}  // namespace mmeval
