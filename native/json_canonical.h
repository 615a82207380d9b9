// JSON that stays the same when it is decoded and encoded again with sorted keys.
#pragma once

#include <string>
#include <string_view>

namespace mmeval {

// Whether `msgspec.json.Encoder(order="deterministic")` certainly writes the decoded text in the same bytes. The text
// must be valid UTF-8. False for texts with escapes, for numbers of more than 18 digits or with an exponent.
bool is_canonical_json(std::string_view text);

// Appends a string in quotation marks, with the escapes of msgspec.
void append_json(std::string& out, std::string_view text);

}  // namespace mmeval
