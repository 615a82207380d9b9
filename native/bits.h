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

}  // namespace mmeval
