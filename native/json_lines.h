// The records of a JSONL text, counted without reading them: its lines that are not blank.
#pragma once

#include <cstddef>
#include <string_view>

namespace mmeval {

struct CountedLines {
    std::size_t records = 0;
    std::size_t offset = 0;  // the end of the text, or of the line of the last record that may be counted
    bool inside = false;     // the text ends in a line that is already counted
};

// `inside`: the text continues a line that is already counted.
CountedLines count_records(std::string_view text, std::size_t most, bool inside);

}  // namespace mmeval
