// Bit operations that C++17 lacks.
#pragma once

#include <cstdint>
#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace mmeval {

// The position of the lowest bit that is set; at least one must be.
inline int lowest_bit(std::uint64_t bits) {
#if defined(_MSC_VER)
    unsigned long position;
    _BitScanForward64(&position, bits);
    return static_cast<int>(position);
#else
    return __builtin_ctzll(bits);
#endif
}

// How many bits are set.
inline std::uint32_t count_of_bits(std::uint64_t bits) {
#if defined(_MSC_VER)  // not every machine that MSVC compiles for has an instruction for it
    bits -= bits >> 1 & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<std::uint32_t>(bits * 0x0101010101010101 >> 56);
#else
    return static_cast<std::uint32_t>(__builtin_popcountll(bits));
#endif
}

}  // namespace mmeval
