// Context-sensitive vectors of words: hashed features of each word, mixed, then a stack of convolutions over windows of
// three words with residual connections. The network of spaCy's small pipelines (tok2vec).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dense_layers.h"

namespace mmeval {

// MurmurHash64A with the seed 1: the number of a string.
std::uint64_t string_key(std::string_view text);

// What the network looks up of a word.
struct WordFeatures {
    std::string_view lower, prefix, suffix, shape;
    std::string_view text;
};

// A table of vectors in which a key has four rows, which are added.
struct HashedTable {
    std::vector<float> rows;
    std::uint32_t count = 0, seed = 0;

    void add(std::uint64_t key, std::size_t width, float* vector) const;
};

class WordVectors {
   public:
    static constexpr std::size_t kTables = 6;  // norm, prefix, suffix, shape, a space follows, is white space
    static constexpr std::size_t kWindow = 3;

    std::array<HashedTable, kTables> tables;
    MaxoutNorm mix;
    std::vector<MaxoutNorm> convolutions;
    std::unordered_map<std::uint64_t, std::uint64_t> norms;    // key of a word -> key of its normal form
    std::unordered_map<std::string_view, std::uint64_t> fixed_keys;  // strings whose key is not their hash

    std::size_t width() const { return mix.width(); }

    // What a word contributes at any position: its own vector, and its share of the first convolution as the left,
    // middle and right word of a window.
    struct Words {
        std::vector<float> vectors, shares;
    };
    void embed(const std::vector<WordFeatures>& words, Words& embedded, std::size_t threads) const;

    // Room for the vectors of one sentence, which is kept between sentences.
    struct Room {
        std::vector<float> rows, next, sums;
    };
    // The vectors of a sentence, count x width, in room.rows from the returned position.
    const float* contextual(const Words& words, const std::int32_t* sentence, std::size_t count, Room& room) const;

    void check() const;  // throws std::invalid_argument if the sizes do not fit together
    void finish_setup();

   private:
    std::uint64_t key_of(std::string_view text) const;
    std::vector<std::vector<float>> padding_;  // the vector of a row far from any word, after each convolution
};

}  // namespace mmeval
