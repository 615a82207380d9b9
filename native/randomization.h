// Approximate randomization: sums of values whose signs are flipped at random, very many times.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mmeval {

// values: units x columns, by rows. out: rounds x columns, the sum of each column with every unit's sign drawn anew,
// the same sign for all columns of a unit. The signs depend on the seed, the round and the unit alone, so that threads
// change nothing.
void flipped_sums(const double* values, std::size_t units, std::size_t columns, std::size_t rounds, std::uint64_t seed,
                  std::size_t threads, double* out);

}  // namespace mmeval
