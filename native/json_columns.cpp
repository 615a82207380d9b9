#include "json_columns.h"

#include <cstring>

#include "json_row.h"

namespace mmeval {
namespace {

class LineScanner : private JsonRowScanner {
public:
    explicit LineScanner(const Routes& routes) : JsonRowScanner(routes, false) {}

    ScannedBlock scan(std::string_view block) {
        const char *begin = block.data(), *const end = begin + block.size();
        for (std::int32_t line = 0; begin < end; ++line) {
            if (*begin == '\n') {  // blank
                ++begin;
                continue;
            }
            const auto* newline = static_cast<const char*>(std::memchr(begin, '\n', static_cast<std::size_t>(end - begin)));
            const char* const stop = newline == nullptr ? end : newline;
            read_from(begin, stop);
            start_row(static_cast<std::size_t>(stop - begin));
            const auto offset = static_cast<std::size_t>(begin - block.data());
            if (!at_end() && !(read_object(false) && at_end() && finish_row(line, offset)))
                out_.others.push_back({line, begin - block.data(), stop - block.data()});
            begin = stop + (newline != nullptr);
        }
        return finish();
    }
};

}  // namespace

ScannedBlock scan_json_lines(const Routes& routes, std::string_view block) { return LineScanner(routes).scan(block); }

}  // namespace mmeval
