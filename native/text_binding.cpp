// The Python bindings of tokenizers, document frequencies and caption metrics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <stdexcept>

#include "bindings.h"
#include "captions.h"
#include "document_frequencies.h"
#include "python_texts.h"

namespace nb = nanobind;
using mmeval::Captions;
using mmeval::DocumentFrequencies;

namespace {

nb::list tokenize(nb::list texts, std::string_view tokenizer) {
    const mmeval::Tokenizer run = tokenizer_named(tokenizer);
    mmeval::Texts copies;
    for (nb::handle text : texts) append(copies, text);
    std::vector<mmeval::TokenBuffer> buffers(copies.ends.size());
    {
        nb::gil_scoped_release unlocked;
        for (std::size_t text = 0; text < buffers.size(); ++text) run(copies[text], buffers[text]);
    }
    nb::list out;
    for (const auto& buffer : buffers) {
        nb::list tokens;
        for (std::size_t i = 0; i < buffer.size(); ++i) tokens.append(string_of(buffer[i]));
        out.append(tokens);
    }
    return out;
}

void make_captions(Captions* self, nb::object candidates, nb::object references, std::string_view tokenizer,
                   std::size_t threads, bool with_ngrams) {
    const mmeval::Tokenizer run = tokenizer_named(tokenizer);
    const mmeval::Texts texts = texts_of(candidates, references);
    const std::string name(tokenizer);
    nb::gil_scoped_release unlocked;
    new (self) Captions(texts, run, name, with_ngrams, threads);
}

using Score = void (Captions::*)(const DocumentFrequencies&, double*) const;

template <Score score>
Array with_frequencies(const Captions& captions, const DocumentFrequencies& df) {
    auto out = std::make_unique<double[]>(captions.images());
    {
        nb::gil_scoped_release unlocked;
        (captions.*score)(df, out.get());
    }
    return array_of(std::move(out), captions.images(), 0);
}

Array rouge_l(const Captions& captions) {
    auto out = std::make_unique<double[]>(captions.images());
    {
        nb::gil_scoped_release unlocked;
        captions.rouge_l(out.get());
    }
    return array_of(std::move(out), captions.images(), 0);
}

nb::tuple bleu(const Captions& captions) {
    auto scores = std::make_unique<double[]>(captions.images() * mmeval::kOrders);
    auto stats = std::make_unique<double[]>(captions.images() * mmeval::kBleuStats);
    {
        nb::gil_scoped_release unlocked;
        captions.bleu(scores.get(), stats.get());
    }
    return nb::make_tuple(array_of(std::move(scores), captions.images(), mmeval::kOrders),
                          array_of(std::move(stats), captions.images(), mmeval::kBleuStats));
}

nb::tuple bleu_and_cider_d(const Captions& captions, const DocumentFrequencies& df) {
    auto scores = std::make_unique<double[]>(captions.images() * mmeval::kOrders);
    auto stats = std::make_unique<double[]>(captions.images() * mmeval::kBleuStats);
    auto cider_d = std::make_unique<double[]>(captions.images());
    {
        nb::gil_scoped_release unlocked;
        captions.bleu_and_cider_d(df, scores.get(), stats.get(), cider_d.get());
    }
    return nb::make_tuple(array_of(std::move(scores), captions.images(), mmeval::kOrders),
                          array_of(std::move(stats), captions.images(), mmeval::kBleuStats),
                          array_of(std::move(cider_d), captions.images(), 0));
}

// The number of images in which an n-gram, given as tokens, occurs.
std::uint32_t count_of(const DocumentFrequencies& df, nb::list tokens) {
    std::uint32_t node = mmeval::kMissing;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::uint32_t token = df.tokens.find(view(tokens[i]));
        if (token == mmeval::kMissing) return 0;
        node = df.ngrams.find(node, token);
        if (node == mmeval::kMissing) return 0;
    }
    return tokens.size() == 0 ? 0 : df.count(node);
}

}  // namespace

void bind_text(nb::module_& module) {
    module.def("tokenize", &tokenize, nb::arg("texts"), nb::arg("tokenizer"), "The tokens of each text.");

    nb::class_<DocumentFrequencies>(module, "FrequencyTable", "The number of images whose references have each n-gram.")
        .def(nb::init<>())
        .def_ro("images", &DocumentFrequencies::images)
        .def_ro("tokenizer", &DocumentFrequencies::tokenizer)
        .def("__len__", &DocumentFrequencies::counted)
        .def("count", &count_of, nb::arg("tokens"))
        .def("merge", &DocumentFrequencies::merge, nb::arg("other"), nb::call_guard<nb::gil_scoped_release>())
        .def("varies", &DocumentFrequencies::varies)
        .def("unite", &DocumentFrequencies::unite, nb::arg("other"), nb::call_guard<nb::gil_scoped_release>())
        .def("pack",
             [](const DocumentFrequencies& self, std::uint32_t buckets) {
                 if (buckets == 0) throw nb::value_error("there must be at least one bucket");
                 std::vector<std::string> packed;
                 {
                     nb::gil_scoped_release unlocked;
                     packed = self.pack(buckets);
                 }
                 nb::list out;
                 for (const std::string& bucket : packed) out.append(nb::bytes(bucket.data(), bucket.size()));
                 return out;
             },
             nb::arg("buckets"))
        .def("merge_packed",
             [](DocumentFrequencies& self, nb::bytes data) {
                 const std::string_view bytes(data.c_str(), data.size());
                 nb::gil_scoped_release unlocked;
                 try {
                     self.merge_packed(bytes);
                 } catch (const std::runtime_error& error) {
                     throw nb::value_error(error.what());
                 }
             },
             nb::arg("packed"))
        .def("with_at_least", &DocumentFrequencies::with_at_least, nb::arg("least"),
             nb::call_guard<nb::gil_scoped_release>())
        .def("to_bytes",
             [](const DocumentFrequencies& self) {
                 std::string bytes;
                 {
                     nb::gil_scoped_release unlocked;
                     bytes = self.to_bytes();
                 }
                 return nb::bytes(bytes.data(), bytes.size());
             })
        .def_static("from_bytes", [](nb::bytes data) {
            const std::string_view bytes(data.c_str(), data.size());
            nb::gil_scoped_release unlocked;
            try {
                return DocumentFrequencies::from_bytes(bytes);
            } catch (const std::runtime_error& error) {
                throw nb::value_error(error.what());
            }
        });

    nb::class_<Captions>(module, "Captions", "Captions with their references, tokenized once.")
        .def("__init__", &make_captions, nb::arg("candidates"), nb::arg("references"), nb::arg("tokenizer"),
             nb::arg("threads") = 1, nb::arg("with_ngrams") = true)
        .def("__len__", &Captions::images)
        .def("document_frequencies", &Captions::document_frequencies, nb::call_guard<nb::gil_scoped_release>())
        .def("cider", &with_frequencies<&Captions::cider>, nb::arg("df"))
        .def("cider_d", &with_frequencies<&Captions::cider_d>, nb::arg("df"))
        .def("rouge_l", &rouge_l)
        .def("bleu", &bleu, "(images x 4 scores, images x 10 statistics)")
        .def("bleu_and_cider_d", &bleu_and_cider_d, nb::arg("df"), "(bleu's scores and statistics, cider_d's scores)");
}
