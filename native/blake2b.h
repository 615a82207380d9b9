// BLAKE2b (RFC 7693) without a key, with a digest of 8 bytes: `hashlib.blake2b(data, digest_size=8)`.
#pragma once

#include <cstdint>
#include <string_view>

namespace mmeval {

// The digest as a little-endian integer.
std::uint64_t blake2b_64(std::string_view data);

}  // namespace mmeval
