// The lines of a JSONL block as columns.
#pragma once

#include "row_scanner.h"

namespace mmeval {

ScannedBlock scan_json_lines(const Routes& routes, std::string_view block);

}  // namespace mmeval
