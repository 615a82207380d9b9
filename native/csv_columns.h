// The records of CSV text as columns, as Python's csv module reads them in its strict mode.
#pragma once

#include "row_scanner.h"

namespace mmeval {

// A part of CSV text that ends with a record.
struct CsvCut {
    std::size_t end;      // of the last complete record
    std::size_t lines;    // up to there; \n, \r and \r\n end a line
    std::size_t records;  // without blank lines
    bool is_valid;        // false if the csv module refuses the record that starts at `end`
};

// At most `most` records. `is_last`: nothing follows the block, so its last record is complete.
CsvCut cut_csv(std::string_view block, char delimiter, bool is_last, std::size_t most);

// A block of complete records without the header, which names the columns.
ScannedBlock scan_csv(const Routes& routes, const std::vector<std::string>& header, std::string_view block, char delimiter);

}  // namespace mmeval
