#include "ngrams.h"

#include <algorithm>
#include <stdexcept>

#include "word_hash.h"

namespace mmeval {
namespace {

constexpr std::size_t kFirstSlots = 64;
constexpr std::size_t kTogether = 16;  // look-ups that are prefetched together

void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

bool crowded(std::size_t entries, std::size_t slots) { return entries * 2 >= slots; }

}  // namespace

std::size_t Vocabulary::probe(std::string_view token, std::uint64_t head) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash_of(token, head) & mask;
    for (; slots_[slot].id != kMissing; slot = (slot + 1) & mask) {
        const Entry& entry = slots_[slot];
        if (entry.head != head || entry.size != token.size()) continue;
        if (token.size() <= 8 || (*this)[entry.id] == token) break;
    }
    return slot;
}

void Vocabulary::grow() {
    const std::vector<Entry> old = std::move(slots_);
    slots_.assign(old.empty() ? kFirstSlots : old.size() * 2, Entry{0, 0, kMissing});
    const std::size_t mask = slots_.size() - 1;
    for (const Entry& entry : old) {
        if (entry.id == kMissing) continue;
        std::size_t slot = hash_of((*this)[entry.id], entry.head) & mask;
        while (slots_[slot].id != kMissing) slot = (slot + 1) & mask;
        slots_[slot] = entry;
    }
}

std::uint32_t Vocabulary::add(std::string_view token) {
    if (slots_.empty() || crowded(ends_.size(), slots_.size())) grow();
    const std::uint64_t head = head_of(token);
    const std::size_t slot = probe(token, head);
    if (slots_[slot].id == kMissing) {
        slots_[slot] = {head, static_cast<std::uint32_t>(token.size()), size()};
        bytes_.append(token);
        ends_.push_back(bytes_.size());
    }
    return slots_[slot].id;
}

std::uint32_t Vocabulary::find(std::string_view token) const {
    return slots_.empty() ? kMissing : slots_[probe(token, head_of(token))].id;
}

void Vocabulary::fetch(std::string_view token) const {
    if (!slots_.empty()) prefetch(&slots_[hash_of(token, head_of(token)) & (slots_.size() - 1)]);
}

std::size_t NgramTable::home(std::uint64_t key) const {
    const std::uint64_t hash = mix(key);
    return (hash ^ (hash >> 32)) & (slots_.size() - 1);
}

std::size_t NgramTable::probe(std::uint64_t key, std::size_t slot) const {
    const std::size_t mask = slots_.size() - 1;
    while (slots_[slot] != kMissing && keys_[slots_[slot]] != key) slot = (slot + 1) & mask;
    return slot;
}

void NgramTable::add_all(const std::uint32_t* prefixes, const std::uint32_t* tokens, std::size_t count,
                         std::uint32_t* out) {
    std::size_t homes[kTogether];
    for (std::size_t done = 0; done < count; done += kTogether) {
        const std::size_t some = std::min(kTogether, count - done);
        while (slots_.empty() || crowded(keys_.size() + some, slots_.size())) grow();
        for (std::size_t i = 0; i < some; ++i) {
            homes[i] = home((static_cast<std::uint64_t>(prefixes[done + i]) << 32) | tokens[done + i]);
            prefetch(&slots_[homes[i]]);
        }
        for (std::size_t i = 0; i < some; ++i)
            out[done + i] = add_at(prefixes[done + i], tokens[done + i], homes[i]);
    }
}

std::uint32_t NgramTable::add_at(std::uint32_t prefix, std::uint32_t token, std::size_t home) {
    const std::uint64_t key = (static_cast<std::uint64_t>(prefix) << 32) | token;
    const std::size_t slot = probe(key, home);
    if (slots_[slot] == kMissing) {
        if (keys_.size() >= kMissing) throw std::length_error("there are more than 2^32 different n-grams");
        slots_[slot] = size();
        keys_.push_back(key);
        orders_.push_back(static_cast<std::uint8_t>(orders_[prefix] + 1));
    }
    return slots_[slot];
}

void NgramTable::find_all(const std::uint32_t* prefixes, const std::uint32_t* tokens, std::size_t count,
                          std::uint32_t* out) const {
    if (slots_.empty()) {
        std::fill(out, out + count, kMissing);
        return;
    }
    std::size_t homes[kTogether];
    std::uint64_t keys[kTogether];
    for (std::size_t done = 0; done < count; done += kTogether) {
        const std::size_t some = std::min(kTogether, count - done);
        for (std::size_t i = 0; i < some; ++i) {
            keys[i] = (static_cast<std::uint64_t>(prefixes[done + i]) << 32) | tokens[done + i];
            homes[i] = home(keys[i]);
            prefetch(&slots_[homes[i]]);
        }
        for (std::size_t i = 0; i < some; ++i)
            if (slots_[homes[i]] != kMissing) prefetch(&keys_[slots_[homes[i]]]);
        for (std::size_t i = 0; i < some; ++i) out[done + i] = slots_[probe(keys[i], homes[i])];
    }
}

void NgramTable::clear() {
    for (std::uint32_t node = 0; node < size(); ++node)
        if (orders_[node] == 1) unigrams_[token(node)] = kMissing;
    std::fill(slots_.begin(), slots_.end(), kMissing);
    keys_.clear();
    orders_.clear();
}

void NgramTable::reserve(std::size_t more) {
    keys_.reserve(keys_.size() + more);
    orders_.reserve(orders_.size() + more);
    while (slots_.empty() || crowded(keys_.size() + more, slots_.size())) grow();
}

void NgramTable::grow() {
    const std::size_t size = slots_.empty() ? kFirstSlots : slots_.size() * 2;
    slots_.assign(size, kMissing);
    for (std::uint32_t node = 0; node < keys_.size(); ++node)
        if (orders_[node] > 1) slots_[probe(keys_[node], home(keys_[node]))] = node;
}

std::uint32_t NgramTable::add(std::uint32_t prefix, std::uint32_t token) {
    if (prefix == kMissing) {
        if (token >= unigrams_.size()) unigrams_.resize(std::size_t{token} + 1 + token / 2, kMissing);
        if (unigrams_[token] == kMissing) {
            unigrams_[token] = size();
            keys_.push_back((static_cast<std::uint64_t>(kMissing) << 32) | token);
            orders_.push_back(1);
        }
        return unigrams_[token];
    }
    if (slots_.empty() || crowded(keys_.size(), slots_.size())) grow();
    return add_at(prefix, token, home((static_cast<std::uint64_t>(prefix) << 32) | token));
}

std::uint32_t NgramTable::find(std::uint32_t prefix, std::uint32_t token) const {
    if (prefix == kMissing) return token < unigrams_.size() ? unigrams_[token] : kMissing;
    if (slots_.empty()) return kMissing;
    const std::uint64_t key = (static_cast<std::uint64_t>(prefix) << 32) | token;
    return slots_[probe(key, home(key))];
}

}  // namespace mmeval
