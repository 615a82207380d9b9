// A hash of 64 bits for finding equal texts. It is the same in every process.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace mmeval {

// MurmurHash64A by Austin Appleby (public domain).
inline std::int64_t text_hash(std::string_view text) {
    constexpr std::uint64_t kMultiplier = 0xc6a4a7935bd1e995u;
    std::uint64_t hash = 0x9e3779b97f4a7c15u ^ (text.size() * kMultiplier);
    std::size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
        std::uint64_t word;
        std::memcpy(&word, text.data() + i, 8);
        word *= kMultiplier;
        word ^= word >> 47;
        hash = (hash ^ (word * kMultiplier)) * kMultiplier;
    }
    if (i < text.size()) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + i, text.size() - i);
        hash = (hash ^ word) * kMultiplier;
    }
    hash = (hash ^ (hash >> 47)) * kMultiplier;
    hash ^= hash >> 47;
    return static_cast<std::int64_t>(hash);
}

}  // namespace mmeval
