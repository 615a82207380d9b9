// Approximate randomization: sums of values with random signs, in many rounds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mmeval {

// values: units x columns, by rows. out: rounds x columns, the sum of each column with a new random sign for every
// unit, the same for all its columns. The signs depend only on the seed, the round and the unit, not on the threads.
void flipped_sums(const double* values, std::size_t units, std::size_t columns, std::size_t rounds, std::uint64_t seed,
                  std::size_t threads, double* out);

}  // namespace mmeval
