// Document frequencies of n-grams: counted in shards, merged in any order, stored in a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ngrams.h"

namespace mmeval {

// The start of a stored table.
constexpr std::string_view kStoredMagic = "MMEVAL-DF-1\n";
std::string stored_head(std::string_view tokenizer, std::uint64_t images);

// In how many images' references each n-gram occurs.
class DocumentFrequencies {
public:
    Vocabulary tokens;
    NgramTable ngrams;
    LargeVector<std::uint32_t> counts;  // by node
    std::uint64_t images = 0;
    std::string tokenizer;  // the name of the tokens' tokenizer; empty if there are no tokens yet

    std::uint32_t count(std::uint32_t node) const { return node < counts.size() ? counts[node] : 0; }
    void add_count(std::uint32_t node, std::uint32_t more);
    void merge(const DocumentFrequencies& other);  // throws std::runtime_error if the tokenizers differ
    std::uint64_t counted() const;  // n-grams with a count above 0

    // The n-grams with at least this count. Prefixes occur at least as often, so they are never missing.
    DocumentFrequencies with_at_least(std::uint32_t least) const;

    // Whether an n-gram occurs in some images but not in all. Otherwise all weights are 0.
    bool varies() const;

    // The bytes do not depend on the order of additions. from_bytes throws std::runtime_error for invalid bytes.
    std::string to_bytes() const;
    static DocumentFrequencies from_bytes(std::string_view bytes);
};

}  // namespace mmeval
