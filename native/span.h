// A view of contiguous numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mmeval {

struct Span {
    const std::uint32_t* data;
    std::size_t size;
    const std::uint32_t* begin() const { return data; }
    const std::uint32_t* end() const { return data + size; }
};

}  // namespace mmeval
