// Shared by the bindings: texts from Python, arrays to Python. Strings are copied while the GIL is held. The work after
// that runs without it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string_view>

#include "arrow_texts.h"
#include "captions.h"
#include "token_buffer.h"
#include "tokenizers.h"

using Array = nanobind::ndarray<nanobind::numpy, double>;

inline mmeval::Tokenizer tokenizer_named(std::string_view name) {
    const mmeval::Tokenizer tokenizer = mmeval::find_tokenizer(name);
    if (tokenizer == nullptr) throw nanobind::value_error("no tokenizer has that name");
    return tokenizer;
}

inline std::string_view view(nanobind::handle text) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes == nullptr) throw nanobind::python_error();
    return {bytes, static_cast<std::size_t>(size)};
}

// Appends a text to a batch.
inline void append(mmeval::Texts& texts, nanobind::handle text) {
    const std::string_view bytes = view(text);
    if (bytes.size() > mmeval::TokenBuffer::kLongest / 2)
        throw nanobind::value_error("a text of over 1 GB cannot be scored");
    texts.bytes.append(bytes);
    texts.ends.push_back(texts.bytes.size());
}

inline mmeval::Texts texts_of_lists(nanobind::list candidates, nanobind::list references) {
    if (candidates.size() != references.size())
        throw nanobind::value_error("candidates and references differ in length");
    constexpr std::size_t kFirst = 64;  // samples after which the size of the rest is estimated
    mmeval::Texts texts;
    texts.image_ends.reserve(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (i == kFirst) texts.bytes.reserve(texts.bytes.size() / kFirst * candidates.size() / 8 * 9);
        append(texts, candidates[i]);
        for (nanobind::handle reference : nanobind::cast<nanobind::list>(references[i])) append(texts, reference);
        texts.image_ends.push_back(texts.ends.size());
    }
    return texts;
}

// The texts of two lists (of strings, of lists of strings), or of two Arrow arrays with the same content.
inline mmeval::Texts texts_of(nanobind::object candidates, nanobind::object references) {
    if (nanobind::hasattr(candidates, "__arrow_c_array__")) return texts_of_arrow(candidates, references);
    if (!nanobind::isinstance<nanobind::list>(candidates) || !nanobind::isinstance<nanobind::list>(references))
        throw nanobind::type_error("candidates and references must be lists or Arrow arrays");
    return texts_of_lists(nanobind::cast<nanobind::list>(candidates), nanobind::cast<nanobind::list>(references));
}

inline nanobind::str string_of(std::string_view bytes) {
    return nanobind::steal<nanobind::str>(
        PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

// A NumPy array that owns its data. With 0 columns, it has one dimension.
inline Array array_of(std::unique_ptr<double[]> data, std::size_t rows, std::size_t columns) {
    double* values = data.release();
    nanobind::capsule owner(values, [](void* pointer) noexcept { delete[] static_cast<double*>(pointer); });
    if (columns == 0) return Array(values, {rows}, owner);
    return Array(values, {rows, columns}, owner);
}
