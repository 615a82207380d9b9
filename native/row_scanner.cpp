#include "row_scanner.h"

#include <algorithm>
#include <cstring>

#include "json_text.h"
#include "text_hash.h"

namespace mmeval {
namespace {

constexpr std::size_t kLongestText = 1'000'000;  // as in field_checks.py
constexpr std::size_t kMostShapes = 2000;
constexpr std::size_t kMostBytes = std::size_t{1} << 28;  // of text; offsets of 32 bits stay large enough with all escapes

std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

constexpr std::uint64_t every(std::uint64_t byte) { return byte * 0x0101010101010101u; }

}  // namespace

TextFacts facts_of(std::string_view text) {
    std::uint64_t high = 0, zero = 0;
    const char *p = text.data(), *const end = p + text.size();
    for (; end - p >= 8; p += 8) {
        std::uint64_t word;
        std::memcpy(&word, p, 8);
        high |= word;
        zero |= (word - every(1)) & ~word;
    }
    for (; p < end; ++p) {
        const auto byte = static_cast<unsigned char>(*p);
        high |= byte;
        zero |= byte == 0 ? 0x80u : 0u;
    }
    return {(high & every(0x80)) == 0, (zero & every(0x80)) != 0};
}

void TextColumn::end_row(bool is_valid, std::int32_t end) {
    const std::size_t row = rows();
    if (row % 8 == 0) validity.push_back(0);
    if (is_valid) validity.back() |= static_cast<std::uint8_t>(1u << (row % 8));
    nulls += !is_valid;
    offsets.push_back(end);
}

void TextColumn::append(std::string_view text) {
    bytes.append(text);
    end_row(true, static_cast<std::int32_t>(bytes.size()));
}

void TextColumn::fill(std::size_t count) {
    while (rows() < count) end_row(false, offsets.back());
}

RowScanner::RowScanner(const Routes& routes) : routes_(routes) {
    out_.texts.resize(routes.fields);
    fields_seen_.resize(routes.fields);
}

void RowScanner::start_row(std::size_t scratch) {
    ++line_;
    cells_.clear();
    items_.clear();
    scratch_.clear();
    if (scratch_.capacity() < scratch) scratch_.reserve(scratch);  // so that no view of it is moved
}

void RowScanner::add_column(std::string_view name, bool is_inner) {
    Column column{name, routes_.metadata, Role::metadatum, is_inner};
    const auto routed = routes_.columns.find(std::string(name));
    if (!is_inner && routed != routes_.columns.end()) {
        column.field = routed->second.field;
        column.role = routed->second.role;
    }
    columns_.push_back(column);
}

void RowScanner::add_columns(const std::vector<std::string>& names) {
    for (const std::string& name : names) add_column(name, false);
}

bool RowScanner::accepts(Role role, std::string_view text, bool is_ascii) {
    if (text.size() > kLongestText) return false;
    if (!is_ascii && !(role == Role::media ? is_utf8(text) : is_surely_nfc(text))) return false;
    const bool is_blank_refused = role == Role::reference || role == Role::name || role == Role::references ||
                                  role == Role::reference_item;
    return !is_blank_refused || !is_blank(text);
}

bool RowScanner::take_text(Role role, std::string_view text, Cell& cell) {
    if (role == Role::other || role == Role::references || role == Role::choices || role == Role::metadata) return false;
    const TextFacts facts = facts_of(text);
    if (facts.has_nul || !accepts(role, text, facts.is_ascii)) return false;
    cell.text = text;
    cell.kind = role == Role::answer && is_blank(text) ? 'b' : 't';
    if (role == Role::reference_item) {
        cell.items_begin = items_.size();
        items_.push_back(text);
        cell.items_end = items_.size();
    }
    return true;
}

bool RowScanner::finish_row(std::int32_t line, std::size_t begin) {
    if (fields_seen_[routes_.id] != line_) return false;
    std::size_t size = bytes_;
    for (const Cell& cell : cells_) size += cell.text.size();
    for (const std::string_view item : items_) size += item.size();
    if (size > kMostBytes || !find_shape()) return false;
    bytes_ = size;
    store_row(line, begin);
    return true;
}

bool RowScanner::find_shape() {
    const auto is_this = [&](const Shape& shape) {
        if (shape.columns.size() != cells_.size()) return false;
        for (std::size_t i = 0; i < cells_.size(); ++i)
            if (shape.columns[i] != cells_[i].column || shape.kinds[i] != cells_[i].kind) return false;
        return true;
    };
    if (!out_.shapes.empty() && is_this(out_.shapes[shape_])) return true;
    std::string key;
    for (const Cell& cell : cells_) {
        key.append(reinterpret_cast<const char*>(&cell.column), sizeof cell.column);
        key += cell.kind;
    }
    const auto known = shape_numbers_.find(key);
    if (known != shape_numbers_.end()) {
        shape_ = known->second;
    } else {
        if (out_.shapes.size() == kMostShapes) return false;
        shape_ = out_.shapes.size();
        shape_numbers_.emplace(std::move(key), shape_);
        out_.shapes.push_back(new_shape());
    }
    last_columns_ = out_.shapes[shape_].columns;
    return true;
}

Shape RowScanner::new_shape() const {
    Shape shape{out_.lines.size(), {}, {}, {}};
    for (std::uint32_t place = 0; place < cells_.size(); ++place) {
        shape.columns.push_back(cells_[place].column);
        shape.kinds += cells_[place].kind;
        const char kind = cells_[place].kind;
        if (columns_[cells_[place].column].role == Role::metadatum && kind != 'n' && kind != 'N')
            shape.metadata.push_back(place);
    }
    std::sort(shape.metadata.begin(), shape.metadata.end(), [&](std::uint32_t a, std::uint32_t b) {
        return columns_[cells_[a].column].name < columns_[cells_[b].column].name;
    });
    return shape;
}

void RowScanner::store_row(std::int32_t line, std::size_t begin) {
    const std::size_t row = out_.lines.size();
    std::size_t media = 0;
    for (const Cell& cell : cells_) {
        const Column& column = columns_[cell.column];
        if (cell.kind == 'n' || cell.kind == '{' || column.role == Role::metadatum || cell.items_end != 0) continue;
        TextColumn& texts = out_.texts[column.field];
        texts.fill(row);
        texts.append(cell.text);
        if (column.role == Role::media) media += characters(cell.text);
        if (column.field == routes_.id) out_.id_hashes.push_back(text_hash(cell.text));
    }
    if (!items_.empty()) {
        for (const std::string_view item : items_) out_.list_items.append(item);
        out_.lists.fill(row);
        out_.lists.end_row(true, static_cast<std::int32_t>(out_.list_items.rows()));
    }
    store_metadata(row);
    if (media > 0) {
        out_.media.resize(row);
        out_.media.push_back(static_cast<std::int64_t>(media));
    }
    out_.lines.push_back(line);
    out_.begins.push_back(static_cast<std::int32_t>(begin));
    out_.shape_of.push_back(static_cast<std::int32_t>(shape_));
}

void RowScanner::store_metadata(std::size_t row) {
    const std::vector<std::uint32_t>& places = out_.shapes[shape_].metadata;
    if (places.empty()) return;
    TextColumn& metadata = out_.texts[routes_.metadata];
    metadata.fill(row);
    char separator = '{';
    for (const std::uint32_t place : places) {
        const Cell& cell = cells_[place];
        metadata.bytes += separator;
        separator = ',';
        append_json(columns_[cell.column].name, metadata.bytes);
        metadata.bytes += ':';
        if (cell.json.empty()) append_json(cell.text, metadata.bytes);
        else metadata.bytes += cell.json;
    }
    metadata.bytes += '}';
    metadata.end_row(true, static_cast<std::int32_t>(metadata.bytes.size()));
}

ScannedBlock RowScanner::finish() {
    const std::size_t rows = out_.lines.size();
    for (TextColumn& texts : out_.texts)
        if (texts.rows() > 0) texts.fill(rows);
    if (out_.lists.rows() > 0) out_.lists.fill(rows);
    if (!out_.media.empty()) out_.media.resize(rows);
    for (const Column& column : columns_) out_.columns.push_back(column.name);
    return std::move(out_);
}

}  // namespace mmeval
