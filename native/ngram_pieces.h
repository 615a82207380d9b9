// N-grams with counts as flat lists of tokens, in pieces: a part's n-grams are split into buckets, a bucket is summed
// over all parts, and the buckets are united into one table. Equal n-grams are in the same bucket of every part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "document_frequencies.h"
#include "large_vector.h"
#include "ngrams.h"
#include "span.h"

namespace mmeval {

// The tokens of an n-gram, as numbers in a vocabulary plus 1; 0 after the last token. The first tokens are in the high
// bits, so that n-grams are sorted by their tokens.
struct NgramKey {
    std::uint64_t first, second;

    void set(int place, std::uint32_t token) {
        (place < 2 ? first : second) |= static_cast<std::uint64_t>(token) << (place % 2 == 0 ? 32 : 0);
    }
    std::uint32_t token(int place) const {
        return static_cast<std::uint32_t>((place < 2 ? first : second) >> (place % 2 == 0 ? 32 : 0));
    }
    bool operator==(const NgramKey& other) const { return first == other.first && second == other.second; }
    bool operator<(const NgramKey& other) const {
        return first != other.first ? first < other.first : second < other.second;
    }
};

struct CountedNgram {
    NgramKey key;
    std::uint32_t count;

    std::uint32_t token(int place) const { return key.token(place); }
    int order() const {
        int order = 1;
        while (order < kOrders && token(order) != 0) ++order;
        return order;
    }
};

// The token numbers of the references of some images.
struct ReferenceTokens {
    const Vocabulary& vocabulary;
    std::string tokenizer;
    std::vector<Span> texts;
    std::vector<std::uint64_t> image_ends;  // in `texts`; an image without texts is not counted
};

// The images in whose references each n-gram occurs, in `buckets` pieces.
std::vector<std::string> packed_references(const ReferenceTokens& references, std::uint32_t buckets);

// The same for a table.
std::vector<std::string> packed_table(const DocumentFrequencies& table, std::uint32_t buckets);

// The sum of one bucket over many parts.
class BucketSum {
public:
    BucketSum();
    BucketSum(const BucketSum&) = delete;
    BucketSum& operator=(const BucketSum&) = delete;
    void add(std::string_view piece);  // throws std::runtime_error if the piece is not valid
    // A byte that tells whether any n-gram has a weight (see DocumentFrequencies::varies), then a piece with the
    // n-grams of at least two images.
    std::string finish();

private:
    static constexpr std::size_t kPartitions = 256, kChunk = 1024;  // a partition is counted in the processor's cache
    struct Partition {
        std::vector<std::unique_ptr<CountedNgram[]>> chunks;
        std::size_t size = 0;
    };

    Vocabulary tokens_;
    std::vector<Partition> partitions_;
    std::uint64_t images_ = 0;
    std::string tokenizer_;
};

// The buckets of a run as one table of n-grams, in the form of DocumentFrequencies::to_bytes.
class BucketUnion {
public:
    void add(std::string_view bucket);  // the result of BucketSum::finish
    bool has_weights() const { return has_weights_ && images_ > 1; }
    std::string finish(std::size_t threads);

private:
    Vocabulary tokens_;
    LargeVector<CountedNgram> ngrams_;
    std::uint64_t images_ = 0;
    std::string tokenizer_;
    bool has_weights_ = false;
};

}  // namespace mmeval
