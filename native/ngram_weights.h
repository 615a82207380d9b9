// The idf of the n-grams of some texts, from a table of document frequencies.
#pragma once

#include <cstdint>
#include <vector>

#include "frequency_table.h"
#include "ngrams.h"

namespace mmeval {

class NgramWeights {
public:
    NgramWeights(const Vocabulary& tokens, const FrequencyTable& table);

    // ln(images) - ln(max(1, df)) of every n-gram, by node. The n-grams' tokens are those of the vocabulary.
    const std::vector<double>& of(const NgramTable& ngrams);

private:
    template <typename Table>
    void look_up(const Table& table, const NgramTable& ngrams);

    const FrequencyTable& table_;
    std::vector<std::uint32_t> token_there_;  // by token of the vocabulary
    std::vector<double> idf_;
    std::vector<std::uint32_t> place_;  // by node: its place in the table
    std::vector<std::uint32_t> by_order_[kOrders], known_, prefixes_, tokens_;
    std::vector<IdfTable::Found> results_;
};

}  // namespace mmeval
