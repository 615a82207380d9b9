#include "ngram_weights.h"

#include <cmath>

namespace mmeval {
namespace {

// Look-ups in a table of counts, as in IdfTable.
class CountLookups {
public:
    explicit CountLookups(const DocumentFrequencies& df)
        : df_(df), log_images_(std::log(static_cast<double>(df.images))) {}
    double idf_of_missing() const { return log_images_; }
    IdfTable::Found find(std::uint32_t token) const { return found(df_.ngrams.find(kMissing, token)); }
    void find_all(const std::uint32_t* prefixes, const std::uint32_t* tokens, std::size_t count,
                  IdfTable::Found* out) const {
        std::vector<std::uint32_t> nodes(count);
        df_.ngrams.find_all(prefixes, tokens, count, nodes.data());
        for (std::size_t i = 0; i < count; ++i) out[i] = found(nodes[i]);
    }

private:
    IdfTable::Found found(std::uint32_t node) const {
        const std::uint32_t count = node == kMissing ? 0 : df_.count(node);
        return {node, count > 1 ? log_images_ - std::log(static_cast<double>(count)) : log_images_};
    }

    const DocumentFrequencies& df_;
    double log_images_;
};

}  // namespace

NgramWeights::NgramWeights(const Vocabulary& tokens, const FrequencyTable& table)
    : table_(table), token_there_(tokens.size()) {
    const Vocabulary& there = table.weights() ? table.weights()->tokens : table.counts().tokens;
    constexpr std::uint32_t kAhead = 16;
    for (std::uint32_t id = 0; id < tokens.size(); ++id) {
        if (id + kAhead < tokens.size()) there.fetch(tokens[id + kAhead]);
        token_there_[id] = there.find(tokens[id]);
    }
}

const std::vector<double>& NgramWeights::of(const NgramTable& ngrams) {
    if (table_.weights()) {
        look_up(*table_.weights(), ngrams);
    } else {
        look_up(CountLookups(table_.counts()), ngrams);
    }
    return idf_;
}

// Order by order: the n-grams of one order do not depend on each other.
template <typename Table>
void NgramWeights::look_up(const Table& table, const NgramTable& ngrams) {
    const std::uint32_t size = ngrams.size();
    idf_.assign(size, table.idf_of_missing());
    place_.assign(size, kMissing);
    for (auto& nodes : by_order_) nodes.clear();
    for (std::uint32_t node = 0; node < size; ++node)
        if (token_there_[ngrams.token(node)] != kMissing) by_order_[ngrams.order(node) - 1].push_back(node);
    for (const std::uint32_t node : by_order_[0]) {
        const IdfTable::Found found = table.find(token_there_[ngrams.token(node)]);
        place_[node] = found.place;
        idf_[node] = found.idf;
    }
    for (int order = 2; order <= kOrders; ++order) {
        known_.clear(), prefixes_.clear(), tokens_.clear();
        for (const std::uint32_t node : by_order_[order - 1]) {
            const std::uint32_t prefix = place_[ngrams.prefix(node)];
            if (prefix == kMissing) continue;
            known_.push_back(node);
            prefixes_.push_back(prefix);
            tokens_.push_back(token_there_[ngrams.token(node)]);
        }
        results_.resize(known_.size());
        table.find_all(prefixes_.data(), tokens_.data(), known_.size(), results_.data());
        for (std::size_t i = 0; i < known_.size(); ++i) {
            place_[known_[i]] = results_[i].place;
            idf_[known_[i]] = results_[i].idf;
        }
    }
}

}  // namespace mmeval
