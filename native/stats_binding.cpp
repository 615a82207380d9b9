// The Python bindings of the statistics kernels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings.h"
#include "python_texts.h"
#include "randomization.h"

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

}  // namespace

void bind_stats(nb::module_& module) {
    module.def("flipped_sums", &flipped_sums, nb::arg("values"), nb::arg("rounds"), nb::arg("seed"), nb::arg("threads") = 1,
               "Column sums of units x columns with new random signs of the units in every round: rounds x columns.");
}
