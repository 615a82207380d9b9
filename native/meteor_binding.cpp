// The Python bindings of METEOR.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <string>

#include "bindings.h"
#include "meteor_data.h"
#include "meteor_scorer.h"
#include "meteor_staged.h"
#include "python_texts.h"
#include "stemmers.h"

namespace nb = nanobind;
using mmeval::MeteorData;
using mmeval::MeteorDataBuilder;
using mmeval::MeteorParameters;
using mmeval::MeteorScorer;
using mmeval::MeteorStats;
using mmeval::StagedMeteor;
using Apostrophes = mmeval::MeteorNormalizer::Apostrophes;

namespace {

mmeval::Stemmer stemmer_named(std::string_view name) {
    const mmeval::Stemmer stemmer = mmeval::find_stemmer(name);
    if (stemmer == nullptr) throw nb::value_error("no stemmer has that name");
    return stemmer;
}

using File = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The scorer with its data: the mapped file stays open as long as this object lives.
struct Meteor15 {
    File file;
    MeteorData data;
    MeteorScorer scorer;

    Meteor15(File file_, std::string_view stemmer, bool apostrophes_apart, const MeteorParameters& parameters)
        : file(std::move(file_)), data({reinterpret_cast<const char*>(file.data()), file.size()}),
          scorer(data, stemmer_named(stemmer), apostrophes_apart ? Apostrophes::kApart : Apostrophes::kEnglish, parameters) {}
    Meteor15(const Meteor15&) = delete;  // the scorer points to the data
};

MeteorParameters parameters_of(Vector values) {
    if (values.size() != 4 + mmeval::kModules) throw nb::value_error("METEOR needs four parameters and four weights");
    MeteorParameters parameters{values(0), values(1), values(2), values(3), {}};
    for (int module = 0; module < mmeval::kModules; ++module) parameters.weights[module] = values(4 + module);
    return parameters;
}

nb::tuple score(const Meteor15& self, nb::object candidates, nb::object references, std::string_view tokenizer,
                std::size_t threads, bool are_lines) {
    const mmeval::Tokenizer tokenize = tokenizer.empty() ? nullptr : tokenizer_named(tokenizer);
    mmeval::Texts texts = texts_of(candidates, references);
    texts.are_lines = are_lines;
    auto scores = std::make_unique<double[]>(texts.images());
    auto stats = std::make_unique<double[]>(texts.images() * MeteorStats::kSize);
    {
        nb::gil_scoped_release unlocked;
        self.scorer.score(texts, tokenize, threads, scores.get(), stats.get());
    }
    return nb::make_tuple(array_of(std::move(scores), texts.images(), 0),
                          array_of(std::move(stats), texts.images(), MeteorStats::kSize));
}

double from_stats(Vector stats, Vector parameters) {
    if (stats.size() != MeteorStats::kSize) throw nb::value_error("METEOR needs 23 statistics");
    return mmeval::meteor_from_stats(stats.data(), parameters_of(std::move(parameters)));
}

void make_staged(StagedMeteor* self, nb::object candidates, nb::object references, std::string_view tokenizer,
                 std::string_view stemmer) {
    const mmeval::Tokenizer tokenize = tokenizer_named(tokenizer);
    const mmeval::Stemmer stem_word = stemmer_named(stemmer);
    const mmeval::Texts texts = texts_of(candidates, references);
    nb::gil_scoped_release unlocked;
    new (self) StagedMeteor(texts, tokenize, stem_word);
}

nb::list words_of(const StagedMeteor& self) {
    nb::list out;
    for (std::uint32_t word = 0; word < self.words().size(); ++word) out.append(string_of(self.words()[word]));
    return out;
}

void set_synsets(StagedMeteor& self, nb::sequence synsets) {
    std::vector<std::uint32_t> numbers;
    std::vector<std::uint64_t> ends;
    for (nb::handle word : synsets) {
        for (nb::handle synset : word) numbers.push_back(nb::cast<std::uint32_t>(synset));
        ends.push_back(numbers.size());
    }
    self.set_synsets(std::move(numbers), ends);
}

Array staged_score(const StagedMeteor& self, bool with_penalty, std::size_t threads) {
    auto rows = std::make_unique<double[]>(self.images() * StagedMeteor::kColumns);
    {
        nb::gil_scoped_release unlocked;
        self.score(with_penalty, threads, rows.get());
    }
    return array_of(std::move(rows), self.images(), StagedMeteor::kColumns);
}

nb::tuple staged_alignment(const StagedMeteor& self, std::size_t image, std::size_t reference) {
    const mmeval::Alignment alignment = self.align(image, reference);
    nb::list matches;
    for (const auto& match : alignment.matches)
        matches.append(nb::make_tuple(match.candidate, match.reference, match.stage));
    return nb::make_tuple(matches, alignment.crossings, alignment.chunks, alignment.exact);
}

nb::list stem(nb::list words, std::string_view stemmer) {
    const mmeval::Stemmer run = stemmer_named(stemmer);
    nb::list out;
    std::string stem;
    for (nb::handle word : words) {
        run(view(word), stem);
        out.append(string_of(stem));
    }
    return out;
}

}  // namespace

void bind_meteor(nb::module_& module) {
    module.def("stem", &stem, nb::arg("words"), nb::arg("stemmer"), "The stem of each lower-case word.");

    nb::class_<MeteorDataBuilder>(module, "MeteorDataBuilder", "Builds the file that Meteor15 reads.")
        .def(nb::init<>())
        .def("add_function_words", [](MeteorDataBuilder& self, nb::bytes lines) { self.add_function_words({lines.c_str(), lines.size()}); })
        .def("add_synsets", [](MeteorDataBuilder& self, nb::bytes lines) { self.add_synsets({lines.c_str(), lines.size()}); })
        .def("add_exceptions", [](MeteorDataBuilder& self, nb::bytes lines) { self.add_exceptions({lines.c_str(), lines.size()}); })
        .def("add_prefixes", [](MeteorDataBuilder& self, nb::bytes lines) { self.add_prefixes({lines.c_str(), lines.size()}); })
        .def("add_paraphrases", [](MeteorDataBuilder& self, nb::bytes piece) {
            const std::string_view bytes(piece.c_str(), piece.size());
            nb::gil_scoped_release unlocked;
            self.add_paraphrases(bytes);
        })
        .def("finish", [](MeteorDataBuilder& self) {
            std::string file;
            {
                nb::gil_scoped_release unlocked;
                file = self.finish();
            }
            return nb::bytes(file.data(), file.size());
        });

    nb::class_<Meteor15>(module, "Meteor15", "METEOR 1.5 with a memory-mapped file of its data.")
        .def("__init__", [](Meteor15* self, File file, std::string_view stemmer, bool apostrophes_apart, Vector parameters) {
            new (self) Meteor15(std::move(file), stemmer, apostrophes_apart, parameters_of(std::move(parameters)));
        }, nb::arg("file"), nb::arg("stemmer"), nb::arg("apostrophes_apart"), nb::arg("parameters"))
        .def("score", &score, nb::arg("candidates"), nb::arg("references"), nb::arg("tokenizer"), nb::arg("threads") = 1,
             nb::arg("are_lines") = false, "(one score per image, images x 23 statistics)");
    module.def("meteor_from_stats", &from_stats, nb::arg("stats"), nb::arg("parameters"),
               "The METEOR 1.5 score of (summed) statistics.");

    nb::class_<StagedMeteor>(module, "StagedMeteor", "METEOR of 2005 and its harmonic mean, with or without synonyms.")
        .def("__init__", &make_staged, nb::arg("candidates"), nb::arg("references"), nb::arg("tokenizer"),
             nb::arg("stemmer"))
        .def("words", &words_of, "The distinct words of the texts.")
        .def("set_synsets", &set_synsets, nb::arg("synsets"), "The synsets of each word, in ascending order.")
        .def("score", &staged_score, nb::arg("with_penalty"), nb::arg("threads") = 1,
             "Per image: score, matches, candidate words, reference words, chunks, crossings, whether proven.")
        .def("alignment", &staged_alignment, nb::arg("image"), nb::arg("reference"),
             "(matches as (candidate, reference, stage), crossings, chunks, whether proven)");
}
