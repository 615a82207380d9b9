#include <algorithm>
#include <stdexcept>

#include "ngram_pieces.h"
#include "parallel.h"
#include "piece_format.h"

namespace mmeval {
namespace {

bool comes_before(const CountedNgram& a, const CountedNgram& b) { return a.key < b.key; }

// The first tokens.
NgramKey prefix_of(const NgramKey& key, int tokens) {
    NgramKey prefix{0, 0};
    for (int place = 0; place < tokens; ++place) prefix.set(place, key.token(place));
    return prefix;
}

// Sorts by tokens, with a prefix before its extensions: first by the first token, then each group by the others.
LargeVector<CountedNgram> sorted_ngrams(LargeVector<CountedNgram> ngrams, std::uint32_t tokens, std::size_t threads) {
    std::vector<std::size_t> ends(std::size_t{tokens} + 2, 0);
    for (const CountedNgram& ngram : ngrams) ++ends[ngram.token(0) + std::size_t{1}];
    for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    LargeVector<CountedNgram> sorted(ngrams.size());
    std::vector<std::size_t> next(ends.begin(), ends.end() - 1);
    for (const CountedNgram& ngram : ngrams) sorted[next[ngram.token(0)]++] = ngram;
    // Pieces of about the same number of n-grams, which start and end between groups.
    const auto group_at = [&](std::size_t place) {
        return static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), place) - ends.begin());
    };
    in_pieces(sorted.size(), threads, [&](std::size_t, std::size_t begin, std::size_t end) {
        const std::size_t last = group_at(end);
        for (std::size_t group = group_at(begin); group < last; ++group)
            std::sort(sorted.begin() + static_cast<std::ptrdiff_t>(ends[group]),
                      sorted.begin() + static_cast<std::ptrdiff_t>(ends[group + 1]), comes_before);
    });
    return sorted;
}

}  // namespace

void BucketUnion::add(std::string_view bucket) {
    if (bucket.empty()) refuse_piece("is broken");
    PieceReader reader(bucket.substr(1), tokens_, tokenizer_);
    reader.each([&](const CountedNgram& ngram) { ngrams_.push_back(ngram); });
    images_ = std::max(images_, reader.images);
    has_weights_ = has_weights_ || bucket[0] != '\0';
}

std::string BucketUnion::finish(std::size_t threads) {
    std::vector<std::uint32_t> by_name(tokens_.size()), rank(tokens_.size());
    for (std::uint32_t id = 0; id < tokens_.size(); ++id) by_name[id] = id;
    std::sort(by_name.begin(), by_name.end(), [&](auto a, auto b) { return tokens_[a] < tokens_[b]; });
    for (std::uint32_t place = 0; place < by_name.size(); ++place) rank[by_name[place]] = place + 1;
    for (CountedNgram& ngram : ngrams_) {
        const int order = ngram.order();
        NgramKey key{0, 0};
        for (int place = 0; place < order; ++place) key.set(place, rank[ngram.token(place) - 1]);
        ngram.key = key;
    }
    const LargeVector<CountedNgram> sorted = sorted_ngrams(std::move(ngrams_), tokens_.size(), threads);
    ngrams_ = {};
    // In this order, the prefix of an n-gram is the last n-gram with one token less.
    struct Order {
        std::string bytes;
        std::uint64_t size = 0, last_prefix = 0, last_token = 0;
    } orders[kOrders];
    const CountedNgram* last[kOrders] = {};
    for (const CountedNgram& ngram : sorted) {
        const int n = ngram.order() - 1;
        if (n > 0 && (last[n - 1] == nullptr || !(prefix_of(ngram.key, n) == last[n - 1]->key)))
            refuse_piece("lacks the prefix of an n-gram");
        if (last[n] != nullptr && ngram.key == last[n]->key) refuse_piece("has an n-gram twice");
        last[n] = &ngram;
        Order& order = orders[n];
        const std::uint64_t prefix = n == 0 ? 0 : orders[n - 1].size - 1, token = ngram.token(n) - 1;
        if (prefix != order.last_prefix) order.last_token = 0;
        put_number(order.bytes, prefix - order.last_prefix);
        put_number(order.bytes, token - order.last_token);
        put_number(order.bytes, ngram.count);
        order.last_prefix = prefix;
        order.last_token = token;
        ++order.size;
    }
    std::string out = stored_head(tokenizer_, images_);
    put_number(out, by_name.size());
    for (const std::uint32_t token : by_name) {
        put_number(out, tokens_[token].size());
        out.append(tokens_[token]);
    }
    for (Order& order : orders) {
        put_number(out, order.size);
        out.append(order.bytes);
        std::string().swap(order.bytes);
    }
    return out;
}

}  // namespace mmeval
