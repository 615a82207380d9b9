// The lines of a JSONL block as Arrow columns. A line is accepted only if the Python readers certainly give the same
// values; all others are listed, and the Python readers check them.
#pragma once

#include <cstddef>
#include <cstdint>
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
    std::vector<std::string_view> columns;  // names, as views of the block
    std::vector<Shape> shapes;
    std::vector<TextColumn> texts;  // by field; without rows if no row has the field
    TextColumn lists;       // `offsets` count items
    TextColumn list_items;  // the references of all rows
};

class JsonColumns {
public:
    // `id` and `metadata` are the numbers of these fields.
    JsonColumns(std::unordered_map<std::string, RoutedColumn> route, std::uint32_t fields, std::uint32_t id,
                std::uint32_t metadata)
        : route_(std::move(route)), fields_(fields), id_(id), metadata_(metadata) {}

    ScannedBlock scan(std::string_view block) const;

private:
    friend class BlockScanner;
    std::unordered_map<std::string, RoutedColumn> route_;
    std::uint32_t fields_, id_, metadata_;
};

}  // namespace mmeval
