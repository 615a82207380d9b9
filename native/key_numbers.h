// Numbers 0, 1, 2, … for different 64-bit keys, in the order of insertion. Starting over takes no time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ngrams.h"

namespace mmeval {

class KeyNumbers {
public:
    // Forgets all keys; at most `keys` different ones will be added.
    void start(std::size_t keys) {
        std::size_t slots = kFewest;
        // A small table can be sparse, which saves comparisons.
        while (slots < (keys < kSparse ? keys * 4 : keys + keys / 2)) slots *= 2;
        if (slots > slots_.size()) slots_.resize(slots);  // new slots have the epoch 0
        mask_ = slots - 1;
        size_ = 0;
        if (++epoch_ == 0) {
            for (Slot& slot : slots_) slot.epoch = 0;
            epoch_ = 1;
        }
    }

    std::uint32_t add(std::uint64_t key) {
        // Whether a key is new is hard to predict, so both cases do the same.
        Slot& slot = slots_[probe(key)];
        const bool is_new = slot.epoch != epoch_;
        const std::uint32_t number = is_new ? size_ : slot.number;
        slot = {key, number, epoch_};
        size_ += is_new;
        return number;
    }

    // kMissing if the key is not there
    std::uint32_t find(std::uint64_t key) const {
        const Slot& slot = slots_[probe(key)];
        return slot.epoch == epoch_ ? slot.number : kMissing;
    }

    std::uint32_t size() const { return size_; }

    // Whether the table is too large for a near cache, so that it is worth to prefetch a few keys at a time.
    bool is_large() const { return mask_ >= kLarge; }
    void fetch([[maybe_unused]] std::uint64_t key) const {
#if defined(__GNUC__)
        __builtin_prefetch(&slots_[home(key)]);
#endif
    }

private:
    struct Slot {
        std::uint64_t key = 0;
        std::uint32_t number = 0;
        std::uint32_t epoch = 0;
    };
    static constexpr std::size_t kFewest = 16, kSparse = 256, kLarge = 1 << 14;

    std::size_t home(std::uint64_t key) const {
        const std::uint64_t hash = key * 0x9e3779b97f4a7c15u;
        return (hash ^ (hash >> 32)) & mask_;
    }
    std::size_t probe(std::uint64_t key) const {
        std::size_t slot = home(key);
        while (slots_[slot].epoch == epoch_ && slots_[slot].key != key) slot = (slot + 1) & mask_;
        return slot;
    }

    std::vector<Slot> slots_ = std::vector<Slot>(kFewest);
    std::size_t mask_ = kFewest - 1;
    std::uint32_t size_ = 0, epoch_ = 1;
};

}  // namespace mmeval
