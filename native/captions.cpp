#include "captions.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <unordered_map>

#include "parallel.h"
#include "ptb_tokenizer.h"

namespace mmeval {
namespace {

std::size_t grams_of(std::size_t words, int order) {
    return words + 1 > static_cast<std::size_t>(order) ? words + 1 - order : 0;
}

// Texts as token numbers, by whatever tokenizer.
class TokenNumberer {
public:
    TokenNumberer(Tokenizer tokenize, Vocabulary& vocabulary)
        : tokenize_(tokenize), is_ptb_(tokenize == find_tokenizer("ptb")), vocabulary_(vocabulary), ptb_(vocabulary) {}
    void number(std::string_view text, std::vector<std::uint32_t>& ids) {
        if (is_ptb_) return ptb_.number(text, ids);
        buffer_.clear();
        tokenize_(text, buffer_);
        for (std::size_t i = 0; i < buffer_.size(); ++i) ids.push_back(vocabulary_.add(buffer_[i]));
    }

private:
    Tokenizer tokenize_;
    bool is_ptb_;
    Vocabulary& vocabulary_;
    PtbNumberer ptb_;
    TokenBuffer buffer_;
};

// Counts of n-grams in a text, found by number and cleared in the time it took to fill them.
class Counter {
public:
    explicit Counter(std::size_t size) : counts_(size, 0) {}

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
constexpr double kE = 2.718281828459045;  // raised by pow, since exp can differ from that in the last bit
constexpr double kTiny = 1e-15, kSmall = 1e-9;  // coco-caption's guards against 0 / 0
constexpr double kBeta = 1.2;

// BLEU-1..4 from counts, as coco-caption computes it for an image and for a corpus alike.
void bleu_from_stats(const double* stats, double* scores) {
    double product = 1.0;
    for (int k = 0; k < kOrders; ++k) {
        product *= (stats[k] + kTiny) / (stats[kOrders + k] + kSmall);
        scores[k] = std::pow(product, 1.0 / (k + 1));
    }
    const double ratio = (stats[2 * kOrders] + kTiny) / (stats[2 * kOrders + 1] + kSmall);
    if (ratio < 1)
        for (int k = 0; k < kOrders; ++k) scores[k] *= std::exp(1 - 1 / ratio);
}

// What a metric that counts n-grams is asked while a batch is walked through: an image's candidate, each of its
// references, then its score.
class CiderScorer {
public:
    CiderScorer(std::vector<double> idf, double* out) : idf_(std::move(idf)), out_(out) {}

    void candidate(const Counter& counts, std::size_t words) {
        bigrams_ = static_cast<double>(grams_of(words, 2));
        references_ = 0;
        for (int n = 0; n < kOrders; ++n) {
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
    // The similarity of candidate and reference in one order; `share` is what an n-gram of both adds to it.
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
        for (const double value : sums_) sum += value;
        out_[image] = sum / kOrders / references_ * scale;
    }

    double bigrams_ = 0.0, references_ = 0.0, sums_[kOrders] = {};

private:
    std::vector<double> idf_;
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
        // Shares of a text instead of counts would divide numerator and norms alike. Rounding can lift a perfect
        // match above 1.
        for (int n = 0; n < kOrders; ++n)
            sums_[n] += std::min(1.0, similarity(counts, n, [](double c, double r) { return c * r; }));
    }
    void image(std::size_t number) { finish(number, 1.0); }
};

class CiderD : public CiderScorer {
public:
    using CiderScorer::CiderScorer;
    void reference(const Counter& counts, std::size_t words) {
        ++references_;
        const double delta = bigrams_ - static_cast<double>(grams_of(words, 2));
        const double penalty = std::pow(kE, -(delta * delta) / (2 * kSigma * kSigma));
        for (int n = 0; n < kOrders; ++n)
            sums_[n] += similarity(counts, n, [](double c, double r) { return std::min(c, r) * r; }) * penalty;
    }
    void image(std::size_t number) { finish(number, 10.0); }
};

class Bleu {
public:
    Bleu(std::size_t nodes, double* scores, double* stats) : most_(nodes, 0), scores_(scores), stats_(stats) {}

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
    std::vector<std::uint32_t> most_;  // how often an n-gram of the candidate occurs in one reference, at the most
    std::vector<std::uint32_t> nodes_[kOrders], counts_[kOrders];
    std::size_t length_ = 0, closest_ = 0, distance_ = 0;
    double *scores_, *stats_;
};

// Bit-parallel rows of the table, 64 columns at a time (Hyyro 2004): a set bit is a column where the row does not step
// up. The columns are done strip by strip, with the carries between two strips in between, so that memory stays linear.
std::size_t lcs_in_strips(const std::uint32_t* a, std::size_t m, const std::uint32_t* b, std::size_t n) {
    std::vector<std::uint8_t> carries(n, 0);
    std::unordered_map<std::uint32_t, std::uint64_t> positions;
    std::size_t length = 0;
    for (std::size_t begin = 0; begin < m; begin += 64) {
        const std::size_t columns = std::min<std::size_t>(64, m - begin);
        positions.clear();
        for (std::size_t i = 0; i < columns; ++i) positions[a[begin + i]] |= std::uint64_t{1} << i;
        std::uint64_t row = ~std::uint64_t{0};
        for (std::size_t j = 0; j < n; ++j) {
            const auto found = positions.find(b[j]);
            const std::uint64_t here = found == positions.end() ? 0 : found->second;
            const std::uint64_t sum = row + (row & here);
            const std::uint64_t with_carry = sum + carries[j];
            carries[j] = (sum < row) | (with_carry < sum);
            row = with_carry | (row & ~here);
        }
        for (std::size_t i = 0; i < columns; ++i) length += !((row >> i) & 1);
    }
    return length;
}

// The same in one word. Short texts make a linear search for the token faster than any table.
std::size_t lcs_in_a_word(const std::uint32_t* a, std::size_t m, const std::uint32_t* b, std::size_t n) {
    std::uint64_t row = ~std::uint64_t{0};
    for (std::size_t j = 0; j < n; ++j) {
        std::uint64_t positions = 0;
        for (std::size_t i = 0; i < m; ++i) positions |= std::uint64_t{a[i] == b[j]} << i;
        const std::uint64_t hits = row & positions;
        row = (row + hits) | (row & ~positions);
    }
    std::size_t length = 0;
    for (std::size_t i = 0; i < m; ++i) length += !((row >> i) & 1);
    return length;
}

}  // namespace

std::size_t longest_common_subsequence(const std::uint32_t* a, std::size_t m, const std::uint32_t* b, std::size_t n) {
    // What both begin and end with belongs to a longest one, and a text of one repeated token is nothing else.
    std::size_t common = 0;
    for (; m > 0 && n > 0 && *a == *b; ++a, ++b, --m, --n) ++common;
    for (; m > 0 && n > 0 && a[m - 1] == b[n - 1]; --m, --n) ++common;
    if (m > n) {
        std::swap(a, b);
        std::swap(m, n);
    }
    if (m == 0) return common;
    return common + (m <= 64 ? lcs_in_a_word(a, m, b, n) : lcs_in_strips(a, m, b, n));
}

Captions::Captions(const Texts& texts, Tokenizer tokenize, bool with_ngrams, std::size_t threads)
    : with_ngrams_(with_ngrams),
      shards_(std::max<std::size_t>(1, std::min(threads, texts.images()))), images_(texts.images()) {
    in_pieces(texts.images(), shards_.size(), [&](std::size_t piece, std::size_t begin, std::size_t end) {
        shards_[piece].build(texts, begin, end, tokenize, with_ngrams);
    });
}

void Captions::Shard::build(const Texts& texts, std::size_t begin, std::size_t end, Tokenizer tokenize,
                            bool with_ngrams) {
    first_image = begin;
    image_ends.reserve(end - begin);
    const std::size_t all = end > begin ? texts.image_ends[end - 1] - texts.first_text(begin) : 0;
    token_ends.reserve(all);
    node_ends.reserve(all);
    // A word has five letters or so. What is reserved and not needed is never touched, and so costs nothing.
    const std::size_t first_byte = texts.first_byte(begin), last_byte = texts.first_byte(end);
    tokens.reserve((last_byte - first_byte) / 4);
    if (with_ngrams) nodes.reserve((last_byte - first_byte) / 4 * kOrders);
    TokenNumberer numberer(tokenize, table.tokens);
    std::vector<std::uint32_t> last_image;  // in whose references a node was counted, by node
    for (std::size_t image = begin; image < end; ++image) {
        const auto stamp = static_cast<std::uint32_t>(image - begin);
        for (std::size_t text = texts.first_text(image); text < texts.image_ends[image]; ++text) {
            const std::size_t first_node = nodes.size();
            numberer.number(texts[text], tokens);
            if (!with_ngrams) {
                token_ends.push_back(tokens.size());
                continue;
            }
            number_ngrams();
            last_image.resize(table.ngrams.size(), kMissing);
            table.counts.resize(table.ngrams.size(), 0);
            if (text == texts.first_text(image)) continue;  // the candidate
            for (std::size_t i = first_node; i < nodes.size(); ++i) {
                if (last_image[nodes[i]] == stamp) continue;
                last_image[nodes[i]] = stamp;
                ++table.counts[nodes[i]];
            }
        }
        image_ends.push_back(token_ends.size());
        if (image_ends.back() > first_text(image - begin) + 1) ++table.images;  // it has references
    }
}

// Numbers the n-grams of the tokens that came last. Those of one order lie side by side, each made from its prefix in the
// order below.
void Captions::Shard::number_ngrams() {
    const std::size_t from = token_ends.empty() ? 0 : token_ends.back(), words = tokens.size() - from;
    token_ends.push_back(tokens.size());
    std::size_t at = nodes.size(), below = at;
    for (int order = 1; order <= kOrders; ++order) at += grams_of(words, order);
    nodes.resize(at);
    at = below;
    for (int order = 1; order <= kOrders; ++order) {
        const std::size_t grams = grams_of(words, order);
        if (order == 1) {
            for (std::size_t i = 0; i < grams; ++i) nodes[at + i] = table.ngrams.add(kMissing, tokens[from + i]);
        } else {
            table.ngrams.add_all(&nodes[below], &tokens[from + order - 1], grams, &nodes[at]);
        }
        below = at;
        at += grams;
    }
    node_ends.push_back(nodes.size());
}

void Captions::require_ngrams() const {
    if (!with_ngrams_) throw std::logic_error("these captions were made without n-grams");
}

DocumentFrequencies Captions::document_frequencies() const {
    require_ngrams();
    DocumentFrequencies merged;
    for (const Shard& shard : shards_) merged.merge(shard.table);
    return merged;
}

// ln(images) - ln(max(1, df)) of every n-gram of the shard, by its number here.
std::vector<double> Captions::Shard::weights(const DocumentFrequencies& df) const {
    std::vector<std::uint32_t> token_there(table.tokens.size());
    for (std::uint32_t id = 0; id < table.tokens.size(); ++id) token_there[id] = df.tokens.find(table.tokens[id]);
    std::vector<std::uint32_t> node_there(table.ngrams.size(), kMissing);
    std::vector<double> idf(table.ngrams.size());
    const double log_images = std::log(static_cast<double>(df.images));
    for (std::uint32_t node = 0; node < table.ngrams.size(); ++node) {
        const std::uint32_t prefix = table.ngrams.prefix(node), token = token_there[table.ngrams.token(node)];
        const bool known = token != kMissing && (prefix == kMissing || node_there[prefix] != kMissing);
        if (known) node_there[node] = df.ngrams.find(prefix == kMissing ? kMissing : node_there[prefix], token);
        const double count = node_there[node] == kMissing ? 0.0 : df.count(node_there[node]);
        idf[node] = log_images - std::log(std::max(1.0, count));
    }
    return idf;
}

template <typename Score>
void Captions::for_each_shard(Score score) const {
    in_pieces(shards_.size(), shards_.size(), [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) score(shards_[i]);
    });
}

// Shows every image to every scorer; the n-grams of a text are counted once for all of them.
template <typename... Scorers>
void Captions::Shard::walk(Scorers&... scorers) const {
    Counter counts(table.ngrams.size());
    for (std::size_t image = 0; image < images(); ++image) {
        const std::size_t first = first_text(image), end = image_ends[image];
        counts.fill(nodes_of(first), words_of(first));
        (scorers.candidate(counts, words_of(first)), ...);
        for (std::size_t text = first + 1; text < end; ++text) {
            counts.fill(nodes_of(text), words_of(text));
            (scorers.reference(counts, words_of(text)), ...);
        }
        (scorers.image(first_image + image), ...);
    }
}

void Captions::cider_d(const DocumentFrequencies& df, double* out) const {
    require_ngrams();
    for_each_shard([&](const Shard& shard) {
        CiderD cider(shard.weights(df), out);
        shard.walk(cider);
    });
}

void Captions::cider(const DocumentFrequencies& df, double* out) const {
    require_ngrams();
    for_each_shard([&](const Shard& shard) {
        PlainCider cider(shard.weights(df), out);
        shard.walk(cider);
    });
}

void Captions::bleu(double* scores, double* stats) const {
    require_ngrams();
    for_each_shard([&](const Shard& shard) {
        Bleu bleu(shard.table.ngrams.size(), scores, stats);
        shard.walk(bleu);
    });
}

void Captions::bleu_and_cider_d(const DocumentFrequencies& df, double* scores, double* stats, double* cider_d) const {
    require_ngrams();
    for_each_shard([&](const Shard& shard) {
        Bleu bleu(shard.table.ngrams.size(), scores, stats);
        CiderD cider(shard.weights(df), cider_d);
        shard.walk(bleu, cider);
    });
}

void Captions::rouge_l(double* out) const {
    // coco-caption splits at single spaces, so that a text without tokens has one: the empty string.
    static constexpr std::uint32_t kEmpty = kMissing;
    for_each_shard([&](const Shard& shard) {
        const auto words = [&](std::size_t text) {
            const Span found = shard.tokens_of(text);
            return found.size > 0 ? found : Span{&kEmpty, 1};
        };
        for (std::size_t image = 0; image < shard.images(); ++image) {
            const std::size_t first = shard.first_text(image), end = shard.image_ends[image];
            const Span candidate = words(first);
            double precision = 0.0, recall = 0.0;
            for (std::size_t text = first + 1; text < end; ++text) {
                const Span reference = words(text);
                const auto common = static_cast<double>(
                    longest_common_subsequence(reference.data, reference.size, candidate.data, candidate.size));
                precision = std::max(precision, common / static_cast<double>(candidate.size));
                recall = std::max(recall, common / static_cast<double>(reference.size));
            }
            const double square = kBeta * kBeta;
            const bool any = precision != 0 && recall != 0;
            out[shard.first_image + image] =
                any ? ((1 + square) * precision * recall) / (recall + square * precision) : 0.0;
        }
    });
}

}  // namespace mmeval
