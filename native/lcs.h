#pragma once

#include <cstddef>

#include "span.h"

namespace mmeval {

// The length of the longest common subsequence of two token sequences.
std::size_t longest_common_subsequence(Span left, Span right);

}  // namespace mmeval
