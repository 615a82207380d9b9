// Lower case as in the reference program (Java's, with its rule for the final sigma).
#pragma once

#include <string>
#include <string_view>

namespace mmeval {

void append_lower(std::string_view token, std::string& out);

}  // namespace mmeval
