#include "json_columns.h"

#include <algorithm>
#include <cstring>

#include "json_text.h"
#include "text_hash.h"

namespace mmeval {
namespace {

constexpr std::size_t kLongestText = 1'000'000;  // as in field_checks.py
constexpr std::size_t kMostShapes = 2000, kMostColumns = 4000;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

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

using Numbers = std::unordered_map<std::string_view, std::uint32_t>;

}  // namespace

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

class BlockScanner {
public:
    BlockScanner(const JsonColumns& plan, std::string_view block) : plan_(plan), block_(block) {
        out_.texts.resize(plan.fields_);
        fields_seen_.resize(plan.fields_);
    }

    ScannedBlock scan() {
        const char *begin = block_.data(), *const end = begin + block_.size();
        for (std::int32_t line = 0; begin < end; ++line) {
            const auto* newline = static_cast<const char*>(std::memchr(begin, '\n', static_cast<std::size_t>(end - begin)));
            const char* const stop = newline == nullptr ? end : newline;
            ++line_;
            at_ = begin;
            end_ = stop;
            skip_spaces();
            if (at_ < stop) {
                if (read_record()) store_record(line, begin);
                else out_.others.push_back({line, begin - block_.data(), stop - block_.data()});
            }
            begin = stop + (newline != nullptr);
        }
        finish();
        return std::move(out_);
    }

private:
    void skip_spaces() {
        while (at_ < end_ && is_space(*at_)) ++at_;
    }
    bool take(char c) {
        if (at_ == end_ || *at_ != c) return false;
        ++at_;
        return true;
    }
    bool take_word(const char* word, std::size_t size) {
        if (static_cast<std::size_t>(end_ - at_) < size || std::memcmp(at_, word, size) != 0) return false;
        at_ += size;
        return true;
    }

    bool read_record() {
        cells_.clear();
        items_.clear();
        scratch_.clear();
        const auto size = static_cast<std::size_t>(end_ - at_);
        if (scratch_.capacity() < size) scratch_.reserve(size);  // so that no view of it is moved
        if (!take('{')) return false;
        do {
            if (!read_pair(false)) return false;
        } while (take(','));
        if (!take('}')) return false;
        skip_spaces();
        return at_ == end_ && fields_seen_[plan_.id_] == line_ && find_shape();
    }

    // A key and its value, with the spaces around them.
    bool read_pair(bool is_inner) {
        skip_spaces();
        std::uint32_t number;
        if (!read_key(is_inner, number)) return false;
        Column& column = columns_[number];
        if (column.row == line_) return false;  // a repeated key
        column.row = line_;
        const Role role = column.role;
        const std::uint32_t field = column.field;
        skip_spaces();
        if (!take(':')) return false;
        skip_spaces();
        if (at_ == end_) return false;
        const std::size_t place = cells_.size();
        cells_.push_back({number, 'n', {}, {}, 0, 0});
        if (role == Role::metadata && *at_ == '{') {
            cells_[place].kind = '{';
            if (!read_object()) return false;
        } else if (!read_value(role, cells_[place])) {
            return false;
        }
        char& kind = cells_[place].kind;
        if (kind != 'n' && role != Role::metadatum) {
            std::size_t& seen = fields_seen_[field];
            if (seen == line_ && role != Role::reference_item) return false;
            seen = line_;
        }
        if (is_inner) kind = static_cast<char>(kind - 'a' + 'A');
        skip_spaces();
        return true;
    }

    bool read_object() {
        ++at_;
        skip_spaces();
        if (take('}')) return true;
        do {
            if (!read_pair(true)) return false;
        } while (take(','));
        return take('}');
    }

    // The number of the key's column. The same place of the last record is tried first.
    bool read_key(bool is_inner, std::uint32_t& number) {
        if (at_ == end_ || *at_ != '"') return false;
        if (cells_.size() < last_columns_.size()) {
            number = last_columns_[cells_.size()];
            const std::string_view name = columns_[number].name;
            if (columns_[number].is_inner == is_inner && static_cast<std::size_t>(end_ - at_) >= name.size() + 2 && at_[name.size() + 1] == '"' &&
                std::memcmp(at_ + 1, name.data(), name.size()) == 0) {
                at_ += name.size() + 2;
                return true;
            }
        }
        JsonString key;
        if (!read_string(at_, end_, key) || key.escaped || !(key.ascii || is_utf8(key.raw))) return false;
        Numbers& numbers = is_inner ? inner_numbers_ : numbers_;
        const auto known = numbers.find(key.raw);
        if (known != numbers.end()) {
            number = known->second;
            return true;
        }
        if (columns_.size() == kMostColumns) return false;
        number = static_cast<std::uint32_t>(columns_.size());
        Column column{key.raw, plan_.metadata_, Role::metadatum, is_inner};
        const auto routed = plan_.route_.find(std::string(key.raw));
        if (!is_inner && routed != plan_.route_.end()) {
            column.field = routed->second.field;
            column.role = routed->second.role;
        }
        columns_.push_back(column);
        numbers.emplace(key.raw, number);
        return true;
    }

    bool read_value(Role role, Cell& cell) {
        switch (*at_) {
            case 'n': return take_word("null", 4);
            case '"': return read_text_value(role, cell);
            case '[': return (role == Role::references && read_list(cell)) || (role == Role::choices && read_choices(cell));
            case 't':
            case 'f': {
                const char* const begin = at_;
                if (role != Role::metadatum || !(take_word("true", 4) || take_word("false", 5))) return false;
                cell.kind = 'o';
                cell.json = {begin, static_cast<std::size_t>(at_ - begin)};
                return true;
            }
            default: {
                bool is_integer;
                if ((role != Role::metadatum && role != Role::name) || !read_number(at_, end_, cell.json, is_integer))
                    return false;
                cell.kind = 'i';
                cell.text = cell.json;
                return is_integer || role == Role::metadatum;
            }
        }
    }

    bool read_text_value(Role role, Cell& cell) {
        if (role == Role::other || role == Role::references || role == Role::choices || role == Role::metadata) return false;
        const char* const begin = at_;
        bool plain;
        if (!read_text(role, cell.text, plain)) return false;
        cell.kind = role == Role::answer && is_blank(cell.text) ? 'b' : 't';
        if (plain) cell.json = {begin, static_cast<std::size_t>(at_ - begin)};
        if (role == Role::reference_item) {
            cell.items_begin = items_.size();
            items_.push_back(cell.text);
            cell.items_end = items_.size();
        }
        return true;
    }

    // `plain`: without escapes.
    bool read_text(Role role, std::string_view& text, bool& plain) {
        JsonString string;
        if (at_ == end_ || *at_ != '"' || !read_string(at_, end_, string)) return false;
        plain = !string.escaped;
        text = string.raw;
        if (string.escaped) {
            const std::size_t begin = scratch_.size();
            if (!unescape_json(string.raw, scratch_, string.ascii)) return false;
            text = std::string_view(scratch_).substr(begin);
        }
        if (text.size() > kLongestText) return false;
        if (!string.ascii && !(role == Role::media ? is_utf8(text) : is_surely_nfc(text))) return false;
        const bool is_blank_refused = role == Role::reference || role == Role::name || role == Role::references ||
                                      role == Role::reference_item;
        return !is_blank_refused || !is_blank(text);
    }

    bool read_list(Cell& cell) {
        cell.kind = 'l';
        cell.items_begin = items_.size();
        ++at_;
        do {
            skip_spaces();
            std::string_view text;
            bool plain;
            if (!read_text(Role::references, text, plain)) return false;
            items_.push_back(text);
            skip_spaces();
        } while (take(','));
        cell.items_end = items_.size();
        return take(']');
    }

    bool read_choices(Cell& cell) {
        cell.kind = 'l';
        choices_.assign(1, '[');
        ++at_;
        do {
            skip_spaces();
            std::string_view text;
            bool plain;
            if (!read_text(Role::choices, text, plain)) return false;
            if (choices_.size() > 1) choices_ += ',';
            append_json(text, choices_);
            skip_spaces();
        } while (take(','));
        choices_ += ']';
        cell.text = choices_;
        return take(']');
    }

    bool find_shape() {
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

    Shape new_shape() const {
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

    void store_record(std::int32_t line, const char* begin) {
        const std::size_t row = out_.lines.size();
        std::size_t media = 0;
        for (const Cell& cell : cells_) {
            const Column& column = columns_[cell.column];
            if (cell.kind == 'n' || cell.kind == '{' || column.role == Role::metadatum || cell.items_end != 0) continue;
            TextColumn& texts = out_.texts[column.field];
            texts.fill(row);
            texts.append(cell.text);
            if (column.role == Role::media) media += characters(cell.text);
            if (column.field == plan_.id_) out_.id_hashes.push_back(text_hash(cell.text));
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
        out_.begins.push_back(static_cast<std::int32_t>(begin - block_.data()));
        out_.shape_of.push_back(static_cast<std::int32_t>(shape_));
    }

    void store_metadata(std::size_t row) {
        const std::vector<std::uint32_t>& places = out_.shapes[shape_].metadata;
        if (places.empty()) return;
        TextColumn& metadata = out_.texts[plan_.metadata_];
        metadata.fill(row);
        char separator = '{';
        for (const std::uint32_t place : places) {
            const Cell& cell = cells_[place];
            metadata.bytes += separator;
            separator = ',';
            metadata.bytes += '"';
            metadata.bytes += columns_[cell.column].name;  // without escapes, so this is its JSON form
            metadata.bytes += "\":";
            if (cell.json.empty()) append_json(cell.text, metadata.bytes);
            else metadata.bytes += cell.json;
        }
        metadata.bytes += '}';
        metadata.end_row(true, static_cast<std::int32_t>(metadata.bytes.size()));
    }

    void finish() {
        const std::size_t rows = out_.lines.size();
        for (TextColumn& texts : out_.texts)
            if (texts.rows() > 0) texts.fill(rows);
        if (out_.lists.rows() > 0) out_.lists.fill(rows);
        if (!out_.media.empty()) out_.media.resize(rows);
        for (const Column& column : columns_) out_.columns.push_back(column.name);
    }

    const JsonColumns& plan_;
    std::string_view block_;
    const char *at_ = nullptr, *end_ = nullptr;
    std::size_t line_ = 0;
    ScannedBlock out_;
    std::vector<Column> columns_;
    Numbers numbers_, inner_numbers_;
    std::unordered_map<std::string, std::size_t> shape_numbers_;
    std::vector<std::uint32_t> last_columns_;
    std::size_t shape_ = 0;
    std::vector<std::size_t> fields_seen_;  // the last line with a value of each field
    std::vector<Cell> cells_;
    std::vector<std::string_view> items_;
    std::string scratch_;
    std::string choices_;  // as JSON
};

ScannedBlock JsonColumns::scan(std::string_view block) const { return BlockScanner(*this, block).scan(); }

}  // namespace mmeval
