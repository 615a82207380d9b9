#include "ngram_pieces.h"

#include <algorithm>
#include <stdexcept>

#include "piece_format.h"
#include "text_hash.h"

namespace mmeval {
namespace {

std::uint64_t mixed(std::uint64_t x) {
    x ^= x >> 32;
    x *= 0x9E3779B97F4A7C15ull;
    return x ^ (x >> 29);
}

// Where the n-grams go: to the bucket of their longest token, so that a rare token is in few buckets. The value of a
// token is the same in every vocabulary; that of an n-gram is the largest of its tokens.
std::vector<std::uint64_t> values_of(const Vocabulary& tokens) {
    std::vector<std::uint64_t> values(tokens.size());
    for (std::uint32_t id = 0; id < tokens.size(); ++id) {
        const std::uint64_t length = std::min<std::size_t>(tokens[id].size(), 0xFF);
        values[id] = length << 56 | static_cast<std::uint64_t>(text_hash(tokens[id])) >> 8;
    }
    return values;
}

// A number below `count` for a value. That for twice as many is in the same half.
std::uint32_t share_of(std::uint64_t value, std::uint64_t count) {
    return static_cast<std::uint32_t>(((mixed(value) >> 32) * count) >> 32);
}

// Keys of n-grams: 16 bits per token for up to 65,535 tokens, otherwise 32.
struct ShortKey {
    std::uint64_t bits;
    void set(int place, std::uint32_t token) { bits |= static_cast<std::uint64_t>(token) << (16 * place); }
    std::uint32_t token(int place) const { return static_cast<std::uint16_t>(bits >> (16 * place)); }
    bool operator==(const ShortKey& other) const { return bits == other.bits; }
    std::uint64_t hash() const { return mixed(bits); }
};

struct LongKey : NgramKey {
    std::uint64_t hash() const { return mixed(first ^ mixed(second)); }
};

template <typename Key>
struct Counted {
    Key key;
    std::uint32_t count;
    std::uint32_t image;  // the last in which the n-gram was counted

    std::uint32_t token(int place) const { return key.token(place); }
};

// Distinct keys in the order of their first occurrence. It is used for so few keys that they stay in the cache.
template <typename Key, typename Entry>
class Groups {
public:
    void start(std::size_t most) {
        std::size_t slots = 16;
        while (slots < 2 * most) slots *= 2;
        slots_.assign(slots, 0);
        entries_.clear();
    }
    // The entry of a key; `make` creates a new one.
    template <typename Make>
    Entry& at(const Key& key, Make make) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t slot = key.hash() & mask;
        for (; slots_[slot] != 0; slot = (slot + 1) & mask)
            if (entries_[slots_[slot] - 1].key == key) return entries_[slots_[slot] - 1];
        entries_.push_back(make());
        slots_[slot] = static_cast<std::uint32_t>(entries_.size());
        return entries_.back();
    }
    const std::vector<Entry>& entries() const { return entries_; }

private:
    std::vector<std::uint32_t> slots_;  // numbers of entries plus 1; 0: free
    std::vector<Entry> entries_;
};

std::uint32_t checked_sum(std::uint32_t count, std::uint32_t more) {
    if (count > kMissing - more) throw std::length_error("an n-gram occurs in more than 2^32 images");
    return count + more;
}

template <typename Key>
std::vector<std::string> packed_with(const ReferenceTokens& references, std::uint32_t buckets) {
    using Entry = Counted<Key>;
    constexpr std::size_t kCached = 4096;  // occurrences that are counted together
    constexpr std::size_t kKept = std::size_t{1} << 26;  // bytes
    const std::vector<std::uint64_t> values = values_of(references.vocabulary);
    std::size_t all = 0;
    for (const Span& text : references.texts)
        for (std::size_t n = 0; n < kOrders && n < text.size; ++n) all += text.size - n;
    // Occurrences are first sorted into partitions, each of one bucket, so that counting stays in the cache.
    const std::uint32_t most = std::max<std::uint32_t>(1, 0xFFFF / buckets);
    const auto per_bucket = static_cast<std::uint32_t>(std::min<std::size_t>(most, 1 + all / kCached / buckets));
    const std::uint32_t partitions = buckets * per_bucket;
    // Kept for the next part of this thread: new memory would have to be cleared by the system.
    thread_local LargeVector<std::uint32_t> kept_partitions;
    auto& partition_of = kept_partitions;
    partition_of.resize(all);
    std::vector<std::size_t> ends(partitions + std::size_t{1}, 0);
    std::size_t at = 0;
    for (const Span& text : references.texts) {
        for (std::size_t start = 0; start < text.size; ++start) {
            std::uint64_t value = 0;
            const std::size_t end = std::min<std::size_t>(kOrders, text.size - start);
            for (std::size_t i = 0; i < end; ++i) {
                value = std::max(value, values[text.data[start + i]]);
                const std::uint32_t partition = share_of(value, partitions);
                partition_of[at++] = partition;
                ++ends[partition + 1];
            }
        }
    }
    for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    struct Occurrence {
        Key key;
        std::uint32_t image;
    };
    thread_local LargeVector<Occurrence> kept_occurrences;
    auto& sorted = kept_occurrences;
    sorted.resize(all);
    std::vector<std::size_t> next(ends.begin(), ends.end() - 1);
    std::uint64_t images = 0;
    std::size_t text = 0;
    at = 0;
    for (std::size_t image = 0; image < references.image_ends.size(); ++image) {
        if (text < references.image_ends[image]) ++images;
        for (; text < references.image_ends[image]; ++text) {
            const Span tokens = references.texts[text];
            for (std::size_t start = 0; start < tokens.size; ++start) {
                Key key{};
                const std::size_t end = std::min<std::size_t>(kOrders, tokens.size - start);
                for (std::size_t i = 0; i < end; ++i) {
                    key.set(static_cast<int>(i), tokens.data[start + i] + 1);
                    sorted[next[partition_of[at++]]++] = {key, static_cast<std::uint32_t>(image)};
                }
            }
        }
    }
    PieceWriter writer(references.vocabulary, images, references.tokenizer);
    Groups<Key, Entry> groups;
    std::vector<Entry> entries;
    std::vector<std::string> packed;
    packed.reserve(buckets);
    for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
        entries.clear();
        for (std::uint32_t i = bucket * per_bucket; i < (bucket + 1) * per_bucket; ++i) {
            groups.start(ends[i + 1] - ends[i]);
            for (std::size_t k = ends[i]; k < ends[i + 1]; ++k) {
                const std::uint32_t image = sorted[k].image;
                Entry& entry = groups.at(sorted[k].key, [&] { return Entry{sorted[k].key, 0, ~image}; });
                if (entry.image == image) continue;
                entry.image = image;
                ++entry.count;
            }
            entries.insert(entries.end(), groups.entries().begin(), groups.entries().end());
        }
        packed.push_back(writer.write(entries));
    }
    if (sorted.capacity() * sizeof(Occurrence) > kKept) {
        sorted = {};
        partition_of = {};
    }
    return packed;
}

struct SumEntry {
    LongKey key;
    std::uint32_t count;
};

}  // namespace

std::vector<std::string> packed_references(const ReferenceTokens& references, std::uint32_t buckets) {
    return references.vocabulary.size() <= 0xFFFF ? packed_with<ShortKey>(references, buckets)
                                                  : packed_with<LongKey>(references, buckets);
}

std::vector<std::string> packed_table(const DocumentFrequencies& table, std::uint32_t buckets) {
    const std::vector<std::uint64_t> values = values_of(table.tokens);
    std::vector<std::vector<CountedNgram>> entries(buckets);
    for (std::uint32_t node = 0; node < table.ngrams.size(); ++node) {
        if (table.count(node) == 0) continue;
        CountedNgram entry{{0, 0}, table.count(node)};
        std::uint64_t value = 0;
        std::uint32_t at = node;
        for (int place = table.ngrams.order(node) - 1; place >= 0; --place) {
            const std::uint32_t token = table.ngrams.token(at);
            entry.key.set(place, token + 1);
            value = std::max(value, values[token]);
            at = table.ngrams.prefix(at);
        }
        entries[share_of(value, buckets)].push_back(entry);
    }
    PieceWriter writer(table.tokens, table.images, table.tokenizer);
    std::vector<std::string> packed;
    for (const auto& bucket : entries) packed.push_back(writer.write(bucket));
    return packed;
}

BucketSum::BucketSum() : partitions_(kPartitions) {}

void BucketSum::add(std::string_view piece) {
    PieceReader reader(piece, tokens_, tokenizer_);
    reader.each([&](const CountedNgram& ngram) {
        Partition& partition = partitions_[LongKey{ngram.key}.hash() >> 56];
        if (partition.size == partition.chunks.size() * kChunk)
            partition.chunks.emplace_back(new CountedNgram[kChunk]);
        partition.chunks[partition.size / kChunk][partition.size % kChunk] = ngram;
        ++partition.size;
    });
    images_ += reader.images;
}

std::string BucketSum::finish() {
    Groups<LongKey, SumEntry> groups;
    std::vector<CountedNgram> kept;
    bool varies = false;
    for (Partition& partition : partitions_) {
        groups.start(partition.size);
        for (std::size_t i = 0; i < partition.size; ++i) {
            const CountedNgram& ngram = partition.chunks[i / kChunk][i % kChunk];
            const LongKey key{ngram.key};
            SumEntry& entry = groups.at(key, [&] { return SumEntry{key, 0}; });
            entry.count = checked_sum(entry.count, ngram.count);
        }
        for (const SumEntry& entry : groups.entries()) {
            varies = varies || entry.count < images_;
            if (entry.count < 2) continue;
            kept.push_back({entry.key, entry.count});
        }
        partition = Partition();
    }
    return (varies ? '\1' : '\0') + PieceWriter(tokens_, images_, tokenizer_).write(kept);
}

}  // namespace mmeval
