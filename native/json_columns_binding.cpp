// The Python binding of the JSONL scanner.
#include "json_columns.h"

#include <nanobind/stl/string_view.h>

#include <stdexcept>

#include "bindings.h"
#include "buffer.h"
#include "json_lines.h"
#include "scanned_block.h"
#include "text_hash.h"

namespace nb = nanobind;

namespace {

class JsonColumns {
public:
    JsonColumns(const RouteList& route, std::uint32_t fields, std::uint32_t id, std::uint32_t metadata)
        : routes_(routes_of(route, fields, id, metadata)) {}

    nb::tuple scan(nb::handle data) const {
        Buffer buffer(data);
        if (buffer.text().size() > kLargestBlock) throw std::invalid_argument("a block is too large");
        mmeval::ScannedBlock block;
        {
            nb::gil_scoped_release unlocked;
            block = mmeval::scan_json_lines(routes_, buffer.text());
        }
        return python_block(block);
    }

private:
    mmeval::Routes routes_;
};

nb::tuple count_records(nb::handle data, std::size_t most, bool inside) {
    Buffer buffer(data);
    mmeval::CountedLines counted;
    {
        nb::gil_scoped_release unlocked;
        counted = mmeval::count_records(buffer.text(), most, inside);
    }
    return nb::make_tuple(counted.records, counted.offset, counted.inside);
}

}  // namespace

void bind_json_columns(nb::module_& module) {
    nb::class_<JsonColumns>(module, "JsonColumns", "Reads blocks of JSONL into columns.")
        .def(nb::init<const RouteList&, std::uint32_t, std::uint32_t, std::uint32_t>(), nb::arg("route"), nb::arg("fields"),
             nb::arg("id"), nb::arg("metadata"))
        .def("scan", &JsonColumns::scan, nb::arg("block"),
             "(lines, begins, shape_of, id_hashes, media, others, shapes, texts, lists): the accepted rows, and the other lines.");
    module.def("text_hash", &mmeval::text_hash, nb::arg("text"), "The hash of a text, as in `id_hashes`.");
    module.def("count_records", &count_records, nb::arg("block"), nb::arg("most"), nb::arg("inside") = false,
               "(records, offset, inside): the lines that are not blank, at most `most`; the offset after them.");
}
