// The Python binding of edit distances between answers and references.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "bindings.h"
#include "edit_distance.h"
#include "lint_bytes.h"
#include "lint_texts.h"
#include "python_texts.h"
#include "utf8.h"

namespace nb = nanobind;

namespace {

constexpr std::size_t kFigures = 5;

// ASCII text as Python's lower() makes it; with `collapses`, also its words with one space between them.
void fold(std::string_view text, bool collapses, std::string& out) {
    out.clear();
    bool has_gap = false;
    for (const char c : text) {
        if (collapses && mmeval::is_space(c)) {
            has_gap = !out.empty();
            continue;
        }
        if (has_gap) out += ' ';
        has_gap = false;
        out += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    }
}

std::vector<std::uint32_t> code_points(std::string_view text) {
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < text.size();) {
        const mmeval::CodePoint point = mmeval::decode(text, i);
        out.push_back(point.value);
        i += point.bytes;
    }
    return out;
}

std::string_view text_at(const mmeval::Texts& texts, std::size_t index) {
    const std::size_t begin = index == 0 ? 0 : texts.ends[index - 1];
    return {texts.bytes.data() + begin, texts.ends[index] - begin};
}

// Per pair of answer and reference: the distance after folding, the two folded and the two original lengths; and per
// row the number of its pairs, or -1 (with no pairs) if a text is not ASCII.
nb::tuple folded_edit_distances(nb::object answers, nb::object references, bool collapses) {
    const mmeval::Texts texts = texts_of(answers, references);
    const std::size_t rows = texts.image_ends.size();
    auto counts = std::make_unique<double[]>(rows);
    std::vector<double> figures;
    {
        nb::gil_scoped_release unlocked;
        figures.reserve(kFigures * (texts.ends.size() - rows));
        mmeval::EditDistance distance;
        std::string answer, reference;
        for (std::size_t row = 0, text = 0; row < rows; ++row) {
            const std::size_t first = text, end = texts.image_ends[row];
            const std::size_t begin = first == 0 ? 0 : texts.ends[first - 1];
            text = end;
            if (!mmeval::is_ascii({texts.bytes.data() + begin, texts.ends[end - 1] - begin})) {
                counts[row] = -1;
                continue;
            }
            counts[row] = static_cast<double>(end - first - 1);
            fold(text_at(texts, first), collapses, answer);
            for (std::size_t item = first + 1; item < end; ++item) {
                fold(text_at(texts, item), collapses, reference);
                for (const std::size_t figure : {distance.of_bytes(answer, reference), answer.size(), reference.size(),
                                                 text_at(texts, first).size(), text_at(texts, item).size()})
                    figures.push_back(static_cast<double>(figure));
            }
        }
    }
    auto table = std::make_unique<double[]>(figures.size());
    std::copy(figures.begin(), figures.end(), table.get());
    return nb::make_tuple(array_of(std::move(table), figures.size() / kFigures, kFigures),
                          array_of(std::move(counts), rows, 0));
}

std::size_t edit_distance(nb::str left, nb::str right) {
    const std::string_view a = view(left), b = view(right);
    mmeval::EditDistance distance;
    if (mmeval::is_ascii(a) && mmeval::is_ascii(b)) return distance.of_bytes(a, b);
    const std::vector<std::uint32_t> first = code_points(a), second = code_points(b);
    return distance.of_numbers({first.data(), first.size()}, {second.data(), second.size()});
}

}  // namespace

void bind_edit_distance(nb::module_& module) {
    module.def("edit_distance", &edit_distance, nb::arg("left"), nb::arg("right"),
               "The Levenshtein distance of two texts, in code points.");
    module.def("folded_edit_distances", &folded_edit_distances, nb::arg("answers"), nb::arg("references"),
               nb::arg("collapses"),
               "(pairs x 5: distance, folded lengths, original lengths; pairs per row, -1 for rows that are not ASCII)");
}
