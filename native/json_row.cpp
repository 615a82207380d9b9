#include "json_row.h"

#include <cstring>

#include "json_text.h"

namespace mmeval {
namespace {

constexpr std::size_t kMostColumns = 4000;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

void JsonRowScanner::skip_spaces() {
    while (at_ < end_ && is_space(*at_)) ++at_;
}

bool JsonRowScanner::at_end() {
    skip_spaces();
    return at_ == end_;
}

bool JsonRowScanner::take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
}

bool JsonRowScanner::take_word(const char* word, std::size_t size) {
    if (static_cast<std::size_t>(end_ - at_) < size || std::memcmp(at_, word, size) != 0) return false;
    at_ += size;
    return true;
}

bool JsonRowScanner::read_object(bool is_inner) {
    if (!take('{')) return false;
    skip_spaces();
    if (take('}')) return true;
    do {
        if (!read_pair(is_inner)) return false;
    } while (take(','));
    return take('}');
}

// A key and its value, with the spaces around them.
bool JsonRowScanner::read_pair(bool is_inner) {
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
        if (!read_object(true)) return false;
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

// The number of the key's column. The same place of the last record is tried first.
bool JsonRowScanner::read_key(bool is_inner, std::uint32_t& number) {
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
    if (columns_.size() >= kMostColumns) return false;
    number = static_cast<std::uint32_t>(columns_.size());
    const std::string_view name = keeps_names_ ? out_.names.emplace_back(key.raw) : key.raw;
    add_column(name, is_inner);
    numbers.emplace(name, number);
    return true;
}

bool JsonRowScanner::read_value(Role role, Cell& cell) {
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

bool JsonRowScanner::read_text_value(Role role, Cell& cell) {
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
bool JsonRowScanner::read_text(Role role, std::string_view& text, bool& plain) {
    JsonString string;
    if (at_ == end_ || *at_ != '"' || !read_string(at_, end_, string)) return false;
    plain = !string.escaped;
    text = string.raw;
    if (string.escaped) {
        const std::size_t begin = scratch_.size();
        if (!unescape_json(string.raw, scratch_, string.ascii)) return false;
        text = std::string_view(scratch_).substr(begin);
    }
    return accepts(role, text, string.ascii);
}

bool JsonRowScanner::read_list(Cell& cell) {
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

bool JsonRowScanner::read_choices(Cell& cell) {
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

}  // namespace mmeval
