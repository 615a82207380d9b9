// The Python binding of the facts for lint.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>

#include <deque>
#include <memory>
#include <string>

#include "arrow_texts.h"
#include "bindings.h"
#include "blake2b.h"
#include "lint_facts.h"
#include "python_texts.h"

namespace nb = nanobind;
using mmeval::LintColumn;
using mmeval::LintColumns;
using mmeval::LintLexicon;

namespace {

using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<nb::numpy, std::int64_t>;

LintColumn column_of(const ArrowArray& array) {
    LintColumn column;
    if (array.length == 0) return column;
    column.ends = static_cast<const std::int32_t*>(array.buffers[1]) + array.offset;
    if (array.n_buffers > 2) column.data = static_cast<const char*>(array.buffers[2]);
    if (array.null_count != 0) column.valid = static_cast<const std::uint8_t*>(array.buffers[0]);
    column.first = array.offset;
    return column;
}

// The columns of a batch by name; keeps their arrays alive.
class Columns {
public:
    Columns(nb::dict arrays, std::int64_t rows) : arrays_(arrays), rows_(rows) {}

    LintColumn texts(const char* name) { return read(name, "u"); }
    LintColumn bytes(const char* name) { return read(name, "z"); }

    LintColumn lists(const char* name, LintColumn* items) {
        const LintColumn column = read(name, "+l");
        if (items != nullptr && column.ends != nullptr) {
            require_format(*kept_.back().schema().children[0], "u");
            *items = column_of(*kept_.back().array().children[0]);
        }
        return column;
    }

    LintColumn integers(const char* name, const std::int64_t** values) {
        LintColumn column = read(name, "l");
        if (column.ends == nullptr) return column;
        const ArrowArray& array = kept_.back().array();
        *values = static_cast<const std::int64_t*>(array.buffers[1]) + array.offset;
        return column;  // only `has` may be used
    }

private:
    LintColumn read(const char* name, const char* format) {
        if (!arrays_.contains(name)) return {};
        kept_.emplace_back(nb::object(arrays_[name]));
        require_format(kept_.back().schema(), format);
        if (kept_.back().array().length != rows_) throw nb::value_error("the columns differ in length");
        return column_of(kept_.back().array());
    }

    nb::dict arrays_;
    std::int64_t rows_;
    std::deque<ArrowColumn> kept_;
};

Rows rows_of(std::vector<std::int64_t> rows) {
    auto* kept = new std::vector<std::int64_t>(std::move(rows));
    nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<std::int64_t>*>(pointer); });
    return Rows(kept->data(), {kept->size()}, owner);
}

// A page of properties of characters; called by threads that have released the interpreter.
std::string page_of(nb::handle make, std::uint32_t number) {
    nb::gil_scoped_acquire locked;
    const auto page = nb::cast<nb::bytes>(make(number));
    return {page.c_str(), page.size()};
}

Rows lint_facts(const LintLexicon& lexicon, nb::callable page, nb::dict arrays, Bytes failed, Bytes facts) {
    const std::size_t rows = failed.size();
    if (facts.size() != rows * mmeval::kFactSize) throw nb::value_error("the facts must have 58 bytes per row");
    Columns source(arrays, static_cast<std::int64_t>(rows));
    LintColumns columns;
    columns.answer = source.texts("generated_answer");
    columns.references = source.lists("references", &columns.reference_items);
    columns.expected_answer = source.texts("expected_answer");
    columns.caption = source.texts("caption");
    columns.question = source.texts("question");
    columns.prompt = source.texts("prompt");
    columns.group = source.texts("group");
    columns.image = {source.texts("image"), source.bytes("image_bytes")};
    columns.audio = {source.texts("audio"), source.bytes("audio_bytes")};
    columns.video = {source.texts("video"), source.bytes("video_bytes")};
    columns.metadata = source.texts("metadata");
    columns.choices = source.texts("choices");
    columns.images = source.lists("images", nullptr);
    columns.messages = source.texts("messages");
    columns.boxes = source.texts("boxes");
    columns.epoch = source.integers("epoch", &columns.epochs);
    columns.failed = failed.data();
    // A handle: a copy of the function in another thread must not count references.
    const mmeval::CharacterTable::MakePage make_page = [make = nb::handle(page)](std::uint32_t number) {
        return page_of(make, number);
    };
    std::vector<std::int64_t> others;
    {
        nb::gil_scoped_release unlocked;
        others = mmeval::lint_facts(lexicon, make_page, columns, static_cast<std::int64_t>(rows), facts.data());
    }
    return rows_of(std::move(others));
}

void make_lexicon(LintLexicon* self, nb::dict words, nb::list labels) {
    new (self) LintLexicon();
    for (auto [word, languages] : words) {
        const auto pair = nb::cast<nb::tuple>(languages);
        self->add_word(view(word), nb::cast<std::uint32_t>(pair[0]), nb::cast<std::uint32_t>(pair[1]));
    }
    for (nb::handle label : labels) self->add_label(view(label));
}

}  // namespace

void bind_lint(nb::module_& module) {
    module.def("blake2b_64",
               [](nb::bytes data) { return mmeval::blake2b_64({data.c_str(), data.size()}); }, nb::arg("data"),
               "The BLAKE2b digest of 8 bytes, as a little-endian integer.");

    nb::class_<LintLexicon>(module, "LintLexicon", "The words and labels that lint looks for.")
        .def("__init__", &make_lexicon, nb::arg("words"), nb::arg("labels"));

    module.def("lint_facts", &lint_facts, nb::arg("lexicon"), nb::arg("page"), nb::arg("columns"), nb::arg("failed"),
               nb::arg("facts"),
               "Fills the facts of a batch, and returns the rows that it leaves to Python. `page(number)` returns the "
               "properties of 256 characters.");
}
