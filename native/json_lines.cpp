#include "json_lines.h"

#include <cstring>

namespace mmeval {
namespace {

// As bytes.isspace in Python, by which the readers skip blank lines.
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

CountedLines count_records(std::string_view text, std::size_t most, bool inside) {
    const char *at = text.data(), *const end = at + text.size();
    CountedLines counted;
    while (at < end) {
        if (inside) {
            const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
            if (newline == nullptr) {
                counted.inside = true;
                at = end;
                break;
            }
            at = newline + 1;
            inside = false;
        }
        if (counted.records == most) break;
        while (at < end && is_blank(*at)) ++at;
        if (at < end) {
            ++counted.records;
            inside = true;
        }
    }
    counted.offset = static_cast<std::size_t>(at - text.data());
    return counted;
}

}  // namespace mmeval
