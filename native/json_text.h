// Strings and numbers of JSON text, accepted only if the Python readers certainly store them unchanged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mmeval {

// A string of JSON text: what is between its quotes.
struct JsonString {
    std::string_view raw;
    bool escaped = false;  // it has a backslash
    bool ascii = true;     // the raw bytes are ASCII
};

// Reads the string that opens at *at (a quote) and moves `at` behind it. False for control characters and open strings.
bool read_string(const char*& at, const char* end, JsonString& out);

// Reads an integer of at most 18 digits, or a decimal that is its own shortest form: msgspec writes it back with the
// same characters. False for anything else, such as -0, exponents and trailing zeros.
bool read_number(const char*& at, const char* end, std::string_view& out, bool& is_integer);

// Appends the text of a string with escapes. False for NUL, half of a surrogate pair and unknown escapes. `out` must
// have room for the raw bytes, so that earlier views of it stay valid.
bool unescape_json(std::string_view raw, std::string& out, bool& ascii);

// Appends text as a JSON string, as msgspec writes it.
void append_json(std::string_view text, std::string& out);

bool is_utf8(std::string_view text);

// Whether the text is valid UTF-8 and has only characters that never change or combine in NFC. Only common ones are
// known: false says nothing.
bool is_surely_nfc(std::string_view text);

// Whether the text, which passes `is_surely_nfc`, is empty or white space as Python's str.isspace sees it.
bool is_blank(std::string_view text);

}  // namespace mmeval
