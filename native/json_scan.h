// Structure of JSON text that a decoder does not report: repeated keys, and positions of array elements.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mmeval {

struct RepeatedKey {
    std::size_t offset;  // of the second occurrence
    std::string key;     // unescaped
};

struct Element {
    std::size_t begin, end;    // byte range of the value
    std::size_t lines_before;  // newlines between the scan's start and `begin`
};

struct ElementBatch {
    std::vector<Element> elements;
    std::size_t next = 0;         // where to continue
    std::size_t lines_passed = 0; // newlines between the scan's start and `next`
    bool closed = false;          // the array's ']' was reached
    bool broken = false;          // the text ended before that, or is not an array
};

// Keys that occur twice in one object, at any depth. With `line_delimited`, a newline always ends the record, so that
// a broken record cannot hide later ones.
std::vector<RepeatedKey> repeated_keys(std::string_view text, bool line_delimited);

// About how many values the text contains, for an estimate of the memory that it takes once it is decoded.
std::size_t count_values(std::string_view text);

// Up to `limit` elements of a JSON array, scanning from `start`, which is after '[' or an element.
ElementBatch array_elements(std::string_view text, std::size_t start, std::size_t limit);

}  // namespace mmeval
