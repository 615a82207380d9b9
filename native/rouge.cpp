#include "rouge.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "bits.h"
#include "key_numbers.h"
#include "stemmers.h"
#include "tokenizers.h"
#include "union_lcs.h"

namespace mmeval {
namespace {

constexpr std::size_t kShortest = 4;  // shorter words are not stemmed

// Numbers words; each different word is stemmed once.
class WordNumberer {
public:
    WordNumberer(Vocabulary& words, bool with_stems) : words_(words), with_stems_(with_stems) {}

    void add(std::string_view word, std::vector<std::uint32_t>& tokens) {
        if (!with_stems_) {
            tokens.push_back(words_.add(word));
            return;
        }
        const std::uint32_t raw = raw_.add(word);
        if (raw == stems_.size()) stems_.push_back(stem(word));
        if (stems_[raw] != kMissing) tokens.push_back(stems_[raw]);
    }

private:
    std::uint32_t stem(std::string_view word) {
        if (word.size() < kShortest) return words_.add(word);
        stem_porter(word, buffer_);
        return buffer_.empty() ? kMissing : words_.add(buffer_);
    }

    Vocabulary& words_;
    Vocabulary raw_;
    std::vector<std::uint32_t> stems_;  // by the number of the unchanged word
    std::string buffer_;
    bool with_stems_;
};

// Beyond ASCII, only the Kelvin sign has a letter a to z as its lower case, and the dotted capital I an i and a dot.
constexpr std::string_view kKelvin = "\xe2\x84\xaa", kDottedI = "\xc4\xb0";

void lower(std::string_view text, std::string& out) {
    out.assign(text);
    for (char& c : out) c = static_cast<char>(c + (c >= 'A' && c <= 'Z' ? 32 : 0));
    if (text.find(kKelvin) != text.npos || text.find(kDottedI) != text.npos)
        out = replaced(replaced(out, kKelvin, "k"), kDottedI, "i\xcc\x87");
}

// A bit for each of the next bytes, 64 at most: whether it is a letter or a digit.
std::uint64_t word_bytes(const char* text, std::size_t size) {
    constexpr std::size_t kBlock = 64;
    std::uint8_t is_word[kBlock] = {};
    const auto test = [](char c) {
        return static_cast<std::uint8_t>((c >= 'a' && c <= 'z') | (c >= '0' && c <= '9'));
    };
    if (size >= kBlock) {
        for (std::size_t i = 0; i < kBlock; ++i) is_word[i] = test(text[i]);
    } else {
        for (std::size_t i = 0; i < size; ++i) is_word[i] = test(text[i]);
    }
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < kBlock; i += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, is_word + i, 8);
        bits |= (eight * 0x0102040810204080u >> 56) << i;  // gathers the lowest bits of eight bytes
    }
    return bits;
}

template <typename Word>
void split(std::string_view line, Word finish_word) {
    std::size_t begin = line.npos;  // of a word that is not finished
    for (std::size_t block = 0; block < line.size(); block += 64) {
        const std::uint64_t bits = word_bytes(line.data() + block, line.size() - block);
        for (std::uint64_t edges = bits ^ (bits << 1 | (begin != line.npos)); edges != 0; edges &= edges - 1) {
            const std::size_t at = block + static_cast<std::size_t>(lowest_bit(edges));
            if (begin == line.npos) {
                begin = at;
            } else {
                finish_word(line.substr(begin, at - begin));
                begin = line.npos;
            }
        }
    }
    if (begin != line.npos) finish_word(line.substr(begin));
}

struct Figures {
    double fmeasure, precision, recall;
};

Figures figures(std::size_t hits, std::size_t candidate, std::size_t reference) {
    const double precision = static_cast<double>(hits) / static_cast<double>(std::max<std::size_t>(candidate, 1));
    const double recall = static_cast<double>(hits) / static_cast<double>(std::max<std::size_t>(reference, 1));
    const double sum = precision + recall;
    return {sum > 0 ? 2 * precision * recall / sum : 0.0, precision, recall};
}

// The words that a candidate shares with a reference, each at most as often as both have it.
class WordMatcher {
public:
    explicit WordMatcher(std::size_t words) : counts_(words, 0) {}
    void start(Span candidate) {
        for (const std::uint32_t word : candidate_) counts_[word] = 0;
        candidate_ = candidate;
        for (const std::uint32_t word : candidate) ++counts_[word];
    }
    std::size_t shared_with(Span reference) {
        std::size_t shared = 0;
        for (const std::uint32_t word : reference) shared += counts_[word]-- > 0;
        for (const std::uint32_t word : reference) ++counts_[word];
        return shared;
    }

private:
    std::vector<std::int32_t> counts_;  // by word: how often the candidate still has it
    Span candidate_{nullptr, 0};
};

// The same for pairs of neighbours.
class PairMatcher {
public:
    void start(Span candidate) {
        numbers_.start(candidate.size);
        counts_.clear();
        for (std::size_t i = 1; i < candidate.size; ++i) {
            const std::uint32_t number = numbers_.add(key(candidate, i));
            if (number == counts_.size()) counts_.push_back(0);
            ++counts_[number];
        }
    }
    std::size_t shared_with(Span reference) {
        std::size_t shared = 0;
        taken_.clear();
        for (std::size_t i = 1; i < reference.size; ++i) {
            const std::uint32_t number = numbers_.find(key(reference, i));
            if (number == kMissing || counts_[number] == 0) continue;
            --counts_[number];
            taken_.push_back(number);
            ++shared;
        }
        for (const std::uint32_t number : taken_) ++counts_[number];
        return shared;
    }

private:
    static std::uint64_t key(Span text, std::size_t i) { return std::uint64_t{text.data[i - 1]} << 32 | text.data[i]; }

    KeyNumbers numbers_;
    std::vector<std::uint32_t> counts_, taken_;
};

}  // namespace

RougeTexts::RougeTexts(const Texts& texts, bool with_stems) : sample_ends_(texts.image_ends) {
    WordNumberer numberer(words_, with_stems);
    tokens_.reserve(texts.bytes.size() / 4);
    std::string lowered;
    for (std::size_t text = 0; text < texts.ends.size(); ++text) {
        lower(texts[text], lowered);
        std::string_view rest = lowered;
        for (std::size_t end = 0; end != rest.npos; rest.remove_prefix(end == rest.npos ? 0 : end + 1)) {
            const std::size_t before = tokens_.size();
            end = rest.find('\n');
            split(rest.substr(0, end), [&](std::string_view word) { numberer.add(word, tokens_); });
            if (tokens_.size() > before) line_ends_.push_back(tokens_.size());
        }
        text_ends_.push_back(line_ends_.size());
    }
}

Span RougeTexts::line(std::size_t number) const {
    const std::size_t begin = number == 0 ? 0 : line_ends_[number - 1];
    return {tokens_.data() + begin, line_ends_[number] - begin};
}

Span RougeTexts::words_of(std::size_t text) const {
    const std::size_t first = first_line(text), last = text_ends_[text];
    const std::size_t begin = first == 0 ? 0 : line_ends_[first - 1], end = last == 0 ? 0 : line_ends_[last - 1];
    return {tokens_.data() + begin, end - begin};
}

// score(candidate, references, figures of each)
template <typename Score>
void RougeTexts::best_of(double* out, Score score) const {
    std::vector<Figures> each;
    for (std::size_t sample = 0; sample < samples(); ++sample, out += kColumns) {
        const std::size_t first = sample == 0 ? 0 : sample_ends_[sample - 1];
        each.clear();
        score(first, sample_ends_[sample], each);
        Figures best{0, 0, 0};
        for (std::size_t i = 0; i < each.size(); ++i)
            if (i == 0 || each[i].fmeasure > best.fmeasure) best = each[i];
        out[0] = best.fmeasure;
        out[1] = best.precision;
        out[2] = best.recall;
    }
}

void RougeTexts::words(double* out) const { ngrams(WordMatcher(words_.size()), 1, out); }

void RougeTexts::pairs(double* out) const { ngrams(PairMatcher(), 2, out); }

template <typename Matcher>
void RougeTexts::ngrams(Matcher matcher, std::size_t order, double* out) const {
    const auto grams = [&](Span words) { return words.size < order ? 0 : words.size + 1 - order; };
    best_of(out, [&](std::size_t candidate, std::size_t end, std::vector<Figures>& each) {
        const Span words = words_of(candidate);
        matcher.start(words);
        for (std::size_t text = candidate + 1; text < end; ++text) {
            const Span reference = words_of(text);
            each.push_back(figures(matcher.shared_with(reference), grams(words), grams(reference)));
        }
    });
}

void RougeTexts::summary_lcs(double* out) const {
    UnionLcs lcs;
    std::vector<std::uint32_t> in_candidate(words_.size(), 0), in_reference(words_.size(), 0);
    best_of(out, [&](std::size_t candidate, std::size_t end, std::vector<Figures>& each) {
        const Span words = words_of(candidate);
        for (std::size_t text = candidate + 1; text < end; ++text) {
            const Span reference = words_of(text);
            for (const std::uint32_t word : words) ++in_candidate[word];
            for (const std::uint32_t word : reference) ++in_reference[word];
            std::size_t hits = 0;
            for (std::size_t sentence = first_line(text); sentence < text_ends_[text]; ++sentence) {
                const Span line_words = line(sentence);
                lcs.start(line_words, words_.size());
                for (std::size_t other = first_line(candidate); other < text_ends_[candidate]; ++other) lcs.add(line(other));
                const std::vector<bool>& is_shared = lcs.finish();
                for (std::size_t i = 0; i < line_words.size; ++i) {
                    const std::uint32_t word = line_words.data[i];
                    if (!is_shared[i] || in_candidate[word] == 0 || in_reference[word] == 0) continue;
                    --in_candidate[word];
                    --in_reference[word];
                    ++hits;
                }
            }
            for (const std::uint32_t word : words) in_candidate[word] = 0;
            for (const std::uint32_t word : reference) in_reference[word] = 0;
            each.push_back(figures(hits, words.size, reference.size));
        }
    });
}

}  // namespace mmeval
