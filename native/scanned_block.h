// Conversions between Python and the scanners. The columns of a block become NumPy arrays without a copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "row_scanner.h"

using RouteList = std::vector<std::tuple<std::string, std::uint32_t, std::string>>;  // column, field, role

mmeval::Routes routes_of(const RouteList& route, std::uint32_t fields, std::uint32_t id, std::uint32_t metadata);

constexpr std::size_t kLargestBlock = std::size_t{1} << 28;  // so that offsets fit into 32 bits

// (lines, begins, shape_of, id_hashes, media, others, shapes, texts, lists)
nanobind::tuple python_block(mmeval::ScannedBlock& block);
