// Numbers for the words of one sample after the other. The table stays small, and starting over takes no time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "ngrams.h"
#include "word_hash.h"

namespace mmeval {

class SampleWords {
public:
    static constexpr std::size_t kPadding = 16;  // bytes

    // Forgets all words.
    void start();

    // 0, 1, 2, … in the order of insertion
    std::uint32_t add(std::string_view word) {
        if (word.size() > kPadding) return add_long(word);
        return add({head_of(word), word.size() > 8 ? head_of(word.substr(8)) : 0, word.size()});
    }

    // The same for a word after whose first byte at least kPadding bytes can be read. It is faster, since no branch depends
    // on the length of short words.
    std::uint32_t add_padded(std::string_view word) {
        if (word.size() > kPadding) return add_long(word);
        Key key{0, 0, word.size()};
        std::memcpy(&key.head, word.data(), 8);
        std::memcpy(&key.tail, word.data() + 8, 8);
        const std::size_t in_head = std::min<std::size_t>(word.size(), 8);
        key.head &= kFirstBytes[in_head];
        key.tail &= kFirstBytes[word.size() - in_head];
        return add(key);
    }

    std::uint32_t size() const { return size_; }

private:
    struct Key {
        std::uint64_t head, tail;  // the first eight bytes and the next eight; of a longer word its number in long_
        std::uint64_t length;

        std::size_t hash() const {
            const std::uint64_t mixed = mix(mix(head + length) ^ tail);
            return mixed ^ mixed >> 32;
        }
        bool operator==(const Key& other) const {
            return ((head ^ other.head) | (tail ^ other.tail) | (length ^ other.length)) == 0;
        }
    };
    struct Slot {
        Key key{};
        std::uint32_t number = 0, epoch = 0;
    };
    static constexpr std::uint64_t kFirstBytes[9] = {
        0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, 0xffffffffffffffff,
    };

    std::uint32_t add(const Key& key) {
        for (std::size_t at = key.hash() & mask_;; at = (at + 1) & mask_) {
            Slot& slot = slots_[at];
            const bool is_new = slot.epoch != epoch_;
            if (!(is_new | (slot.key == key))) continue;
            // Whether a word is new is hard to predict, so both cases do the same.
            const std::uint32_t number = is_new ? size_ : slot.number;
            slot = {key, number, epoch_};
            size_ += is_new;
            if (size_ * std::size_t{2} > mask_) grow();
            return number;
        }
    }
    std::uint32_t add_long(std::string_view word);
    void grow();

    std::vector<Slot> slots_ = std::vector<Slot>(512);
    std::size_t mask_ = 511;
    Vocabulary long_;  // words of all samples
    std::uint32_t size_ = 0, epoch_ = 1;
};

}  // namespace mmeval
