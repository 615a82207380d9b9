// The weights of the n-grams of a stored table, for scoring: a look-up reads one place in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "large_vector.h"
#include "ngrams.h"

namespace mmeval {

class IdfTable {
public:
    // Nothing if the bytes are not exactly those that DocumentFrequencies::to_bytes writes, or if the table is too
    // large for its slots.
    static std::optional<IdfTable> from_bytes(std::string_view bytes);

    // An n-gram of the table is known by its place: kMissing if it is not there.
    struct Found {
        std::uint32_t place;
        double idf;
    };
    Found find(std::uint32_t token) const {
        const Unigram& unigram = unigrams_[token];
        return {unigram.is_there ? first_unigram_ + token : kMissing, unigram.idf};
    }
    // The n-grams of some prefixes (places) and tokens, all of which are there. Look-ups are prefetched together.
    void find_all(const std::uint32_t* prefixes, const std::uint32_t* tokens, std::size_t count, Found* out) const;

    double idf_of_missing() const { return log_images_; }

    Vocabulary tokens;
    std::string tokenizer;
    std::uint64_t images = 0;
    std::uint64_t size = 0;  // n-grams
    bool varies = false;     // as in DocumentFrequencies

private:
    struct Unigram {
        double idf;
        bool is_there;
    };

    bool read(std::string_view bytes);
    double idf_of(std::uint64_t count) const {
        return count < idf_of_count_.size() ? idf_of_count_[count] : computed_idf(count);
    }
    double computed_idf(std::uint64_t count) const;
    double idf_in(std::uint64_t slot) const;
    std::uint64_t key_of(std::uint32_t prefix, std::uint32_t token) const {
        return static_cast<std::uint64_t>(prefix) << token_bits_ | token;
    }
    std::size_t home(std::uint64_t key) const;
    std::uint32_t insert(std::uint64_t key, std::uint64_t count);

    double log_images_ = 0.0;
    std::vector<double> idf_of_count_;
    std::vector<Unigram> unigrams_;  // by token
    // N-grams of two and more tokens; their places are their slots. A slot has the key (place of the prefix, token) in
    // the high bits and the count in the low ones; 0 is a free slot.
    LargeVector<std::uint64_t> slots_;
    int token_bits_ = 0, count_bits_ = 0;
    std::uint64_t most_ = 0;  // the largest count in a slot; such counts are in `large_`
    std::unordered_map<std::uint64_t, std::uint64_t> large_;  // by key
    std::uint32_t first_unigram_ = 0;  // place of the first token: places of unigrams come after those of slots
};

}  // namespace mmeval
