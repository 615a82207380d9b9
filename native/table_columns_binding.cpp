// The Python bindings of the scanners of CSV and Arrow.
#include <stdexcept>
#include <string_view>

#include "arrow_columns.h"
#include "arrow_texts.h"
#include "bindings.h"
#include "buffer.h"
#include "csv_columns.h"
#include "scanned_block.h"

namespace nb = nanobind;
using mmeval::ArrowValues;
using Type = ArrowValues::Type;

namespace {

std::string_view checked_block(const Buffer& buffer) {
    if (buffer.text().size() > kLargestBlock) throw std::invalid_argument("a block is too large");
    return buffer.text();
}

class CsvColumns {
public:
    CsvColumns(const RouteList& route, std::uint32_t fields, std::uint32_t id, std::uint32_t metadata)
        : routes_(routes_of(route, fields, id, metadata)) {}

    nb::tuple scan(const std::vector<std::string>& header, nb::handle data, char delimiter) const {
        Buffer buffer(data);
        const std::string_view text = checked_block(buffer);
        mmeval::ScannedBlock block;
        {
            nb::gil_scoped_release unlocked;
            block = mmeval::scan_csv(routes_, header, text, delimiter);
        }
        return python_block(block);
    }

private:
    mmeval::Routes routes_;
};

nb::tuple cut(nb::handle data, char delimiter, bool is_last, std::size_t most) {
    Buffer buffer(data);
    const std::string_view text = checked_block(buffer);
    mmeval::CsvCut cut;
    {
        nb::gil_scoped_release unlocked;
        cut = mmeval::cut_csv(text, delimiter, is_last, most);
    }
    return nb::make_tuple(cut.end, cut.lines, cut.records, cut.is_valid);
}

// Sets `width` and `is_signed`; false for types that are not integers.
bool read_integer_type(std::string_view format, ArrowValues& values) {
    constexpr std::string_view kSigned = "csil", kUnsigned = "CSIL";  // of 1, 2, 4 and 8 bytes
    if (format.size() != 1) return false;
    const std::size_t place = kSigned.find(format), other = kUnsigned.find(format);
    values.is_signed = place != std::string_view::npos;
    if (!values.is_signed && other == std::string_view::npos) return false;
    values.width = std::size_t{1} << (values.is_signed ? place : other);
    return true;
}

// An extension type may convert its values in a way of its own.
bool is_extension(const ArrowSchema& schema) {
    if (schema.metadata == nullptr) return false;
    const char* at = schema.metadata;
    const auto number = [&] {
        std::int32_t value;
        std::memcpy(&value, at, sizeof value);
        at += sizeof value;
        return value;
    };
    for (std::int32_t pairs = number(); pairs > 0; --pairs) {
        const std::int32_t key = number();
        if (std::string_view(at, static_cast<std::size_t>(key)) == "ARROW:extension:name") return true;
        at += key;
        const std::int32_t value = number();
        at += value;
    }
    return false;
}

ArrowValues values_of(const ArrowSchema& schema, const ArrowArray& array) {
    ArrowValues values;
    const std::string_view format = schema.format;
    values.offset = static_cast<std::size_t>(array.offset);
    values.length = static_cast<std::size_t>(array.length);
    if (array.null_count != 0 && array.n_buffers > 0) values.validity = static_cast<const std::uint8_t*>(array.buffers[0]);
    if (is_extension(schema)) return values;
    if (schema.dictionary != nullptr) {
        values.items.push_back(values_of(*schema.dictionary, *array.dictionary));
        values.data = static_cast<const char*>(array.buffers[1]);
        const bool is_read = read_integer_type(format, values) && values.items[0].type == Type::text;
        values.type = is_read ? Type::dictionary : Type::other;
    } else if (format == "u" || format == "U") {
        values.type = Type::text;
        values.offsets = array.buffers[1];
        values.has_wide_offsets = format == "U";
        values.data = static_cast<const char*>(array.buffers[2]);
    } else if (format == "+l" || format == "+L") {
        values.items.push_back(values_of(*schema.children[0], *array.children[0]));
        values.offsets = array.buffers[1];
        values.has_wide_offsets = format == "+L";
        values.type = values.items[0].type == Type::text ? Type::list : Type::other;
    } else if (read_integer_type(format, values)) {
        values.type = Type::integer;
        values.data = static_cast<const char*>(array.buffers[1]);
    } else if (format == "f" || format == "g") {
        values.type = Type::number;
        values.width = format == "f" ? 4 : 8;
        values.data = static_cast<const char*>(array.buffers[1]);
    } else if (format == "b") {
        values.type = Type::boolean;
        values.data = static_cast<const char*>(array.buffers[1]);
    } else if (format == "n") {
        values.type = Type::nulls;
    }
    return values;
}

class ArrowColumns {
public:
    ArrowColumns(const RouteList& route, std::uint32_t fields, std::uint32_t id, std::uint32_t metadata)
        : routes_(routes_of(route, fields, id, metadata)) {}

    nb::tuple scan(const std::vector<std::string>& names, nb::list arrays) const {
        std::vector<ArrowColumn> kept;
        std::vector<ArrowValues> columns;
        kept.reserve(nb::len(arrays));
        for (const nb::handle array : arrays) {
            const ArrowColumn& column = kept.emplace_back(array);
            columns.push_back(values_of(column.schema(), column.array()));
            if (columns.back().length != columns.front().length) throw std::invalid_argument("columns differ in length");
        }
        if (names.size() != columns.size()) throw std::invalid_argument("each column needs a name");
        mmeval::ScannedBlock block;
        {
            nb::gil_scoped_release unlocked;
            block = mmeval::scan_arrow(routes_, names, columns);
        }
        return python_block(block);
    }

private:
    mmeval::Routes routes_;
};

}  // namespace

void bind_table_columns(nb::module_& module) {
    using Init = nb::init<const RouteList&, std::uint32_t, std::uint32_t, std::uint32_t>;
    nb::class_<CsvColumns>(module, "CsvColumns", "Reads records of CSV text into columns.")
        .def(Init(), nb::arg("route"), nb::arg("fields"), nb::arg("id"), nb::arg("metadata"))
        .def("scan", &CsvColumns::scan, nb::arg("header"), nb::arg("block"), nb::arg("delimiter"),
             "The accepted rows of a block of complete records, and the other records.");
    module.def("cut_csv", &cut, nb::arg("block"), nb::arg("delimiter"), nb::arg("is_last"), nb::arg("most"),
               "(end, lines, records, is_valid): the end of the last complete record, and whether the next one may be valid.");
    nb::class_<ArrowColumns>(module, "ArrowColumns", "Reads rows of Arrow arrays into columns.")
        .def(Init(), nb::arg("route"), nb::arg("fields"), nb::arg("id"), nb::arg("metadata"))
        .def("scan", &ArrowColumns::scan, nb::arg("names"), nb::arg("arrays"),
             "The accepted rows of arrays of equal length, and the numbers of the other rows.");
}
