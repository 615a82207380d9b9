// The Python bindings of the statistics kernels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "assignment.h"
#include "bindings.h"
#include "distributions.h"
#include "python_texts.h"
#include "randomization.h"
#include "sparse_table.h"

namespace nb = nanobind;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Array flipped_sums(Matrix values, std::size_t rounds, std::uint64_t seed, std::size_t threads) {
    const std::size_t units = values.shape(0), columns = values.shape(1);
    auto out = std::make_unique<double[]>(rounds * columns);
    {
        nb::gil_scoped_release unlocked;
        mmeval::flipped_sums(values.data(), units, columns, rounds, seed, threads, out.get());
    }
    return array_of(std::move(out), rounds, columns);
}

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

mmeval::SparseTable table_of(const Indices& starts, const Indices& columns, const Numbers& values, std::size_t width) {
    const std::size_t entries = columns.shape(0);
    if (starts.shape(0) == 0 || values.shape(0) != entries) throw nb::value_error("not a sparse table");
    const std::int64_t* bounds = starts.data();
    const std::size_t rows = starts.shape(0) - 1;
    const std::int64_t* column = columns.data();
    const auto last = static_cast<std::int64_t>(width) - 1;
    std::int64_t signs = 0;  // negative if a row ends before it starts, or a column is below 0 or above the last one
    for (std::size_t row = 0; row < rows; ++row) signs |= bounds[row + 1] - bounds[row];
    for (std::size_t i = 0; i < entries; ++i) signs |= column[i] | (last - column[i]);
    if (signs < 0 || bounds[0] != 0 || bounds[rows] != static_cast<std::int64_t>(entries))
        throw nb::value_error("not a sparse table");
    return {bounds, column, values.data(), rows, width};
}

Array table_times(Indices starts, Indices columns, Numbers values, Matrix dense, bool transposed, std::size_t width) {
    const mmeval::SparseTable table = table_of(starts, columns, values, width);
    const std::size_t k = dense.shape(1), rows = transposed ? table.width : table.rows;
    if (dense.shape(0) != (transposed ? table.rows : table.width)) throw nb::value_error("the shapes do not fit");
    auto out = std::make_unique<double[]>(rows * k);  // zeros
    {
        nb::gil_scoped_release unlocked;
        (transposed ? mmeval::transposed_times : mmeval::table_times)(table, dense.data(), k, out.get());
    }
    return array_of(std::move(out), rows, k);
}

// A NumPy array that keeps the vector.
template <typename T>
nb::ndarray<nb::numpy, T> array_of_vector(std::vector<T> values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    nb::capsule owner(kept.get(), [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
    std::vector<T>* vector = kept.release();
    return nb::ndarray<nb::numpy, T>(vector->data(), {vector->size()}, owner);
}

nb::tuple summed_rows(Indices weight_starts, Indices weight_columns, Numbers weights, Indices starts, Indices columns,
                      Numbers values, std::size_t width) {
    const mmeval::SparseTable table = table_of(starts, columns, values, width);
    const mmeval::SparseTable weighted = table_of(weight_starts, weight_columns, weights, table.rows);
    mmeval::OwnedTable sums;
    {
        nb::gil_scoped_release unlocked;
        sums = mmeval::summed_rows(weighted, table);
    }
    return nb::make_tuple(array_of_vector(std::move(sums.starts)), array_of_vector(std::move(sums.columns)),
                          array_of_vector(std::move(sums.values)));
}

std::vector<std::pair<std::size_t, std::size_t>> best_assignment(const std::vector<std::vector<double>>& preferences) {
    const std::size_t columns = preferences.empty() ? 0 : preferences[0].size();
    std::vector<double> flat;
    for (const auto& row : preferences) {
        if (row.size() != columns) throw nb::value_error("the rows have different lengths");
        for (const double value : row)
            if (!std::isfinite(value)) throw nb::value_error("a preference must be a finite number");
        flat.insert(flat.end(), row.begin(), row.end());
    }
    return mmeval::best_assignment(flat, preferences.size(), columns);
}

Array expit_of_array(Numbers values) {
    auto out = std::make_unique<double[]>(values.shape(0));
    for (std::size_t i = 0; i < values.shape(0); ++i) out[i] = mmeval::expit(values.data()[i]);
    return array_of(std::move(out), values.shape(0), 0);
}

}  // namespace

void bind_stats(nb::module_& module) {
    module.def("flipped_sums", &flipped_sums, nb::arg("values"), nb::arg("rounds"), nb::arg("seed"), nb::arg("threads") = 1,
               "Column sums of units x columns with new random signs of the units in every round: rounds x columns.");
    module.def("table_times", &table_times, nb::arg("starts"), nb::arg("columns"), nb::arg("values"), nb::arg("dense"),
               nb::arg("transposed"), nb::arg("width"), "A sparse table, or its transpose, times a dense one.");
    module.def("summed_rows", &summed_rows, nb::arg("weight_starts"), nb::arg("weight_columns"), nb::arg("weights"),
               nb::arg("starts"), nb::arg("columns"), nb::arg("values"), nb::arg("width"),
               "Weighted sums of the rows of a sparse table, as a sparse table: starts, columns, values.");
    module.def("best_assignment", &best_assignment, nb::arg("preferences"),
               "The pairs of row and column with the largest sum of preferences.");
    module.def("ndtr", &mmeval::normal_cdf, nb::arg("x"), "P(Z <= x) of a normal variable.");
    module.def("ndtri", &mmeval::normal_quantile, nb::arg("p"), "The x with P(Z <= x) = p.");
    module.def("stdtr", &mmeval::t_cdf, nb::arg("freedom"), nb::arg("t"), "P(T <= t) of Student's t.");
    module.def("stdtrit", &mmeval::t_quantile, nb::arg("freedom"), nb::arg("p"), "The t with P(T <= t) = p.");
    module.def("logit", &mmeval::logit, nb::arg("p"), "log(p / (1 - p)).");
    module.def("expit", &expit_of_array, nb::arg("x"), "1 / (1 + exp(-x)).");
    module.def("expit", &mmeval::expit, nb::arg("x"));
}
