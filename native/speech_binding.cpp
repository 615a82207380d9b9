// The Python binding of transcripts: rules that normalise them, and edits.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>

#include <memory>

#include "bindings.h"
#include "python_texts.h"
#include "transcripts.h"

namespace nb = nanobind;
using mmeval::SpokenPage;
using mmeval::TranscriptRules;
using mmeval::Transcripts;

namespace {

using Rule = TranscriptRules::Name;
using Ends = nb::ndarray<nb::numpy, std::int64_t>;

Rule rule_named(std::string_view name) {
    if (name == "none@1") return Rule::kNone;
    if (name == "basic@1") return Rule::kBasic;
    if (name == "jiwer@4") return Rule::kJiwer;
    if (name == "whisper-basic@0.1.15") return Rule::kWhisperBasic;
    if (name == "whisper-english@0.1.15") return Rule::kWhisperEnglish;
    throw nb::value_error("no rule for transcripts has that name");
}

std::u32string wide(nb::handle text) {
    const Py_ssize_t size = PyUnicode_GetLength(text.ptr());
    if (size < 0) throw nb::python_error();
    std::u32string out(static_cast<std::size_t>(size), U'\0');
    for (Py_ssize_t i = 0; i < size; ++i) out[static_cast<std::size_t>(i)] = PyUnicode_ReadChar(text.ptr(), i);
    return out;
}

nb::str narrow(const std::u32string& text) {
    const std::uint16_t one = 1;
    int order = *reinterpret_cast<const unsigned char*>(&one) == 1 ? -1 : 1;  // said, so that no mark of it is removed
    return nb::steal<nb::str>(PyUnicode_DecodeUTF32(reinterpret_cast<const char*>(text.data()),
                                                    static_cast<Py_ssize_t>(text.size() * sizeof(char32_t)),
                                                    "surrogatepass", &order));
}

// The functions of Python are called with the GIL, which is not held while texts are normalised.
std::unique_ptr<SpokenPage> page_of(const nb::object& make, std::uint32_t number) {
    nb::gil_scoped_acquire locked;
    const nb::tuple parts = nb::cast<nb::tuple>(make(number));
    const auto flags = nb::cast<nb::bytes>(parts[0]), digits = nb::cast<nb::bytes>(parts[1]);
    const auto lower = nb::cast<nb::list>(parts[2]), letters = nb::cast<nb::list>(parts[3]);
    constexpr std::size_t kSize = SpokenPage::kSize;
    if (flags.size() != kSize || digits.size() != kSize || lower.size() != kSize || letters.size() != kSize)
        throw nb::value_error("a page must have 256 characters");
    auto page = std::make_unique<SpokenPage>();
    for (std::size_t i = 0; i < kSize; ++i) {
        mmeval::SpokenCharacter& character = page->characters[i];
        character.flags = static_cast<std::uint8_t>(flags.c_str()[i]);
        character.digit = static_cast<std::uint8_t>(digits.c_str()[i]);
        character.lower = page->texts[2 * i] = wide(lower[i]);
        character.letters = page->texts[2 * i + 1] = wide(letters[i]);
    }
    return page;
}

mmeval::EnglishNumbers::Spellings pairs_of(nb::dict spellings) {
    mmeval::EnglishNumbers::Spellings pairs;
    for (auto [british, american] : spellings) pairs.emplace_back(wide(british), wide(american));
    return pairs;
}

// The functions of Python that the rules call; the garbage collector sees them.
struct Functions {
    nb::object page, lower, nfkc;

    static std::u32string call(const nb::object& convert, const std::u32string& text) {
        nb::gil_scoped_acquire locked;
        return wide(convert(narrow(text)));
    }
};

class PythonRules : Functions, public TranscriptRules {
public:
    PythonRules(nb::object page, nb::object lower, nb::object nfkc, nb::dict spellings)
        : Functions{page, lower, nfkc},
          TranscriptRules([this](std::uint32_t number) { return page_of(Functions::page, number); },
                          [this](const std::u32string& text) { return call(Functions::lower, text); },
                          [this](const std::u32string& text) { return call(Functions::nfkc, text); },
                          pairs_of(spellings)) {}

    static int visit(PyObject* self, visitproc visit, void* arg) {
        Py_VISIT(Py_TYPE(self));
        if (!nb::inst_ready(self)) return 0;
        const auto* rules = nb::inst_ptr<PythonRules>(self);
        Py_VISIT(rules->Functions::page.ptr());
        Py_VISIT(rules->Functions::lower.ptr());
        Py_VISIT(rules->Functions::nfkc.ptr());
        return 0;
    }
    static int clear(PyObject* self) {
        auto* rules = nb::inst_ptr<PythonRules>(self);
        rules->Functions::page.reset();
        rules->Functions::lower.reset();
        rules->Functions::nfkc.reset();
        return 0;
    }
};

PyType_Slot kRulesSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(PythonRules::visit)},
                             {Py_tp_clear, reinterpret_cast<void*>(PythonRules::clear)},
                             {0, nullptr}};

nb::list normalize(const PythonRules& rules, nb::list texts, std::string_view rule) {
    mmeval::TranscriptNormalizer normalizer(rules, rule_named(rule));
    nb::list out;
    for (nb::handle text : texts) {
        std::string normalized;
        normalizer.normalize(view(text), normalized);
        out.append(string_of(normalized));
    }
    return out;
}

void make_transcripts(Transcripts* self, const PythonRules& rules, nb::object hypotheses, nb::object references,
                      std::string_view rule) {
    const Rule name = rule_named(rule);
    mmeval::Texts texts = texts_of(hypotheses, references);
    nb::gil_scoped_release unlocked;
    new (self) Transcripts(std::move(texts), rules, name);
}

mmeval::SpeechEdits edits(const Transcripts& transcripts, bool by_characters) {
    nb::gil_scoped_release unlocked;
    return transcripts.edits(by_characters ? mmeval::SpeechUnit::kCharacter : mmeval::SpeechUnit::kWord);
}

Array counts_of(const mmeval::SpeechEdits& edits) {
    auto counts = std::make_unique<double[]>(edits.counts.size());
    std::copy(edits.counts.begin(), edits.counts.end(), counts.get());
    return array_of(std::move(counts), edits.ends.size(), mmeval::kEdits);
}

nb::list alignments_of(const mmeval::SpeechEdits& edits) {
    nb::list out;
    std::size_t begin = 0;
    for (const std::size_t end : edits.ends) {
        out.append(string_of(std::string_view(edits.alignments).substr(begin, end - begin)));
        begin = end;
    }
    return out;
}

Ends reference_ends(const Transcripts& transcripts) {
    auto* ends = new std::int64_t[transcripts.rows()];
    nb::capsule owner(ends, [](void* pointer) noexcept { delete[] static_cast<std::int64_t*>(pointer); });
    transcripts.reference_ends(ends);
    return Ends(ends, {transcripts.rows()}, owner);
}

}  // namespace

void bind_speech(nb::module_& module) {
    nb::class_<PythonRules>(module, "TranscriptRules", nb::type_slots(kRulesSlots), "Rules that normalise transcripts.")
        .def(nb::init<nb::object, nb::object, nb::object, nb::dict>(), nb::arg("page"), nb::arg("lower"),
             nb::arg("nfkc"), nb::arg("spellings"))
        .def("normalize", &normalize, nb::arg("texts"), nb::arg("rule"));
    nb::class_<Transcripts>(module, "Transcripts", "Transcripts with their references, normalised once.")
        .def("__init__", &make_transcripts, nb::arg("rules"), nb::arg("hypotheses"), nb::arg("references"),
             nb::arg("rule"), nb::keep_alive<1, 2>())
        .def("__len__", &Transcripts::rows)
        .def("reference_ends", &reference_ends, "The number of references up to and including each row.")
        .def("edits", &edits, nb::arg("by_characters"));
    nb::class_<mmeval::SpeechEdits>(module, "SpeechEdits", "The edits of all pairs of a transcript and a reference.")
        .def("counts", &counts_of, "Hits, substitutions, deletions and insertions of each pair.")
        .def("alignments", &alignments_of, "The alignment of each pair, empty if there are only hits.");
}
