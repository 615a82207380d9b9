// Lower case as the reference program writes it (Java's, with its rule for the final sigma).
#pragma once

#include <string>
#include <string_view>

namespace mmeval {

void append_lower(std::string_view token, std::string& out);

}  // namespace mmeval
