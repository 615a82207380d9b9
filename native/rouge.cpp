#include "rouge.h"

#include <algorithm>
#include <string>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "bits.h"
#include "key_numbers.h"
#include "ngrams.h"
#include "sample_words.h"
#include "stemmers.h"
#include "tokenizers.h"
#include "union_lcs.h"

namespace mmeval {
namespace {

constexpr std::size_t kShortest = 4;  // shorter words are not stemmed

// Numbers the words of each sample; each different word of all samples is stemmed once.
class WordNumberer {
public:
    explicit WordNumberer(bool with_stems) : with_stems_(with_stems) {}

    void start() { words_.start(); }
    void add(std::string_view word, std::vector<std::uint32_t>& tokens) {
        if (with_stems_ && word.size() >= kShortest) {
            word = stem(word);
            if (!word.empty()) tokens.push_back(words_.add(word));
        } else {
            tokens.push_back(words_.add_padded(word));
        }
    }
    std::size_t size() const { return words_.size(); }

private:
    std::string_view stem(std::string_view word) {
        const std::uint32_t number = all_.add(word);
        if (number == stem_ends_.size()) {
            stem_porter(word, buffer_);
            stems_.append(buffer_);
            stem_ends_.push_back(stems_.size());
        }
        const std::size_t begin = number == 0 ? 0 : stem_ends_[number - 1];
        return std::string_view(stems_).substr(begin, stem_ends_[number] - begin);
    }

    SampleWords words_;
    Vocabulary all_;  // words before stemming
    std::string stems_, buffer_;
    std::vector<std::size_t> stem_ends_;  // in stems_, by number
    bool with_stems_;
};

// Beyond ASCII, only the Kelvin sign has a letter a to z as its lower case, and the dotted capital I an i and a dot.
constexpr std::string_view kKelvin = "\xe2\x84\xaa", kDottedI = "\xc4\xb0";

constexpr std::size_t kBlock = 64;  // bytes that are classified together

// A text in lower case, with enough zeros behind it to read whole blocks.
class LoweredText {
public:
    void assign(std::string_view text) {
        bytes_.assign(text);
        unsigned char any = 0;
        for (char& c : bytes_) {
            any |= static_cast<unsigned char>(c);
            c = static_cast<char>(c + (c >= 'A' && c <= 'Z' ? 32 : 0));
        }
        if (any >= 0x80) bytes_ = replaced(replaced(bytes_, kKelvin, "k"), kDottedI, "i\xcc\x87");
        size_ = bytes_.size();
        bytes_.append(kBlock + SampleWords::kPadding, '\0');
    }
    std::string_view view() const { return std::string_view(bytes_).substr(0, size_); }

private:
    std::string bytes_;
    std::size_t size_ = 0;
};

// A bit for each of 64 bytes: whether it is a letter or a digit.
std::uint64_t word_bytes(const char* text) {
    std::uint64_t bits = 0;
#if defined(__SSE2__)
    const auto between = [](__m128i bytes, char first, char last) {
        return _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8(static_cast<char>(first - 1))),
                             _mm_cmpgt_epi8(_mm_set1_epi8(static_cast<char>(last + 1)), bytes));
    };
    for (std::size_t i = 0; i < kBlock; i += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + i));
        const __m128i is_word = _mm_or_si128(between(bytes, 'a', 'z'), between(bytes, '0', '9'));
        bits |= static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(is_word))) << i;
    }
#else
    for (std::size_t i = 0; i < kBlock; ++i) {
        const bool is_word = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9');
        bits |= std::uint64_t{is_word} << i;
    }
#endif
    return bits;
}

// Calls finish_word for each run of letters and digits. kBlock bytes behind the line must be readable.
template <typename Word>
void split(std::string_view line, Word finish_word) {
    std::size_t begin = line.npos;  // of a word that is not finished
    for (std::size_t block = 0; block < line.size(); block += kBlock) {
        std::uint64_t bits = word_bytes(line.data() + block);
        if (line.size() - block < kBlock) bits &= (std::uint64_t{1} << (line.size() - block)) - 1;
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

// The same for pairs of neighbours, without branches that depend on the texts.
class PairMatcher {
public:
    void start(Span candidate) {
        numbers_.start(candidate.size);
        counts_.assign(candidate.size + 1, 0);
        for (std::size_t i = 1; i < candidate.size; ++i) {
            fetch(candidate, i + kAhead);
            ++counts_[numbers_.add(key(candidate, i))];
        }
    }
    std::size_t shared_with(Span reference) {
        std::size_t shared = 0;
        left_ = counts_;
        for (std::size_t i = 1; i < reference.size; ++i) {
            fetch(reference, i + kAhead);
            // A pair that is not in the candidate counts as the number after the last, of which nothing is left.
            std::uint32_t& left = left_[std::min(numbers_.find(key(reference, i)), numbers_.size())];
            const bool is_left = left > 0;
            left -= is_left;
            shared += is_left;
        }
        return shared;
    }

private:
    static constexpr std::size_t kAhead = 16;  // pairs that are prefetched
    void fetch(Span text, std::size_t i) const {
        if (numbers_.is_large() && i < text.size) numbers_.fetch(key(text, i));
    }
    static std::uint64_t key(Span text, std::size_t i) { return std::uint64_t{text.data[i - 1]} << 32 | text.data[i]; }

    KeyNumbers numbers_;
    std::vector<std::uint32_t> counts_, left_;  // by number, in the candidate and not yet shared
};

}  // namespace

RougeTexts::RougeTexts(const Texts& texts, bool with_stems) : sample_ends_(texts.image_ends) {
    WordNumberer numberer(with_stems);
    tokens_.reserve(texts.bytes.size() / 4);  // what is not used is never touched
    text_ends_.reserve(texts.ends.size());
    line_ends_.reserve(texts.ends.size());
    LoweredText lowered;
    std::size_t sample = 0;
    for (std::size_t text = 0; text < texts.ends.size(); ++text) {
        while (text == sample_ends_[sample]) ++sample;
        if (text == texts.first_text(sample)) numberer.start();
        lowered.assign(texts[text]);
        std::string_view rest = lowered.view();
        for (std::size_t end = 0; end != rest.npos; rest.remove_prefix(end == rest.npos ? 0 : end + 1)) {
            const std::size_t before = tokens_.size();
            end = rest.find('\n');
            split(rest.substr(0, end), [&](std::string_view word) { numberer.add(word, tokens_); });
            if (tokens_.size() > before) line_ends_.push_back(tokens_.size());
        }
        text_ends_.push_back(line_ends_.size());
        most_words_ = std::max(most_words_, numberer.size());
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

void RougeTexts::words(double* out) const { ngrams(WordMatcher(most_words_), 1, out); }

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
    std::vector<std::uint32_t> in_candidate(most_words_, 0), in_reference(most_words_, 0);
    best_of(out, [&](std::size_t candidate, std::size_t end, std::vector<Figures>& each) {
        const Span words = words_of(candidate);
        for (std::size_t text = candidate + 1; text < end; ++text) {
            const Span reference = words_of(text);
            for (const std::uint32_t word : words) ++in_candidate[word];
            for (const std::uint32_t word : reference) ++in_reference[word];
            std::size_t hits = 0;
            for (std::size_t sentence = first_line(text); sentence < text_ends_[text]; ++sentence) {
                const Span line_words = line(sentence);
                lcs.start(line_words, most_words_);
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
