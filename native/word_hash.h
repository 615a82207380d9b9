// A hash of words, for open addressing.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace mmeval {

// Good enough for open addressing: multiply, then fold in the high bits.
inline std::uint64_t mix(std::uint64_t x) {
    x *= 0x9E3779B97F4A7C15ull;
    return x ^ (x >> 29);
}

// The first eight bytes; a shorter string is padded with zeros. Reads of shorter strings overlap instead of looping.
inline std::uint64_t head_of(std::string_view text) {
    const std::size_t size = text.size();
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
    };
    if (size >= 8) {
        std::uint64_t head;
        std::memcpy(&head, text.data(), 8);
        return head;
    }
    if (size >= 4) {
        std::uint32_t first, last;
        std::memcpy(&first, text.data(), 4);
        std::memcpy(&last, text.data() + size - 4, 4);
        return first | static_cast<std::uint64_t>(last) << (8 * (size - 4));
    }
    return size == 0 ? 0 : byte(0) | byte(size / 2) | byte(size - 1);
}

inline std::uint64_t hash_of(std::string_view text, std::uint64_t head) {
    std::uint64_t hash = mix(head + text.size());
    for (std::size_t i = 8; i < text.size(); i += 8) hash = mix(hash ^ head_of(text.substr(i)));
    return hash ^ (hash >> 32);
}

}  // namespace mmeval
