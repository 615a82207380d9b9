// Products of a sparse table of numbers. Sums are in the order of the rows, then of the entries in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mmeval {

// The entries of row r are those from starts[r] to starts[r + 1]: each has a column and a value.
struct SparseTable {
    const std::int64_t* starts;
    const std::int64_t* columns;
    const double* values;
    std::size_t rows, width;
};

// table x dense is added to out: dense is width x k, out is rows x k.
void table_times(const SparseTable& table, const double* dense, std::size_t k, double* out);

// transposed table x dense is added to out: dense is rows x k, out is width x k.
void transposed_times(const SparseTable& table, const double* dense, std::size_t k, double* out);

struct OwnedTable {
    std::vector<std::int64_t> starts, columns;
    std::vector<double> values;
};

// The weighted sums of rows: row r of the result is the sum of weight x table row over the entries of row r of
// `weights`, whose columns are the rows of the table.
OwnedTable summed_rows(const SparseTable& weights, const SparseTable& table);

}  // namespace mmeval
