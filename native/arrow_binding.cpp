// Python strings from Arrow arrays.
#include <nanobind/nanobind.h>

#include <string_view>

#include "arrow_texts.h"
#include "bindings.h"

namespace nb = nanobind;

namespace {

// The texts of a string array as Python objects; equal texts that follow each other are one object.
class Strings {
public:
    explicit Strings(const ArrowArray& array)
        : array_(array), ends_(offsets(array)), data_(static_cast<const char*>(array.buffers[2])) {}

    nb::object operator[](std::int64_t row) {
        if (is_null(array_, row)) return nb::none();
        const std::string_view text(data_ + ends_[row], static_cast<std::size_t>(ends_[row + 1] - ends_[row]));
        if (!last_.is_valid() || text != last_text_) {
            last_ = made(text);
            last_text_ = text;
        }
        return last_;
    }

private:
    static nb::object made(std::string_view text) {
        PyObject* string = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
        if (string == nullptr) throw nb::python_error();
        return nb::steal(string);
    }

    const ArrowArray& array_;
    const std::int32_t* ends_;
    const char* data_;
    std::string_view last_text_;
    nb::object last_;
};

// A list of `size` items; `item(i)` makes each of them.
template <typename Item>
nb::list list_of(std::int64_t size, Item item) {
    nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(size)));
    if (!list.is_valid()) throw nb::python_error();
    for (std::int64_t i = 0; i < size; ++i)
        PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), nb::object(item(i)).release().ptr());
    return nb::borrow<nb::list>(list);
}

nb::list python_strings(nb::handle array) {
    const ArrowColumn column(array);
    require_format(column.schema(), "u");
    if (column.array().length == 0) return nb::list();
    Strings strings(column.array());
    return list_of(column.array().length, [&](std::int64_t row) { return strings[row]; });
}

nb::list python_string_lists(nb::handle array) {
    const ArrowColumn column(array);
    require_format(column.schema(), "+l");
    require_format(*column.schema().children[0], "u");
    const ArrowArray& lists = column.array();
    if (lists.length == 0) return nb::list();
    const std::int32_t* ends = offsets(lists);
    if (ends[lists.length] == ends[0])  // the items may have no buffers
        return list_of(lists.length, [&](std::int64_t row) -> nb::object {
            if (is_null(lists, row)) return nb::none();
            return nb::list();
        });
    Strings strings(*lists.children[0]);
    return list_of(lists.length, [&](std::int64_t row) -> nb::object {
        if (is_null(lists, row)) return nb::none();
        return list_of(ends[row + 1] - ends[row], [&](std::int64_t item) { return strings[ends[row] + item]; });
    });
}

}  // namespace

void bind_arrow(nb::module_& module) {
    module.def("python_strings", &python_strings, nb::arg("array"), "The values of a string array.");
    module.def("python_string_lists", &python_string_lists, nb::arg("array"),
               "The values of an array of lists of strings.");
}
