#include "word_vectors.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "parallel.h"

namespace mmeval {

namespace {

std::uint64_t finished(std::uint64_t hash) {
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdULL;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53ULL;
    return hash ^ (hash >> 33);
}

// MurmurHash3 of one 64-bit number, as four 32-bit numbers.
std::array<std::uint32_t, 4> four_hashes(std::uint64_t key, std::uint32_t seed) {
    std::uint64_t first = key * 0x87c37b91114253d5ULL;
    first = (first << 31) | (first >> 33);
    first *= 0x4cf5ad432745937fULL;
    first ^= seed;
    first ^= 8;
    std::uint64_t second = seed ^ 8ULL;
    first += second;
    second += first;
    first = finished(first);
    second = finished(second);
    first += second;
    second += first;
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(first >> 32),
            static_cast<std::uint32_t>(second), static_cast<std::uint32_t>(second >> 32)};
}

}  // namespace

std::uint64_t string_key(std::string_view text) {
    constexpr std::uint64_t kMultiplier = 0xc6a4a7935bd1e995ULL;
    std::uint64_t hash = 1 ^ (text.size() * kMultiplier);
    std::size_t at = 0;
    for (; at + 8 <= text.size(); at += 8) {
        std::uint64_t block;
        std::memcpy(&block, text.data() + at, 8);  // little-endian machines only, as the weights are
        block *= kMultiplier;
        block ^= block >> 47;
        hash = (hash ^ (block * kMultiplier)) * kMultiplier;
    }
    if (at < text.size()) {
        std::uint64_t rest = 0;
        for (std::size_t i = 0; at + i < text.size(); ++i)
            rest |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
        hash = (hash ^ rest) * kMultiplier;
    }
    hash ^= hash >> 47;
    hash *= kMultiplier;
    return hash ^ (hash >> 47);
}

void HashedTable::add(std::uint64_t key, std::size_t width, float* vector) const {
    for (const std::uint32_t hash : four_hashes(key, seed)) {
        const float* row = rows.data() + static_cast<std::size_t>(hash % count) * width;
        for (std::size_t i = 0; i < width; ++i) vector[i] += row[i];
    }
}

std::uint64_t WordVectors::key_of(std::string_view text) const {
    if (text.empty()) return 0;
    const auto fixed = fixed_keys.find(text);
    return fixed == fixed_keys.end() ? string_key(text) : fixed->second;
}

void WordVectors::check() const {
    for (const HashedTable& table : tables)
        if (table.count == 0 || table.rows.size() != table.count * width())
            throw std::invalid_argument("the tables of word features do not have the width of the network");
    if (mix.linear().inputs() != kTables * width() || convolutions.empty())
        throw std::invalid_argument("the first layer does not take the word features");
    for (const MaxoutNorm& layer : convolutions)
        if (layer.linear().inputs() != kWindow * width() || layer.width() != width())
            throw std::invalid_argument("a convolution does not take windows of three words");
}

void WordVectors::finish_setup() {
    check();
    std::vector<float> row(width(), 0.0f), window(kWindow * width()), sums, output(width());
    for (const MaxoutNorm& layer : convolutions) {
        for (std::size_t slot = 0; slot < kWindow; ++slot) std::copy(row.begin(), row.end(), window.begin() + slot * width());
        sums.resize(layer.linear().outputs());
        layer.apply(window.data(), window.size(), 1, sums.data(), output.data());
        for (std::size_t i = 0; i < width(); ++i) row[i] += output[i];
        padding_.push_back(row);
    }
}

void WordVectors::embed(const std::vector<WordFeatures>& words, Words& embedded, std::size_t threads) const {
    const Linear& first = convolutions.front().linear();
    const std::size_t outputs = first.outputs();
    embedded.vectors.resize(words.size() * width());
    embedded.shares.resize(kWindow * words.size() * outputs);
    in_pieces(words.size(), threads, [&](std::size_t, std::size_t begin, std::size_t end) {
        std::vector<float> features(kTables * width()), sums(mix.linear().outputs());
        for (std::size_t word = begin; word < end; ++word) {
            const WordFeatures& of = words[word];
            const auto norm = norms.find(key_of(of.text));
            const std::array<std::uint64_t, kTables> keys = {norm == norms.end() ? key_of(of.lower) : norm->second,
                                                             key_of(of.prefix), key_of(of.suffix), key_of(of.shape), 1, 0};
            std::fill(features.begin(), features.end(), 0.0f);
            for (std::size_t table = 0; table < kTables; ++table)
                tables[table].add(keys[table], width(), features.data() + table * width());
            mix.apply(features.data(), features.size(), 1, sums.data(), embedded.vectors.data() + word * width());
        }
        for (std::size_t slot = 0; slot < kWindow; ++slot)
            first.apply_part(embedded.vectors.data() + begin * width(), width(), end - begin, slot * width(), width(),
                             embedded.shares.data() + (slot * words.size() + begin) * outputs);
    });
}

const float* WordVectors::contextual(const Words& words, const std::int32_t* sentence, std::size_t count,
                                     Room& room) const {
    // Row i is the word i - margin. Beyond the first and the last word, rows matter as far as the windows reach.
    const std::size_t margin = convolutions.size(), rows = count + 2 * margin;
    const std::size_t vocabulary = words.vectors.size() / width(), outputs = convolutions.front().linear().outputs();
    room.rows.assign(rows * width(), 0.0f);
    room.next.resize(rows * width());
    room.sums.resize(rows * outputs);
    for (std::size_t i = 0; i < count; ++i)
        std::copy_n(words.vectors.data() + sentence[i] * width(), width(), room.rows.data() + (i + margin) * width());
    for (std::size_t depth = 0; depth < convolutions.size(); ++depth) {
        const MaxoutNorm& layer = convolutions[depth];
        // Rows that later layers need, and that differ from padding.
        const std::size_t reach = std::min(depth + 1, convolutions.size() - 1 - depth);
        const std::size_t begin = margin - reach, end = margin + count + reach;
        float* sums = room.sums.data();
        if (depth == 0) {
            std::fill_n(sums, (end - begin) * outputs, 0.0f);
            for (std::size_t row = begin; row < end; ++row) {
                float* sum = sums + (row - begin) * outputs;
                for (std::size_t slot = 0; slot < kWindow; ++slot) {
                    const std::size_t at = row + slot - 1;
                    if (at < margin || at >= margin + count) continue;
                    const float* share =
                        words.shares.data() + (slot * vocabulary + static_cast<std::size_t>(sentence[at - margin])) * outputs;
                    for (std::size_t i = 0; i < outputs; ++i) sum[i] += share[i];
                }
                layer.linear().add_bias(sum);
            }
        } else {
            layer.linear().apply(room.rows.data() + (begin - 1) * width(), width(), end - begin, sums);
        }
        for (std::size_t row = 0; row < rows; ++row) {
            float* next = room.next.data() + row * width();
            if (row < begin || row >= end) {
                std::copy(padding_[depth].begin(), padding_[depth].end(), next);
                continue;
            }
            layer.finish(sums + (row - begin) * outputs, next);
            const float* old = room.rows.data() + row * width();
            for (std::size_t i = 0; i < width(); ++i) next[i] += old[i];
        }
        room.rows.swap(room.next);
    }
    return room.rows.data() + margin * width();
}

}  // namespace mmeval
