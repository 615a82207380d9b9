#include "captions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "caption_scorers.h"
#include "lcs.h"
#include "ngram_pieces.h"
#include "ngram_weights.h"
#include "parallel.h"
#include "ptb_tokenizer.h"
#include "repetition.h"

namespace mmeval {
namespace {

constexpr double kBeta = 1.2;  // ROUGE-L's weight of recall
constexpr std::size_t kBlock = 64;  // images whose n-grams are numbered together: few enough for the cache

// Converts texts to token numbers with any tokenizer.
class TokenNumberer {
public:
    TokenNumberer(const Texts& texts, Tokenizer tokenize, Vocabulary& vocabulary)
        : texts_(texts), tokenize_(texts, tokenize), vocabulary_(vocabulary), ptb_(vocabulary) {}
    void number(std::size_t image, std::size_t text, std::vector<std::uint32_t>& ids) {
        if (tokenize_.is_ptb()) return ptb_.number(tokenize_.view(image, text), texts_[text].size(), ids);
        buffer_.clear();
        tokenize_(image, text, buffer_);
        for (std::size_t i = 0; i < buffer_.size(); ++i) ids.push_back(vocabulary_.add(buffer_[i]));
    }

private:
    const Texts& texts_;
    TextTokenizer tokenize_;
    Vocabulary& vocabulary_;
    PtbNumberer ptb_;
    TokenBuffer buffer_;
};

constexpr std::size_t kAhead = 512;  // bytes of the next lines: more than any rule looks at in a caption

// Without line breaks, as in coco-caption's file.
void append_line(std::string_view text, std::string& lines) {
    const std::size_t begin = lines.size();
    lines.append(text);
    std::replace(lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end(), '\n', ' ');
}

}  // namespace

void Texts::read_lines(std::size_t image, std::size_t text, std::string& lines) const {
    lines.clear();
    append_line((*this)[text], lines);
    const std::size_t enough = lines.size() + kAhead;
    const auto add = [&](std::size_t next) {
        lines += '\n';
        append_line((*this)[next].substr(0, kAhead), lines);
    };
    if (text == first_text(image)) {
        while (++image < images() && lines.size() < enough) add(first_text(image));
        return;
    }
    for (++text; image < images() && lines.size() < enough; ++text) {
        while (image < images() && text == image_ends[image]) text = image_ends[image++] + 1;
        if (image < images()) add(text);
    }
}

std::string_view TextTokenizer::view(std::size_t image, std::size_t text) {
    if (!texts_.are_lines || !is_ptb_) return texts_[text];
    texts_.read_lines(image, text, lines_);
    return lines_;
}

void TextTokenizer::operator()(std::size_t image, std::size_t text, TokenBuffer& out) {
    if (is_ptb_) {
        ptb_tokenize(view(image, text), texts_[text].size(), out);
    } else {
        tokenize_(texts_[text], out);
    }
}

Captions::Captions(const Texts& texts, Tokenizer tokenize, const std::string& tokenizer, bool with_ngrams,
                   std::size_t threads)
    : with_ngrams_(with_ngrams),
      shards_(std::max<std::size_t>(1, std::min(threads, texts.images()))), images_(texts.images()) {
    in_pieces(texts.images(), shards_.size(), [&](std::size_t piece, std::size_t begin, std::size_t end) {
        shards_[piece].tokenizer = tokenizer;
        shards_[piece].build(texts, begin, end, tokenize);
        if (with_ngrams) shards_[piece].number_all();
    });
}

void Captions::Shard::build(const Texts& texts, std::size_t begin, std::size_t end, Tokenizer tokenize) {
    first_image = begin;
    image_ends.reserve(end - begin);
    const std::size_t all_texts = end > begin ? texts.image_ends[end - 1] - texts.first_text(begin) : 0;
    token_ends.reserve(all_texts);
    // A word has about five letters. Reserved memory that is not needed is never touched and costs nothing.
    tokens.reserve((texts.first_byte(end) - texts.first_byte(begin)) / 4);
    TokenNumberer numberer(texts, tokenize, vocabulary);
    for (std::size_t image = begin; image < end; ++image) {
        for (std::size_t text = texts.first_text(image); text < texts.image_ends[image]; ++text) {
            const std::size_t first_token = tokens.size();
            numberer.number(image, text, tokens);
            split_at_blanks(first_token);
            token_ends.push_back(tokens.size());
        }
        image_ends.push_back(token_ends.size());
        if (image_ends.back() > first_text(image - begin) + 1) ++with_references;
    }
}

// Numbers the n-grams of all texts and counts the images of those in references.
void Captions::Shard::number_all() {
    all.nodes.reserve(tokens.size() * kOrders);
    all.node_ends.reserve(token_ends.size());
    std::vector<std::uint32_t> last_image;  // by node: the last image in whose references it was counted
    for (std::size_t image = 0; image < images(); ++image) {
        const auto stamp = static_cast<std::uint32_t>(image);
        for (std::size_t text = first_text(image); text < image_ends[image]; ++text) {
            all.number(tokens_of(text));
            last_image.resize(all.table.size(), kMissing);
            counts.resize(all.table.size(), 0);
            if (text == first_text(image)) continue;  // the candidate
            for (const std::uint32_t node : all.nodes_of(text)) {
                if (last_image[node] == stamp) continue;
                last_image[node] = stamp;
                ++counts[node];
            }
        }
    }
}

// A few tokens contain a space ("5 1/2" with a no-break space). coco-caption's ROUGE-L uses them whole, its other
// metrics split them at the space: `tokens` stores the pieces, `whole_texts` the unsplit texts.
void Captions::Shard::split_at_blanks(std::size_t first_token) {
    for (; looked_at < vocabulary.size(); ++looked_at) {
        TokenBuffer parts;
        whitespace_tokenize(vocabulary[looked_at], parts);
        if (parts.size() == 1) continue;
        std::vector<std::uint32_t>& ids = pieces[looked_at];
        const std::string copy(vocabulary[looked_at]);  // adding may move the viewed bytes
        parts.clear();
        whitespace_tokenize(copy, parts);
        for (std::size_t i = 0; i < parts.size(); ++i) ids.push_back(vocabulary.add(parts[i]));
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

void Captions::Ngrams::start(std::size_t text) {
    table.clear();
    nodes.clear();
    node_ends.clear();
    first_text = text;
}

// The n-grams of one order are contiguous, and each is built from its prefix in the order below.
void Captions::Ngrams::number(Span tokens) {
    std::size_t at = nodes.size(), below = at;
    for (int order = 1; order <= kOrders; ++order) at += grams_of(tokens.size, order);
    nodes.resize(at);
    at = below;
    for (int order = 1; order <= kOrders; ++order) {
        const std::size_t grams = grams_of(tokens.size, order);
        if (order == 1) {
            for (std::size_t i = 0; i < grams; ++i) nodes[at + i] = table.add(kMissing, tokens.data[i]);
        } else if (grams > 0) {
            table.add_all(&nodes[below], tokens.data + order - 1, grams, &nodes[at]);
        }
        below = at;
        at += grams;
    }
    node_ends.push_back(nodes.size());
}

DocumentFrequencies Captions::Shard::table() const {
    DocumentFrequencies table;
    table.tokens = vocabulary;
    table.ngrams = all.table;
    table.counts = counts;
    table.images = with_references;
    table.tokenizer = tokenizer;
    return table;
}

FrequencyTable Captions::document_frequencies() const {
    if (!with_ngrams_) throw std::logic_error("these captions were made without n-grams");
    if (shards_.size() == 1) return FrequencyTable(shards_[0].table());
    DocumentFrequencies merged;
    for (const Shard& shard : shards_) merged.merge(shard.table());
    return FrequencyTable(std::move(merged));
}

std::vector<std::string> Captions::packed_frequencies(std::uint32_t buckets) const {
    if (shards_.size() > 1) throw std::logic_error("only captions of one thread can be packed");
    const Shard& shard = shards_[0];
    ReferenceTokens references{shard.vocabulary, shard.tokenizer, {}, {}};
    references.texts.reserve(shard.token_ends.size());
    references.image_ends.reserve(shard.images());
    for (std::size_t image = 0; image < shard.images(); ++image) {
        for (std::size_t text = shard.first_text(image) + 1; text < shard.image_ends[image]; ++text)
            references.texts.push_back(shard.tokens_of(text));
        references.image_ends.push_back(references.texts.size());
    }
    return packed_references(references, buckets);
}

template <typename Score>
void Captions::for_each_shard(Score score) const {
    in_pieces(shards_.size(), shards_.size(), [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) score(shards_[i]);
    });
}

// The n-grams of a text are counted once for all scorers.
template <typename... Scorers>
void Captions::Shard::walk(const Ngrams& ngrams, std::size_t begin, std::size_t end, Counter& counts,
                           Scorers&... scorers) const {
    counts.start(ngrams.table.size());
    for (std::size_t image = begin; image < end; ++image) {
        const std::size_t first = first_text(image), last = image_ends[image];
        counts.fill(ngrams.nodes_of(first), words_of(first));
        (scorers.candidate(counts, words_of(first)), ...);
        for (std::size_t text = first + 1; text < last; ++text) {
            counts.fill(ngrams.nodes_of(text), words_of(text));
            (scorers.reference(counts, words_of(text)), ...);
        }
        (scorers.image(first_image + image), ...);
    }
}

template <typename... Scorers>
void Captions::score(const Shard& shard, const FrequencyTable* df, Scorers&&... scorers) const {
    Counter counts;
    std::optional<NgramWeights> weights;
    if (df != nullptr) weights.emplace(shard.vocabulary, *df);
    const auto walk = [&](const Ngrams& ngrams, std::size_t begin, std::size_t end) {
        const double* idf = weights ? weights->of(ngrams.table).data() : nullptr;
        (scorers.start(ngrams.table.size(), idf), ...);
        shard.walk(ngrams, begin, end, counts, scorers...);
    };
    if (with_ngrams_) return walk(shard.all, 0, shard.images());
    Ngrams block;
    for (std::size_t begin = 0; begin < shard.images(); begin += kBlock) {
        const std::size_t end = std::min(begin + kBlock, shard.images());
        block.start(shard.first_text(begin));
        for (std::size_t text = shard.first_text(begin); text < shard.image_ends[end - 1]; ++text)
            block.number(shard.tokens_of(text));
        walk(block, begin, end);
    }
}

void Captions::cider_d(const FrequencyTable& df, int orders, double* out) const {
    for_each_shard([&](const Shard& shard) { score(shard, &df, CiderD(out, orders)); });
}

void Captions::cider(const FrequencyTable& df, int orders, double* out) const {
    for_each_shard([&](const Shard& shard) { score(shard, &df, PlainCider(out, orders)); });
}

std::vector<double> Captions::Shard::repetition_penalties() const {
    RepetitionPenalty penalty(vocabulary);
    std::vector<double> penalties;
    penalties.reserve(token_ends.size());
    for (std::size_t image = 0; image < images(); ++image) {
        const std::size_t first = first_text(image);
        penalty.candidate(tokens_of(first));
        for (std::size_t text = first + 1; text < image_ends[image]; ++text)
            penalties.push_back(penalty.reference(tokens_of(text)));
    }
    return penalties;
}

void Captions::cider_r(const FrequencyTable& df, int orders, double* out) const {
    for_each_shard([&](const Shard& shard) {
        const std::vector<double> repetition = shard.repetition_penalties();
        score(shard, &df, CiderR(out, orders, repetition.data()));
    });
}

void Captions::bleu(double* scores, double* stats) const {
    for_each_shard([&](const Shard& shard) { score(shard, nullptr, Bleu(scores, stats)); });
}

void Captions::bleu_and_cider_d(const FrequencyTable& df, double* scores, double* stats, double* cider_d) const {
    for_each_shard([&](const Shard& shard) { score(shard, &df, Bleu(scores, stats), CiderD(cider_d)); });
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
