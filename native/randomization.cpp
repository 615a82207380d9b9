#include "randomization.h"

#include <algorithm>
#include <vector>

#include "parallel.h"

namespace mmeval {
namespace {

constexpr std::size_t kByte = 8, kWord = 64, kBytes = kWord / kByte, kPatterns = 256;

// SplitMix64 (Steele, Lea and Flood 2014): the number at a given position of its stream.
std::uint64_t random_word(std::uint64_t seed, std::uint64_t place) {
    std::uint64_t z = seed + (place + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// The sums of eight units for each of their 256 sign patterns. A set bit is a plus.
void fill_table(const double* values, std::size_t units, std::size_t columns, double* table) {
    std::fill_n(table, columns, 0.0);
    for (std::size_t unit = 0; unit < units; ++unit)
        for (std::size_t c = 0; c < columns; ++c) table[c] -= values[unit * columns + c];
    for (std::size_t pattern = 1; pattern < kPatterns; ++pattern) {
        std::size_t unit = 0;
        while ((pattern >> unit & 1) == 0) ++unit;
        const double* without = table + (pattern & (pattern - 1)) * columns;
        double* with = table + pattern * columns;
        for (std::size_t c = 0; c < columns; ++c)
            with[c] = without[c] + (unit < units ? 2 * values[unit * columns + c] : 0.0);
    }
}

}  // namespace

void flipped_sums(const double* values, std::size_t units, std::size_t columns, std::size_t rounds, std::uint64_t seed,
                  std::size_t threads, double* out) {
    const std::size_t words = (units + kWord - 1) / kWord;
    const std::uint64_t start = random_word(seed, 0);  // so that neighbouring seeds do not share their streams
    in_pieces(rounds, threads, [&](std::size_t, std::size_t begin, std::size_t end) {
        std::fill(out + begin * columns, out + end * columns, 0.0);
        std::vector<double> tables(kBytes * kPatterns * columns);
        for (std::size_t word = 0; word < words; ++word) {
            for (std::size_t byte = 0; byte < kBytes; ++byte) {
                const std::size_t first = std::min(units, word * kWord + byte * kByte);
                fill_table(values + first * columns, std::min(kByte, units - first), columns,
                           tables.data() + byte * kPatterns * columns);
            }
            if (columns == 1) {  // the same additions in the same order, with the sum in a register
                for (std::size_t round = begin; round < end; ++round) {
                    const std::uint64_t signs = random_word(start, round * words + word);
                    double sum = out[round];
                    for (std::size_t byte = 0; byte < kBytes; ++byte)
                        sum += tables[byte * kPatterns + (signs >> (kByte * byte) & (kPatterns - 1))];
                    out[round] = sum;
                }
                continue;
            }
            for (std::size_t round = begin; round < end; ++round) {
                const std::uint64_t signs = random_word(start, round * words + word);
                double* sums = out + round * columns;
                for (std::size_t byte = 0; byte < kBytes; ++byte) {
                    const std::size_t pattern = signs >> (kByte * byte) & (kPatterns - 1);
                    const double* row = tables.data() + (byte * kPatterns + pattern) * columns;
                    for (std::size_t c = 0; c < columns; ++c) sums[c] += row[c];
                }
            }
        }
    });
}

}  // namespace mmeval
