#include "blake2b.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace mmeval {
namespace {

constexpr std::size_t kBlock = 128;
constexpr std::uint64_t kInitial[8] = {0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu,
                                       0xa54ff53a5f1d36f1u, 0x510e527fade682d1u, 0x9b05688c2b3e6c1fu,
                                       0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u};
constexpr std::uint64_t kParameters = 0x01010008;  // one tree of depth one, no key, 8 bytes of digest

inline std::uint64_t load(const unsigned char* bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

inline std::uint64_t rotated(std::uint64_t value, int bits) { return value >> bits | value << (64 - bits); }

inline void mix(std::uint64_t& a, std::uint64_t& b, std::uint64_t& c, std::uint64_t& d, std::uint64_t x,
                std::uint64_t y) {
    a += b + x;
    d = rotated(d ^ a, 32);
    c += d;
    b = rotated(b ^ c, 24);
    a += b + y;
    d = rotated(d ^ a, 16);
    c += d;
    b = rotated(b ^ c, 63);
}

// One round, with its row of the message schedule as template arguments so that the compiler knows every index.
template <int s0, int s1, int s2, int s3, int s4, int s5, int s6, int s7, int s8, int s9, int s10, int s11, int s12,
          int s13, int s14, int s15>
inline void round(std::uint64_t* v, const std::uint64_t* m) {
    mix(v[0], v[4], v[8], v[12], m[s0], m[s1]);
    mix(v[1], v[5], v[9], v[13], m[s2], m[s3]);
    mix(v[2], v[6], v[10], v[14], m[s4], m[s5]);
    mix(v[3], v[7], v[11], v[15], m[s6], m[s7]);
    mix(v[0], v[5], v[10], v[15], m[s8], m[s9]);
    mix(v[1], v[6], v[11], v[12], m[s10], m[s11]);
    mix(v[2], v[7], v[8], v[13], m[s12], m[s13]);
    mix(v[3], v[4], v[9], v[14], m[s14], m[s15]);
}

// `end` is the number of bytes up to the end of this block.
void compress(std::uint64_t* h, const unsigned char* block, std::uint64_t end, bool is_last) {
    std::uint64_t m[16], v[16];
    for (int i = 0; i < 16; ++i) m[i] = load(block + 8 * i);
    for (int i = 0; i < 8; ++i) v[i] = h[i], v[i + 8] = kInitial[i];
    v[12] ^= end;
    if (is_last) v[14] = ~v[14];
    round<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(v, m);
    round<14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3>(v, m);
    round<11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4>(v, m);
    round<7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8>(v, m);
    round<9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13>(v, m);
    round<2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9>(v, m);
    round<12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11>(v, m);
    round<13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10>(v, m);
    round<6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5>(v, m);
    round<10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0>(v, m);
    round<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(v, m);
    round<14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3>(v, m);
    for (int i = 0; i < 8; ++i) h[i] ^= v[i] ^ v[i + 8];
}

}  // namespace

std::uint64_t blake2b_64(std::string_view data) {
    std::uint64_t h[8];
    std::copy(kInitial, kInitial + 8, h);
    h[0] ^= kParameters;
    const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
    std::size_t start = 0;
    for (; data.size() - start > kBlock; start += kBlock) compress(h, bytes + start, start + kBlock, false);
    unsigned char last[kBlock] = {};
    if (start < data.size()) std::memcpy(last, bytes + start, data.size() - start);
    compress(h, last, data.size(), true);
    return h[0];
}

}  // namespace mmeval
