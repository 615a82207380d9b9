// Rows of any format as Arrow columns. A row is accepted only if the Python readers certainly give the same values; all
// others are listed, and the Python readers check them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mmeval {

// What a column may contain.
enum class Role : std::uint8_t {
    text,            // any text
    answer,          // any text; blank text is marked in the shape
    reference,       // text that is not blank
    name,            // text that is not blank, or an integer
    media,           // text that is not normalized
    references,      // a list of texts that are not blank
    reference_item,  // one of several columns with one reference each
    choices,         // a list of texts, stored as JSON
    metadata,        // an object of metadata
    metadatum,       // a column that is not a field, or a key of `metadata`: text, a number or a boolean
    other,           // a field that is not read here
};

struct RoutedColumn {
    std::uint32_t field;
    Role role;
};

// Which column is which field. `id` and `metadata` are the numbers of these fields.
struct Routes {
    std::unordered_map<std::string, RoutedColumn> columns;
    std::uint32_t fields, id, metadata;
};

// Strings of consecutive rows: Arrow's offsets, bytes and validity bits.
struct TextColumn {
    std::vector<std::int32_t> offsets{0};
    std::string bytes;
    std::vector<std::uint8_t> validity;
    std::size_t nulls = 0;

    std::size_t rows() const { return offsets.size() - 1; }
    void end_row(bool is_valid, std::int32_t end);
    void append(std::string_view text);  // one row
    void fill(std::size_t rows);         // null rows up to this number
};

// The columns of a record in their order, each with the kind of its value: null 'n', text 't', a blank answer 'b',
// a number 'i', a boolean 'o', a list 'l', an object '{'. The keys of an object follow it, with capital letters.
struct Shape {
    std::size_t first_row;  // the first accepted row that has it
    std::vector<std::uint32_t> columns;
    std::string kinds;
    std::vector<std::uint32_t> metadata;  // places of the metadata, sorted by key
};

struct OtherLine {
    std::int64_t line, begin, end;  // the number in the block, from 0, and the byte range
};

struct ScannedBlock {
    // one item per accepted row
    std::vector<std::int32_t> lines;   // numbers from 0
    std::vector<std::int32_t> begins;  // offsets in the block
    std::vector<std::int32_t> shape_of;
    std::vector<std::int64_t> id_hashes;
    std::vector<std::int64_t> media;  // characters of all media; empty if there are none

    std::vector<OtherLine> others;
    std::vector<std::string_view> columns;  // names, as views of the block, of the header or of `names`
    std::deque<std::string> names;
    std::vector<Shape> shapes;
    std::vector<TextColumn> texts;  // by field; without rows if no row has the field
    TextColumn lists;       // `offsets` count items
    TextColumn list_items;  // the references of all rows
};

// Collects the cells of a row, and adds the row to a block.
class RowScanner {
protected:
    struct Cell {
        std::uint32_t column;
        char kind;
        std::string_view text;                // of the value
        std::string_view json;                // the value as it is written in JSON; empty if it must be escaped again
        std::size_t items_begin, items_end;  // of a list
    };

    struct Column {
        std::string_view name;
        std::uint32_t field;
        Role role;
        bool is_inner;        // a key of `metadata`
        std::size_t row = 0;  // the last line that has it, from 1
    };

    explicit RowScanner(const Routes& routes);

    void start_row(std::size_t scratch);  // `scratch`: the size of all text that may be appended to `scratch_`
    void add_column(std::string_view name, bool is_inner);
    void add_columns(const std::vector<std::string>& names);
    // Whether a text is accepted in this role: not too long, in NFC, not blank. The caller has refused NUL.
    static bool accepts(Role role, std::string_view text, bool is_ascii);
    // Takes over a text that may contain anything, for all roles of a single text.
    bool take_text(Role role, std::string_view text, Cell& cell);
    bool finish_row(std::int32_t line, std::size_t begin);  // false if the row is not accepted
    ScannedBlock finish();

    const Routes& routes_;
    ScannedBlock out_;
    std::vector<Column> columns_;
    std::size_t line_ = 0;
    std::vector<std::size_t> fields_seen_;  // the last line with a value of each field
    std::vector<std::uint32_t> last_columns_;
    std::vector<Cell> cells_;
    std::vector<std::string_view> items_;
    std::string scratch_;
    std::string choices_;  // as JSON

private:
    bool find_shape();
    Shape new_shape() const;
    void store_row(std::int32_t line, std::size_t begin);
    void store_metadata(std::size_t row);

    std::unordered_map<std::string, std::size_t> shape_numbers_;
    std::size_t shape_ = 0;
    std::size_t bytes_ = 0;  // of the text of all accepted rows
};

// What the bytes of a text contain.
struct TextFacts {
    bool is_ascii, has_nul;
};
TextFacts facts_of(std::string_view text);

}  // namespace mmeval
