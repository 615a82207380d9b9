// The rows of an Arrow record batch as columns.
#pragma once

#include "row_scanner.h"

namespace mmeval {

// A view of an Arrow array. Its type decides which of the pointers are set.
struct ArrowValues {
    enum class Type : std::uint8_t {
        nulls,
        text,        // `offsets` of 32 or 64 bits, `data`
        list,        // `offsets`, and texts as `items`
        dictionary,  // integers of `width` bytes in `data`, and texts as `items`
        integer,     // `width` bytes, signed or not
        number,      // floating point of `width` bytes
        boolean,     // bits
        other,       // a type that is not read here; only nulls are known
    };

    Type type = Type::other;
    std::size_t offset = 0, length = 0;
    const std::uint8_t* validity = nullptr;
    const void* offsets = nullptr;
    bool has_wide_offsets = false;
    const char* data = nullptr;
    std::size_t width = 0;
    bool is_signed = true;
    std::vector<ArrowValues> items;  // one or none

    bool is_null(std::size_t row) const;
    std::size_t offset_at(std::size_t row) const;  // of row `row`, from 0 to `length`
    std::string_view text(std::size_t row) const;
    std::int64_t integer(std::size_t row) const;
    bool has_item(std::size_t row) const;  // whether the dictionary has the number of this row
};

// All columns have the same length. The numbers of lines are row numbers.
ScannedBlock scan_arrow(const Routes& routes, const std::vector<std::string>& names, const std::vector<ArrowValues>& columns);

}  // namespace mmeval
