// Document frequencies of n-grams: counted in shards, merged in any order, kept in a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ngrams.h"

namespace mmeval {

// In how many images' references each n-gram occurs.
class DocumentFrequencies {
public:
    Vocabulary tokens;
    NgramTable ngrams;
    LargeVector<std::uint32_t> counts;  // a node
    std::uint64_t images = 0;
    std::string tokenizer;  // the name of the one that made the tokens; empty while there are none

    std::uint32_t count(std::uint32_t node) const { return node < counts.size() ? counts[node] : 0; }
    void add_count(std::uint32_t node, std::uint32_t more);
    void merge(const DocumentFrequencies& other);  // throws std::runtime_error if the tokenizers differ
    std::uint64_t counted() const;  // n-grams with a count above 0

    // The n-grams with at least this count. Prefixes occur at least as often, so none is lost.
    DocumentFrequencies with_at_least(std::uint32_t least) const;

    // Whether an n-gram occurs in some images and not in all: only then has any a weight.
    bool varies() const;

    // The table cut into `buckets` tables by the first tokens of the n-grams, each as bytes for merge_packed: tables of
    // any size are merged a bucket at a time. The layout is for one run on machines of one kind, not for keeping.
    std::vector<std::string> pack(std::uint32_t buckets) const;
    void merge_packed(std::string_view bytes);

    // Take in a table of other n-grams over the same images: another bucket.
    void unite(const DocumentFrequencies& other);

    // Bytes that do not depend on the order in which anything was added; throws std::runtime_error on bad ones.
    std::string to_bytes() const;
    static DocumentFrequencies from_bytes(std::string_view bytes);
};

}  // namespace mmeval
