// The assignment of rows to columns with the largest sum.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mmeval {

// `preferences`: rows x columns finite numbers, by rows. Returns min(rows, columns) pairs, by row; no row and no column
// is in two of them. Of several best assignments, the one that SciPy's linear_sum_assignment returns.
std::vector<std::pair<std::size_t, std::size_t>> best_assignment(const std::vector<double>& preferences,
                                                                 std::size_t rows, std::size_t columns);

}  // namespace mmeval
