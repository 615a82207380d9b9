// The Python bindings of the JSON scanners. Buffers are not copied, and the GIL is released while they are read.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "buffer.h"
#include "json_scan.h"

namespace nb = nanobind;

namespace {

nb::list repeated_keys(nb::handle data, bool line_delimited) {
    Buffer buffer(data);
    std::vector<mmeval::RepeatedKey> keys;
    {
        nb::gil_scoped_release unlocked;
        keys = mmeval::repeated_keys(buffer.text(), line_delimited);
    }
    nb::list out;
    for (const auto& item : keys) {
        // Keys may contain invalid UTF-8. The decoder reports it, so this must not fail.
        nb::object key = nb::steal(PyUnicode_DecodeUTF8(item.key.data(), static_cast<Py_ssize_t>(item.key.size()),
                                                        "replace"));
        out.append(nb::make_tuple(item.offset, key));
    }
    return out;
}

std::size_t count_values(nb::handle data) {
    Buffer buffer(data);
    nb::gil_scoped_release unlocked;
    return mmeval::count_values(buffer.text());
}

nb::tuple array_elements(nb::handle data, std::size_t start, std::size_t limit) {
    Buffer buffer(data);
    mmeval::ElementBatch batch;
    {
        nb::gil_scoped_release unlocked;
        batch = mmeval::array_elements(buffer.text(), start, limit);
    }
    nb::list elements;
    for (const auto& element : batch.elements)
        elements.append(nb::make_tuple(element.begin, element.end, element.lines_before));
    return nb::make_tuple(elements, batch.next, batch.lines_passed, batch.closed, batch.broken);
}

}  // namespace

void bind_json(nb::module_& module) {
    module.def("repeated_keys", &repeated_keys, nb::arg("data"), nb::arg("line_delimited"),
               "(offset, key) of every repeated key in an object of the JSON text.");
    module.def("count_values", &count_values, nb::arg("data"), "About how many values the JSON text contains.");
    module.def("array_elements", &array_elements, nb::arg("data"), nb::arg("start"), nb::arg("limit"),
               "(elements, next, lines_passed, closed, broken): the positions of the next elements of a JSON array.");
}
