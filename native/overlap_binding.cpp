// The Python bindings of ROUGE, chrF, TER and sacrebleu's BLEU.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <stdexcept>

#include "bindings.h"
#include "chrf.h"
#include "corpus_bleu.h"
#include "python_texts.h"
#include "rouge.h"
#include "sacrebleu_tokenizers.h"
#include "ter.h"

namespace nb = nanobind;
using mmeval::RougeTexts;

namespace {

void make_rouge_texts(RougeTexts* self, nb::object candidates, nb::object references, bool stemmer) {
    const mmeval::Texts texts = texts_of(candidates, references);
    nb::gil_scoped_release unlocked;
    new (self) RougeTexts(texts, stemmer);
}

template <typename Score>
Array rouge_columns(const RougeTexts& texts, Score score) {
    auto out = std::make_unique<double[]>(texts.samples() * RougeTexts::kColumns);
    {
        nb::gil_scoped_release unlocked;
        score(out.get());
    }
    return array_of(std::move(out), texts.samples(), RougeTexts::kColumns);
}

// (scores, statistics): score(texts, stride, scores, statistics) fills all but the last column of the statistics, which is the
// number of references.
template <typename Score>
nb::tuple with_stats(nb::object candidates, nb::object references, std::size_t statistics, Score score) {
    const mmeval::Texts texts = texts_of(candidates, references);
    const std::size_t rows = texts.images(), stride = statistics + 1;
    auto scores = std::make_unique<double[]>(rows), stats = std::make_unique<double[]>(rows * stride);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t count = texts.image_ends[row] - texts.first_text(row) - 1;
        if (count == 0) throw nb::value_error("every sample needs a reference");
        stats[row * stride + statistics] = static_cast<double>(count);
    }
    {
        nb::gil_scoped_release unlocked;
        score(texts, stride, scores.get(), stats.get());
    }
    return nb::make_tuple(array_of(std::move(scores), rows, 0), array_of(std::move(stats), rows, stride));
}

nb::tuple chrf(nb::object candidates, nb::object references, std::size_t char_order, std::size_t word_order, double beta,
               bool lowercase, bool whitespace, bool eps_smoothing) {
    const mmeval::ChrfOptions options{char_order, word_order, beta, lowercase, whitespace, eps_smoothing};
    return with_stats(candidates, references, options.statistics(),
                      [&](const mmeval::Texts& texts, std::size_t stride, double* scores, double* stats) {
                          mmeval::Chrf(options).score(texts, stride, scores, stats);
                      });
}

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A score for each row of sums, which may have further columns.
template <typename Score>
Array of_sums(Matrix sums, std::size_t statistics, Score score) {
    const std::size_t rows = sums.shape(0), columns = sums.shape(1);
    if (columns < statistics) throw nb::value_error("there are too few statistics");
    auto out = std::make_unique<double[]>(rows);
    {
        nb::gil_scoped_release unlocked;
        for (std::size_t row = 0; row < rows; ++row) out[row] = score(sums.data() + row * columns);
    }
    return array_of(std::move(out), rows, 0);
}

Array chrf_of_sums(Matrix sums, std::size_t char_order, std::size_t word_order, double beta, bool lowercase, bool whitespace,
                   bool eps_smoothing) {
    const mmeval::ChrfOptions options{char_order, word_order, beta, lowercase, whitespace, eps_smoothing};
    return of_sums(sums, options.statistics(), [&](const double* stats) { return chrf_from_stats(stats, options); });
}

nb::tuple ter(nb::object candidates, nb::object references, bool normalized, bool no_punct, bool asian_support,
              bool case_sensitive) {
    const mmeval::TerOptions options{normalized, no_punct, asian_support, case_sensitive};
    return with_stats(candidates, references, mmeval::kTerStats,
                      [&](const mmeval::Texts& texts, std::size_t stride, double* scores, double* stats) {
                          mmeval::score_ter(texts, options, stride, scores, stats);
                      });
}

mmeval::Smoothing smoothing_named(std::string_view name) {
    if (name == "none") return mmeval::Smoothing::kNone;
    if (name == "floor") return mmeval::Smoothing::kFloor;
    if (name == "add-k") return mmeval::Smoothing::kAddK;
    if (name == "exp") return mmeval::Smoothing::kExp;
    throw nb::value_error("no smoothing method has that name");
}

mmeval::Tokenizer sacrebleu_tokenizer(std::string_view name) {
    const mmeval::Tokenizer tokenize = mmeval::find_sacrebleu_tokenizer(name);
    if (tokenize == nullptr) throw nb::value_error("no tokenizer has that name");
    return tokenize;
}

nb::tuple sentence_bleu(nb::object candidates, nb::object references, std::string_view tokenizer, bool lowercase,
                        std::string_view smooth_method, double smooth_value, std::size_t max_ngram_order,
                        bool effective_order) {
    const mmeval::BleuOptions options{sacrebleu_tokenizer(tokenizer), lowercase,    effective_order,
                                      smoothing_named(smooth_method), smooth_value, max_ngram_order};
    return with_stats(candidates, references, options.statistics(),
                      [&](const mmeval::Texts& texts, std::size_t stride, double* scores, double* stats) {
                          mmeval::sentence_bleu(texts, options, stride, scores, stats);
                      });
}

Array bleu_of_sums(Matrix sums, std::string_view smooth_method, double smooth_value, std::size_t max_ngram_order,
                   bool effective_order) {
    const mmeval::BleuOptions options{nullptr,         false, effective_order, smoothing_named(smooth_method), smooth_value,
                                      max_ngram_order};
    return of_sums(sums, options.statistics(), [&](const double* stats) { return sacrebleu_from_stats(stats, options); });
}

template <typename Tokenize>
nb::list tokens_of(nb::list texts, Tokenize tokenize) {
    nb::list out;
    mmeval::TokenBuffer buffer;
    for (nb::handle text : texts) {
        buffer.clear();
        tokenize(view(text), buffer);
        nb::list tokens;
        for (std::size_t i = 0; i < buffer.size(); ++i) tokens.append(string_of(buffer[i]));
        out.append(tokens);
    }
    return out;
}

}  // namespace

void bind_overlap(nb::module_& module) {
    nb::class_<RougeTexts>(module, "RougeTexts", "Answers with their references as the words of rouge-score.")
        .def("__init__", &make_rouge_texts, nb::arg("candidates"), nb::arg("references"), nb::arg("stemmer"))
        .def("__len__", &RougeTexts::samples)
        .def("words", [](const RougeTexts& self) { return rouge_columns(self, [&](double* out) { self.words(out); }); },
             "samples x (F-measure, precision, recall) of the best reference")
        .def("pairs", [](const RougeTexts& self) { return rouge_columns(self, [&](double* out) { self.pairs(out); }); },
             "the same for pairs of words")
        .def("summary_lcs",
             [](const RougeTexts& self) { return rouge_columns(self, [&](double* out) { self.summary_lcs(out); }); },
             "the same for the summary-level longest common subsequence");
    module.def("chrf", &chrf, nb::arg("candidates"), nb::arg("references"), nb::arg("char_order"), nb::arg("word_order"),
               nb::arg("beta"), nb::arg("lowercase"), nb::arg("whitespace"), nb::arg("eps_smoothing"));
    module.def("ter", &ter, nb::arg("candidates"), nb::arg("references"), nb::arg("normalized"), nb::arg("no_punct"),
               nb::arg("asian_support"), nb::arg("case_sensitive"));
    module.def("sentence_bleu", &sentence_bleu, nb::arg("candidates"), nb::arg("references"), nb::arg("tokenizer"),
               nb::arg("lowercase"), nb::arg("smooth_method"), nb::arg("smooth_value"), nb::arg("max_ngram_order"),
               nb::arg("effective_order"));
    module.def("chrf_of_sums", &chrf_of_sums, nb::arg("sums"), nb::arg("char_order"), nb::arg("word_order"),
               nb::arg("beta"), nb::arg("lowercase"), nb::arg("whitespace"), nb::arg("eps_smoothing"));
    module.def("bleu_of_sums", &bleu_of_sums, nb::arg("sums"), nb::arg("smooth_method"), nb::arg("smooth_value"),
               nb::arg("max_ngram_order"), nb::arg("effective_order"));
    module.def("sacrebleu_tokens",
               [](nb::list texts, std::string_view tokenizer) { return tokens_of(texts, sacrebleu_tokenizer(tokenizer)); },
               nb::arg("texts"), nb::arg("tokenizer"));
    module.def("ter_tokens",
               [](nb::list texts, bool normalized, bool no_punct, bool asian_support, bool case_sensitive) {
                   return tokens_of(texts, mmeval::TerTokenizer({normalized, no_punct, asian_support, case_sensitive}));
               },
               nb::arg("texts"), nb::arg("normalized"), nb::arg("no_punct"), nb::arg("asian_support"),
               nb::arg("case_sensitive"));
}
