// Texts from Arrow arrays, through the Arrow C data interface: no Python string is made.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "captions.h"
#include "token_buffer.h"

// The two structs of the interface, as its specification lays them out.
struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

// Keeps an exported array alive while its buffers are read.
class ArrowColumn {
public:
    explicit ArrowColumn(nanobind::handle array)
        : pair_(nanobind::cast<nanobind::tuple>(array.attr("__arrow_c_array__")())),
          schema_(pointer<ArrowSchema>(0, "arrow_schema")),
          array_(pointer<ArrowArray>(1, "arrow_array")) {}

    const ArrowSchema& schema() const { return *schema_; }
    const ArrowArray& array() const { return *array_; }

private:
    template <typename T>
    const T* pointer(std::size_t index, const char* name) const {
        void* found = PyCapsule_GetPointer(nanobind::object(pair_[index]).ptr(), name);
        if (found == nullptr) throw nanobind::python_error();
        return static_cast<const T*>(found);
    }

    nanobind::tuple pair_;
    const ArrowSchema* schema_;
    const ArrowArray* array_;
};

inline void require_format(const ArrowSchema& schema, const char* format) {
    if (std::strcmp(schema.format, format) != 0) throw nanobind::type_error("the array must hold strings or lists of strings");
}

inline bool is_null(const ArrowArray& array, std::int64_t row) {
    const auto* bits = static_cast<const std::uint8_t*>(array.buffers[0]);
    const std::int64_t bit = array.offset + row;
    return bits != nullptr && array.null_count != 0 && (bits[bit >> 3] >> (bit & 7) & 1) == 0;
}

// Where the texts of a string array, or the items of a list array, begin and end.
inline const std::int32_t* offsets(const ArrowArray& array) {
    return static_cast<const std::int32_t*>(array.buffers[1]) + array.offset;
}

inline void append_arrow(mmeval::Texts& texts, const ArrowArray& strings, std::int64_t row) {
    const std::int32_t* ends = offsets(strings) + row;
    if (!is_null(strings, row)) {
        if (static_cast<std::size_t>(ends[1] - ends[0]) > mmeval::TokenBuffer::kLongest / 2)
            throw nanobind::value_error("a text of over 1 GB cannot be scored");
        texts.bytes.append(static_cast<const char*>(strings.buffers[2]) + ends[0], ends[1] - ends[0]);
    }
    texts.ends.push_back(texts.bytes.size());
}

// The bytes of consecutive texts.
inline std::size_t size_of(const ArrowArray& strings, std::int64_t begin, std::int64_t end) {
    if (begin == end) return 0;
    const std::int32_t* ends = offsets(strings);
    return static_cast<std::size_t>(ends[end] - ends[begin]);
}

// For each row the candidate, then its references; a null candidate is an empty text, and a null list has no texts.
inline mmeval::Texts texts_of_arrow(nanobind::handle candidates, nanobind::handle references) {
    const ArrowColumn first(candidates), second(references);
    require_format(first.schema(), "u");
    require_format(second.schema(), "+l");
    require_format(*second.schema().children[0], "u");
    const ArrowArray &texts = first.array(), &lists = second.array(), &items = *lists.children[0];
    if (texts.length != lists.length) throw nanobind::value_error("candidates and references differ in length");
    mmeval::Texts out;
    if (texts.length == 0) return out;
    const std::int32_t* list_ends = offsets(lists);
    out.ends.reserve(static_cast<std::size_t>(texts.length + list_ends[lists.length] - list_ends[0]));
    out.image_ends.reserve(static_cast<std::size_t>(texts.length));
    out.bytes.reserve(size_of(texts, 0, texts.length) + size_of(items, list_ends[0], list_ends[lists.length]));
    for (std::int64_t row = 0; row < texts.length; ++row) {
        append_arrow(out, texts, row);
        if (!is_null(lists, row))
            for (std::int32_t item = list_ends[row]; item < list_ends[row + 1]; ++item) append_arrow(out, items, item);
        out.image_ends.push_back(out.ends.size());
    }
    return out;
}
