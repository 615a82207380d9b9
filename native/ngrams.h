// N-grams of up to four tokens, each with a number. The table is exact: it stores n-grams, not hashes.
//
// An n-gram is a node: its first n-1 tokens (another node) and its last token. A look-up is one probe of a table keyed
// by that pair, and prefixes share their storage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "large_vector.h"

namespace mmeval {

constexpr int kOrders = 4;
constexpr int kBleuStats = 2 * kOrders + 2;  // correct 1..4, guessed 1..4, candidate length, reference length
constexpr std::uint32_t kMissing = 0xFFFFFFFF;

// Strings, numbered in the order of insertion. Most words fit into eight bytes, so strings are compared by their first
// eight bytes and length, and only then by the rest.
class Vocabulary {
public:
    std::uint32_t add(std::string_view token);
    std::uint32_t find(std::string_view token) const;  // kMissing if it is not there
    void fetch(std::string_view token) const;  // prefetches the memory that `add` and `find` read
    std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }
    std::string_view operator[](std::uint32_t id) const {
        const std::size_t begin = id == 0 ? 0 : ends_[id - 1];
        return std::string_view(bytes_).substr(begin, ends_[id] - begin);
    }

private:
    struct Entry {
        std::uint64_t head;
        std::uint32_t size;
        std::uint32_t id;  // kMissing: free
    };
    std::size_t probe(std::string_view token, std::uint64_t head) const;
    void grow();

    std::string bytes_;
    std::vector<std::uint64_t> ends_;
    std::vector<Entry> slots_;
};

// Nodes, numbered in the order of insertion, so that a prefix has a smaller number than its extensions.
class NgramTable {
public:
    std::uint32_t add(std::uint32_t prefix, std::uint32_t token);  // prefix kMissing: a single token
    // add, for `count` pairs. Look-ups are prefetched together.
    void add_all(const std::uint32_t* prefixes, const std::uint32_t* tokens, std::size_t count, std::uint32_t* out);
    std::uint32_t find(std::uint32_t prefix, std::uint32_t token) const;
    // find, for `count` pairs, none of which is kMissing. Look-ups are prefetched together.
    void find_all(const std::uint32_t* prefixes, const std::uint32_t* tokens, std::size_t count,
                  std::uint32_t* out) const;
    void clear();  // keeps the memory
    void reserve(std::size_t more);  // room for `more` additional n-grams
    std::uint32_t size() const { return static_cast<std::uint32_t>(keys_.size()); }
    std::uint32_t prefix(std::uint32_t node) const { return static_cast<std::uint32_t>(keys_[node] >> 32); }
    std::uint32_t token(std::uint32_t node) const { return static_cast<std::uint32_t>(keys_[node]); }
    int order(std::uint32_t node) const { return orders_[node]; }

private:
    std::uint32_t add_at(std::uint32_t prefix, std::uint32_t token, std::size_t home);
    std::size_t home(std::uint64_t key) const;
    std::size_t probe(std::uint64_t key, std::size_t slot) const;
    void grow();

    LargeVector<std::uint64_t> keys_;
    LargeVector<std::uint8_t> orders_;
    std::vector<std::uint32_t> unigrams_;  // by token: a single token needs no probe
    LargeVector<std::uint32_t> slots_;
};

}  // namespace mmeval
