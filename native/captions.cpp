#include "captions.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "caption_scorers.h"
#include "lcs.h"
#include "parallel.h"
#include "ptb_tokenizer.h"

namespace mmeval {
namespace {

constexpr double kBeta = 1.2;  // ROUGE-L's weight of recall

// Converts texts to token numbers with any tokenizer.
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

}  // namespace

Captions::Captions(const Texts& texts, Tokenizer tokenize, const std::string& tokenizer, bool with_ngrams,
                   std::size_t threads)
    : with_ngrams_(with_ngrams),
      shards_(std::max<std::size_t>(1, std::min(threads, texts.images()))), images_(texts.images()) {
    in_pieces(texts.images(), shards_.size(), [&](std::size_t piece, std::size_t begin, std::size_t end) {
        shards_[piece].table.tokenizer = tokenizer;
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
    // A word has about five letters. Reserved memory that is not needed is never touched and costs nothing.
    const std::size_t first_byte = texts.first_byte(begin), last_byte = texts.first_byte(end);
    tokens.reserve((last_byte - first_byte) / 4);
    if (with_ngrams) nodes.reserve((last_byte - first_byte) / 4 * kOrders);
    TokenNumberer numberer(tokenize, table.tokens);
    std::vector<std::uint32_t> last_image;  // by node: the last image in whose references it was counted
    for (std::size_t image = begin; image < end; ++image) {
        const auto stamp = static_cast<std::uint32_t>(image - begin);
        for (std::size_t text = texts.first_text(image); text < texts.image_ends[image]; ++text) {
            const std::size_t first_node = nodes.size();
            const std::size_t first_token = tokens.size();
            numberer.number(texts[text], tokens);
            split_at_blanks(first_token);
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

// A few tokens contain a space ("5 1/2" with a no-break space). coco-caption's ROUGE-L uses them whole, its other
// metrics split them at the space: `tokens` stores the pieces, `whole_texts` the unsplit texts.
void Captions::Shard::split_at_blanks(std::size_t first_token) {
    for (; looked_at < table.tokens.size(); ++looked_at) {
        TokenBuffer parts;
        whitespace_tokenize(table.tokens[looked_at], parts);
        if (parts.size() == 1) continue;
        std::vector<std::uint32_t>& ids = pieces[looked_at];
        const std::string copy(table.tokens[looked_at]);  // adding may move the viewed bytes
        parts.clear();
        whitespace_tokenize(copy, parts);
        for (std::size_t i = 0; i < parts.size(); ++i) ids.push_back(table.tokens.add(parts[i]));
    }
    if (pieces.empty()) return;
    const auto has_pieces = [&](std::uint32_t token) { return pieces.count(token) > 0; };
    if (std::none_of(tokens.begin() + static_cast<std::ptrdiff_t>(first_token), tokens.end(), has_pieces)) return;
    std::vector<std::uint32_t> whole(tokens.begin() + static_cast<std::ptrdiff_t>(first_token), tokens.end());
    tokens.resize(first_token);
    for (const std::uint32_t token : whole) {
        const auto split = pieces.find(token);
        if (split == pieces.end()) {
            tokens.push_back(token);
        } else {
            tokens.insert(tokens.end(), split->second.begin(), split->second.end());
        }
    }
    whole_texts[token_ends.size()] = std::move(whole);
}

// Numbers the n-grams of the last text. Those of one order are contiguous, and each is built from its prefix in the
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
        } else if (grams > 0) {
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
    if (shards_.size() == 1) return shards_[0].table;
    DocumentFrequencies merged;
    for (const Shard& shard : shards_) merged.merge(shard.table);
    return merged;
}

// ln(images) - ln(max(1, df)) of every n-gram of the shard, by its number in the shard.
std::vector<double> Captions::Shard::weights(const DocumentFrequencies& df) const {
    std::vector<std::uint32_t> token_there(table.tokens.size());
    for (std::uint32_t id = 0; id < table.tokens.size(); ++id) token_there[id] = df.tokens.find(table.tokens[id]);
    const std::uint32_t size = table.ngrams.size();
    std::vector<std::uint32_t> node_there(size, kMissing);
    // Order by order: the n-grams of one order do not depend on each other.
    std::vector<std::uint32_t> known, prefixes, tokens_there, results;
    for (int order = 1; order <= kOrders; ++order) {
        known.clear(), prefixes.clear(), tokens_there.clear();
        for (std::uint32_t node = 0; node < size; ++node) {
            if (table.ngrams.order(node) != order) continue;
            const std::uint32_t prefix = table.ngrams.prefix(node), token = token_there[table.ngrams.token(node)];
            if (token == kMissing) continue;
            if (order == 1) {
                node_there[node] = df.ngrams.find(kMissing, token);
            } else if (node_there[prefix] != kMissing) {
                known.push_back(node);
                prefixes.push_back(node_there[prefix]);
                tokens_there.push_back(token);
            }
        }
        results.resize(known.size());
        df.ngrams.find_all(prefixes.data(), tokens_there.data(), known.size(), results.data());
        for (std::size_t i = 0; i < known.size(); ++i) node_there[known[i]] = results[i];
    }
    const double log_images = std::log(static_cast<double>(df.images));
    std::vector<double> idf(size, log_images);
    for (std::uint32_t node = 0; node < size; ++node) {
        const std::uint32_t count = node_there[node] == kMissing ? 0 : df.count(node_there[node]);
        if (count > 1) idf[node] = log_images - std::log(static_cast<double>(count));
    }
    return idf;
}

template <typename Score>
void Captions::for_each_shard(Score score) const {
    in_pieces(shards_.size(), shards_.size(), [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) score(shards_[i]);
    });
}

// Passes every image to every scorer. The n-grams of a text are counted once for all scorers.
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
    // coco-caption splits at single spaces, so a text without tokens has one token: the empty string.
    static constexpr std::uint32_t kEmpty = kMissing;
    for_each_shard([&](const Shard& shard) {
        const auto words = [&](std::size_t text) {
            const auto whole = shard.whole_texts.find(text);
            const Span tokens = whole == shard.whole_texts.end() ? shard.tokens_of(text)
                                                                 : Span{whole->second.data(), whole->second.size()};
            return tokens.size > 0 ? tokens : Span{&kEmpty, 1};
        };
        for (std::size_t image = 0; image < shard.images(); ++image) {
            const std::size_t first = shard.first_text(image), end = shard.image_ends[image];
            const Span candidate = words(first);
            double precision = 0.0, recall = 0.0;
            for (std::size_t text = first + 1; text < end; ++text) {
                const Span reference = words(text);
                const auto common = static_cast<double>(
                    longest_common_subsequence(reference, candidate));
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
