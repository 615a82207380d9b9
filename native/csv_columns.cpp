#include "csv_columns.h"

#include <cstring>

#include "json_row.h"

namespace mmeval {
namespace {

constexpr std::uint64_t every(std::uint64_t byte) { return byte * 0x0101010101010101u; }

// A high bit in each byte of `word` that equals the byte of `pattern`, or follows such a byte.
constexpr std::uint64_t equal_bytes(std::uint64_t word, std::uint64_t pattern) {
    const std::uint64_t difference = word ^ pattern;
    return (difference - every(1)) & ~difference & every(0x80);
}

struct CsvCell {
    const char *begin, *end;
    bool has_quotes;  // pairs of quotes, each of which is one character
};

enum class Record : std::uint8_t { complete, open, invalid };

class RecordReader {
public:
    RecordReader(std::string_view block, char delimiter, bool is_last)
        : at_(block.data()), end_(at_ + block.size()), delimiter_(delimiter), is_last_(is_last) {}

    const char* at() const { return at_; }
    bool at_end() const { return at_ == end_; }

    // Reads the cells of one record and moves behind it; a blank line has none. `lines` is the number of its lines.
    Record next(std::vector<CsvCell>& cells, std::size_t& lines) {
        cells.clear();
        lines = 0;
        const char* p = at_;
        if (is_newline(*p)) return end_record(p, lines);
        for (;;) {
            CsvCell cell{p, p, false};
            if (p < end_ && *p == '"') {
                p = quoted(cell, lines);
                if (p == nullptr) return is_last_ ? Record::invalid : Record::open;
            } else {
                p = cell.end = cell_end(p);
            }
            cells.push_back(cell);
            if (p == end_ || is_newline(*p)) return end_record(p, lines);
            if (*p != delimiter_) return Record::invalid;
            ++p;
        }
    }

private:
    static bool is_newline(char c) { return c == '\n' || c == '\r'; }

    // The next delimiter or newline.
    const char* cell_end(const char* p) const {
        const std::uint64_t delimiters = every(static_cast<unsigned char>(delimiter_));
        std::uint64_t word;
        while (end_ - p >= 8) {
            std::memcpy(&word, p, 8);
            if ((equal_bytes(word, delimiters) | equal_bytes(word, every('\n')) | equal_bytes(word, every('\r'))) != 0) break;
            p += 8;
        }
        while (p < end_ && *p != delimiter_ && !is_newline(*p)) ++p;
        return p;
    }

    // Reads a cell in quotes and returns the place behind it; null if it does not end.
    const char* quoted(CsvCell& cell, std::size_t& lines) const {
        const char* p = ++cell.begin;
        for (;;) {
            const auto* quote = static_cast<const char*>(std::memchr(p, '"', static_cast<std::size_t>(end_ - p)));
            if (quote == nullptr) return nullptr;
            lines += newlines(p, quote);
            cell.end = quote;
            p = quote + 1;
            if (p == end_ || *p != '"') return p;
            cell.has_quotes = true;
            ++p;
        }
    }

    static std::size_t newlines(const char* begin, const char* end) {
        const auto size = static_cast<std::size_t>(end - begin);
        if (std::memchr(begin, '\n', size) == nullptr && std::memchr(begin, '\r', size) == nullptr) return 0;
        std::size_t count = 0;
        for (const char* p = begin; p < end; ++p) count += *p == '\r' || (*p == '\n' && (p == begin || p[-1] != '\r'));
        return count;
    }

    Record end_record(const char* p, std::size_t& lines) {
        if (p == end_) {
            if (!is_last_) return Record::open;
        } else if (*p == '\r') {
            if (p + 1 == end_ && !is_last_) return Record::open;  // \n may follow
            p += p + 1 < end_ && p[1] == '\n' ? 2 : 1;
        } else {
            ++p;
        }
        ++lines;
        at_ = p;
        return Record::complete;
    }

    const char *at_, *end_;
    char delimiter_;
    bool is_last_;
};

class CsvScanner : private JsonRowScanner {
public:
    CsvScanner(const Routes& routes, const std::vector<std::string>& header) : JsonRowScanner(routes, true) {
        add_columns(header);
        width_ = header.size();
    }

    ScannedBlock scan(std::string_view block, char delimiter) {
        RecordReader reader(block, delimiter, true);
        for (std::size_t line = 0, lines = 0; !reader.at_end(); line += lines) {
            const auto begin = static_cast<std::size_t>(reader.at() - block.data());
            if (reader.next(raw_, lines) != Record::complete) break;
            if (raw_.empty()) continue;
            const auto end = static_cast<std::size_t>(reader.at() - block.data());
            start_row(2 * (end - begin));  // cells without their quotes, and JSON without escapes
            if (!(read_cells() && finish_row(static_cast<std::int32_t>(line), begin)))
                out_.others.push_back({static_cast<std::int64_t>(line), static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)});
        }
        return finish();
    }

private:
    bool read_cells() {
        if (raw_.size() != width_) return false;
        for (std::uint32_t number = 0; number < width_; ++number) {
            const Role role = columns_[number].role;
            const std::uint32_t field = columns_[number].field;
            const std::string_view text = content(raw_[number]);
            const std::size_t place = cells_.size();
            cells_.push_back({number, 'n', {}, {}, 0, 0});
            if (role == Role::metadatum) {
                if (!text.empty() && !take_text(role, text, cells_[place])) return false;
                continue;
            }
            std::size_t& seen = fields_seen_[field];
            if (seen == line_ && role != Role::reference_item) return false;  // even if the cell is empty
            if (text.empty() && role != Role::answer) continue;
            if (!read_cell(role, text, place)) return false;
            seen = line_;
        }
        return true;
    }

    std::string_view content(const CsvCell& cell) {
        const std::string_view raw(cell.begin, static_cast<std::size_t>(cell.end - cell.begin));
        if (!cell.has_quotes) return raw;
        const std::size_t begin = scratch_.size();
        for (std::size_t at = 0; at < raw.size();) {
            const std::size_t quote = raw.find('"', at);
            if (quote == std::string_view::npos) {
                scratch_.append(raw, at);
                break;
            }
            scratch_.append(raw, at, quote + 1 - at);
            at = quote + 2;
        }
        return std::string_view(scratch_).substr(begin);
    }

    // The value of a field that is not empty. It is stored in the cell at `place`; an object adds further cells.
    bool read_cell(Role role, std::string_view text, std::size_t place) {
        const bool is_json = role == Role::references || role == Role::choices || role == Role::metadata;
        if (!is_json) return take_text(role, text, cells_[place]);
        read_from(text.data(), text.data() + text.size());
        if (role == Role::metadata) {
            cells_[place].kind = '{';
            return read_object(true) && at_end();
        }
        Cell& cell = cells_[place];
        if (text.front() == '[') return (role == Role::choices ? read_choices(cell) : read_list(cell)) && at_end();
        // White space before a bracket is left out; a text without brackets is the only reference.
        return role == Role::references && text.find('[') == std::string_view::npos &&
               take_text(Role::reference_item, text, cell);
    }

    std::size_t width_;
    std::vector<CsvCell> raw_;
};

}  // namespace

CsvCut cut_csv(std::string_view block, char delimiter, bool is_last, std::size_t most) {
    RecordReader reader(block, delimiter, is_last);
    std::vector<CsvCell> cells;
    CsvCut cut{0, 0, 0, true};
    while (!reader.at_end() && cut.records < most) {
        std::size_t lines;
        const Record record = reader.next(cells, lines);
        if (record == Record::invalid) cut.is_valid = false;
        if (record != Record::complete) break;
        cut.lines += lines;
        cut.records += !cells.empty();
    }
    cut.end = static_cast<std::size_t>(reader.at() - block.data());
    return cut;
}

ScannedBlock scan_csv(const Routes& routes, const std::vector<std::string>& header, std::string_view block, char delimiter) {
    return CsvScanner(routes, header).scan(block, delimiter);
}

}  // namespace mmeval
