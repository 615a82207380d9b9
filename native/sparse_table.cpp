#include "sparse_table.h"

namespace mmeval {
namespace {

void add(double weight, const double* from, std::size_t k, double* to) {
    for (std::size_t i = 0; i < k; ++i) to[i] += weight * from[i];
}

}  // namespace

void table_times(const SparseTable& table, const double* dense, std::size_t k, double* out) {
    for (std::size_t row = 0; row < table.rows; ++row)
        for (std::int64_t entry = table.starts[row]; entry < table.starts[row + 1]; ++entry)
            add(table.values[entry], dense + static_cast<std::size_t>(table.columns[entry]) * k, k, out + row * k);
}

void transposed_times(const SparseTable& table, const double* dense, std::size_t k, double* out) {
    for (std::size_t row = 0; row < table.rows; ++row)
        for (std::int64_t entry = table.starts[row]; entry < table.starts[row + 1]; ++entry)
            add(table.values[entry], dense + row * k, k, out + static_cast<std::size_t>(table.columns[entry]) * k);
}

OwnedTable summed_rows(const SparseTable& weights, const SparseTable& table) {
    OwnedTable sums;
    sums.starts.reserve(weights.rows + 1);
    sums.starts.push_back(0);
    std::vector<double> row_sums(table.width, 0.0);
    std::vector<std::int64_t> touched_in(table.width, -1);
    for (std::size_t row = 0; row < weights.rows; ++row) {
        const std::size_t first = sums.columns.size();
        for (std::int64_t w = weights.starts[row]; w < weights.starts[row + 1]; ++w) {
            const std::int64_t source = weights.columns[w];
            for (std::int64_t entry = table.starts[source]; entry < table.starts[source + 1]; ++entry) {
                const std::int64_t column = table.columns[entry];
                if (touched_in[column] != static_cast<std::int64_t>(row)) {
                    touched_in[column] = static_cast<std::int64_t>(row);
                    row_sums[column] = 0;
                    sums.columns.push_back(column);
                }
                row_sums[column] += weights.values[w] * table.values[entry];
            }
        }
        for (std::size_t i = first; i < sums.columns.size(); ++i) sums.values.push_back(row_sums[sums.columns[i]]);
        sums.starts.push_back(static_cast<std::int64_t>(sums.columns.size()));
    }
    return sums;
}

}  // namespace mmeval
