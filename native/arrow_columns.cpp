#include "arrow_columns.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "json_text.h"

namespace mmeval {
namespace {

constexpr std::size_t kLongestNumber = 32;

template <typename T>
T value_at(const char* data, std::size_t index) {
    T value;
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return value;
}

bool bit_at(const void* bits, std::size_t index) {
    return (static_cast<const std::uint8_t*>(bits)[index >> 3] >> (index & 7) & 1) != 0;
}

// Writes a number as msgspec does. False if the form has an exponent, or the number is not finite.
bool write_number(double value, char* out, std::size_t& size) {
#ifdef __cpp_lib_to_chars
    const double magnitude = std::fabs(value);
    if (!(magnitude == 0 || (magnitude >= 1e-5 && magnitude < 1e15))) return false;
    char* end = std::to_chars(out, out + kLongestNumber - 2, value, std::chars_format::fixed).ptr;
    if (std::memchr(out, '.', static_cast<std::size_t>(end - out)) == nullptr) {
        *end++ = '.';
        *end++ = '0';
    }
    size = static_cast<std::size_t>(end - out);
    return true;
#else
    (void)value, (void)out, (void)size;
    return false;
#endif
}

class ArrowScanner : private RowScanner {
public:
    ArrowScanner(const Routes& routes, const std::vector<std::string>& names, const std::vector<ArrowValues>& arrays)
        : RowScanner(routes), arrays_(arrays) {
        add_columns(names);
    }

    ScannedBlock scan() {
        const std::size_t rows = arrays_.empty() ? 0 : arrays_.front().length;
        for (std::size_t row = 0; row < rows; ++row) {
            start_row(kLongestNumber * arrays_.size());
            const auto line = static_cast<std::int32_t>(row);
            if (!(read_row(row) && finish_row(line, 0))) out_.others.push_back({line, 0, 0});
        }
        return finish();
    }

private:
    bool read_row(std::size_t row) {
        for (std::uint32_t number = 0; number < arrays_.size(); ++number) {
            cells_.push_back({number, 'n', {}, {}, 0, 0});
            if (arrays_[number].is_null(row)) continue;
            const Role role = columns_[number].role;
            if (!read_value(arrays_[number], row, role, cells_.back())) return false;
            if (role == Role::metadatum) continue;
            std::size_t& seen = fields_seen_[columns_[number].field];
            if (seen == line_ && role != Role::reference_item) return false;
            seen = line_;
        }
        return true;
    }

    bool read_value(const ArrowValues& values, std::size_t row, Role role, Cell& cell) {
        const bool is_metadatum = role == Role::metadatum;
        switch (values.type) {
            case ArrowValues::Type::text: return take_text(role, values.text(row), cell);
            case ArrowValues::Type::dictionary:
                return values.has_item(row) && take_text(role, values.items[0].text(static_cast<std::size_t>(values.integer(row))), cell);
            case ArrowValues::Type::list:
                return (role == Role::references && read_list(values, row, cell)) || (role == Role::choices && read_choices(values, row, cell));
            case ArrowValues::Type::integer: return (is_metadatum || role == Role::name) && read_integer(values, row, cell);
            case ArrowValues::Type::number: return is_metadatum && read_number(values, row, cell);
            case ArrowValues::Type::boolean:
                cell.kind = 'o';
                cell.json = bit_at(values.data, values.offset + row) ? "true" : "false";
                return is_metadatum;
            default: return false;
        }
    }

    bool read_list(const ArrowValues& lists, std::size_t row, Cell& cell) {
        const ArrowValues& texts = lists.items[0];
        cell.kind = 'l';
        cell.items_begin = items_.size();
        for (std::size_t i = lists.offset_at(row), end = lists.offset_at(row + 1); i < end; ++i) {
            if (texts.is_null(i)) return false;
            const std::string_view text = texts.text(i);
            const TextFacts facts = facts_of(text);
            if (facts.has_nul || !accepts(Role::references, text, facts.is_ascii)) return false;
            items_.push_back(text);
        }
        cell.items_end = items_.size();
        return cell.items_end > cell.items_begin;
    }

    bool read_choices(const ArrowValues& lists, std::size_t row, Cell& cell) {
        const ArrowValues& texts = lists.items[0];
        cell.kind = 'l';
        choices_.clear();
        for (std::size_t i = lists.offset_at(row), end = lists.offset_at(row + 1); i < end; ++i) {
            if (texts.is_null(i)) return false;
            const std::string_view text = texts.text(i);
            const TextFacts facts = facts_of(text);
            if (facts.has_nul || !accepts(Role::choices, text, facts.is_ascii)) return false;
            choices_ += choices_.empty() ? '[' : ',';
            append_json(text, choices_);
        }
        if (choices_.empty()) return false;
        choices_ += ']';
        cell.text = choices_;
        return true;
    }

    bool read_integer(const ArrowValues& values, std::size_t row, Cell& cell) {
        char written[kLongestNumber];
        const std::int64_t value = values.integer(row);
        const auto end = values.is_signed ? std::to_chars(written, written + kLongestNumber, value)
                                          : std::to_chars(written, written + kLongestNumber, static_cast<std::uint64_t>(value));
        take_number({written, static_cast<std::size_t>(end.ptr - written)}, cell);
        return true;
    }

    bool read_number(const ArrowValues& values, std::size_t row, Cell& cell) {
        char written[kLongestNumber];
        std::size_t size = 0;
        const std::size_t index = values.offset + row;
        const double value = values.width == 4 ? static_cast<double>(value_at<float>(values.data, index)) : value_at<double>(values.data, index);
        if (!write_number(value, written, size)) return false;
        take_number({written, size}, cell);
        return true;
    }

    void take_number(std::string_view written, Cell& cell) {
        const std::size_t begin = scratch_.size();
        scratch_.append(written);
        cell.kind = 'i';
        cell.text = cell.json = std::string_view(scratch_).substr(begin);
    }

    const std::vector<ArrowValues>& arrays_;
};

}  // namespace

bool ArrowValues::is_null(std::size_t row) const {
    if (type == Type::nulls || (validity != nullptr && !bit_at(validity, offset + row))) return true;
    return type == Type::dictionary && has_item(row) && items[0].is_null(static_cast<std::size_t>(integer(row)));
}

bool ArrowValues::has_item(std::size_t row) const { return static_cast<std::uint64_t>(integer(row)) < items[0].length; }

std::size_t ArrowValues::offset_at(std::size_t row) const {
    const auto* const begin = static_cast<const char*>(offsets);
    return has_wide_offsets ? static_cast<std::size_t>(value_at<std::int64_t>(begin, offset + row))
                            : static_cast<std::size_t>(value_at<std::int32_t>(begin, offset + row));
}

std::string_view ArrowValues::text(std::size_t row) const {
    const std::size_t begin = offset_at(row), end = offset_at(row + 1);
    return begin == end ? std::string_view() : std::string_view(data + begin, end - begin);
}

std::int64_t ArrowValues::integer(std::size_t row) const {
    const std::size_t index = offset + row;
    switch (width) {
        case 1: return is_signed ? value_at<std::int8_t>(data, index) : value_at<std::uint8_t>(data, index);
        case 2: return is_signed ? value_at<std::int16_t>(data, index) : value_at<std::uint16_t>(data, index);
        case 4: return is_signed ? value_at<std::int32_t>(data, index) : value_at<std::uint32_t>(data, index);
        default: return value_at<std::int64_t>(data, index);
    }
}

ScannedBlock scan_arrow(const Routes& routes, const std::vector<std::string>& names, const std::vector<ArrowValues>& columns) {
    return ArrowScanner(routes, names, columns).scan();
}

}  // namespace mmeval
