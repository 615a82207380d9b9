#include "ter.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sample_words.h"
#include "shifted_edits.h"

namespace mmeval {

void score_ter(const Texts& texts, const TerOptions& options, std::size_t stride, double* scores, double* stats) {
    SampleWords vocabulary;
    TerTokenizer tokenize(options);
    ShiftedEdits edits;
    TokenBuffer tokens;
    std::string joined;
    const auto read = [&](std::size_t text, bool is_reference, std::vector<std::uint32_t>& words) {
        tokens.clear();
        tokenize(texts[text], tokens);
        // sacrebleu splits references twice, which matters for some that are normalized: "it's," needs both rounds.
        if (is_reference && options.normalized) {
            joined.clear();
            for (std::size_t i = 0; i < tokens.size(); ++i) joined.append(i > 0 ? " " : "").append(tokens[i]);
            tokens.clear();
            tokenize(joined, tokens);
        }
        words.clear();
        for (std::size_t i = 0; i < tokens.size(); ++i) words.push_back(vocabulary.add(tokens[i]));
    };
    std::vector<std::uint32_t> candidate, reference;
    for (std::size_t sample = 0; sample < texts.images(); ++sample, stats += stride) {
        const std::size_t first = texts.first_text(sample), end = texts.image_ends[sample];
        vocabulary.start();
        read(first, false, candidate);
        std::size_t fewest = static_cast<std::size_t>(-1), lengths = 0;
        for (std::size_t text = first + 1; text < end; ++text) {
            read(text, true, reference);
            lengths += reference.size();
            fewest = std::min(fewest, edits({candidate.data(), candidate.size()}, {reference.data(), reference.size()}));
        }
        const std::size_t references = end - first - 1;
        stats[0] = references > 0 ? static_cast<double>(fewest) : 0.0;
        stats[1] = references > 0 ? static_cast<double>(lengths) / static_cast<double>(references) : 0.0;
        scores[sample] = 100 * (stats[1] > 0 ? stats[0] / stats[1] : stats[0] > 0 ? 1.0 : 0.0);
    }
}

}  // namespace mmeval
