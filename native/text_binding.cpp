// The Python bindings of tokenizers, document frequencies and caption metrics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <stdexcept>

#include "bindings.h"
#include "captions.h"
#include "frequency_table.h"
#include "ngram_pieces.h"
#include "python_texts.h"
#include "text_hash.h"

namespace nb = nanobind;
using mmeval::Captions;
using mmeval::FrequencyTable;

namespace {

nb::list tokenize(nb::list texts, std::string_view tokenizer, bool are_lines) {
    mmeval::Texts copies;
    copies.are_lines = are_lines;
    for (nb::handle text : texts) {
        append(copies, text);
        copies.image_ends.push_back(copies.ends.size());
    }
    mmeval::TextTokenizer run(copies, tokenizer_named(tokenizer));
    std::vector<mmeval::TokenBuffer> buffers(copies.ends.size());
    {
        nb::gil_scoped_release unlocked;
        for (std::size_t text = 0; text < buffers.size(); ++text) run(text, text, buffers[text]);
    }
    nb::list out;
    for (const auto& buffer : buffers) {
        nb::list tokens;
        for (std::size_t i = 0; i < buffer.size(); ++i) tokens.append(string_of(buffer[i]));
        out.append(tokens);
    }
    return out;
}

using Hashes = nb::ndarray<nb::numpy, std::int64_t>;

Hashes text_hashes(nb::object texts) {
    const ArrowColumn column(texts);
    require_format(column.schema(), "u");
    const ArrowArray& array = column.array();
    const auto rows = static_cast<std::size_t>(array.length);
    auto* hashes = new std::int64_t[rows];
    nb::capsule owner(hashes, [](void* pointer) noexcept { delete[] static_cast<std::int64_t*>(pointer); });
    const std::int32_t* ends = rows > 0 ? offsets(array) : nullptr;
    const auto* bytes = static_cast<const char*>(array.buffers[2]);
    for (std::size_t row = 0; row < rows; ++row)
        hashes[row] = mmeval::text_hash({bytes + ends[row], static_cast<std::size_t>(ends[row + 1] - ends[row])});
    return Hashes(hashes, {rows}, owner);
}

void make_captions(Captions* self, nb::object candidates, nb::object references, std::string_view tokenizer,
                   std::size_t threads, bool with_ngrams, bool are_lines) {
    const mmeval::Tokenizer run = tokenizer_named(tokenizer);
    mmeval::Texts texts = texts_of(candidates, references);
    texts.are_lines = are_lines;
    const std::string name(tokenizer);
    nb::gil_scoped_release unlocked;
    new (self) Captions(texts, run, name, with_ngrams, threads);
}

using Score = void (Captions::*)(const FrequencyTable&, int, double*) const;

template <Score score>
Array with_frequencies(const Captions& captions, const FrequencyTable& df, int n) {
    if (n < 1 || n > mmeval::kOrders) throw nb::value_error("n must be 1 to 4");
    auto out = std::make_unique<double[]>(captions.images());
    {
        nb::gil_scoped_release unlocked;
        (captions.*score)(df, n, out.get());
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

nb::tuple bleu_and_cider_d(const Captions& captions, const FrequencyTable& df) {
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
std::uint32_t count_of(FrequencyTable& table, nb::list tokens) {
    const mmeval::DocumentFrequencies& df = table.read_counts();
    std::uint32_t node = mmeval::kMissing;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::uint32_t token = df.tokens.find(view(tokens[i]));
        if (token == mmeval::kMissing) return 0;
        node = df.ngrams.find(node, token);
        if (node == mmeval::kMissing) return 0;
    }
    return tokens.size() == 0 ? 0 : df.count(node);
}

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

// The result of work without the GIL. Errors in the data become ValueError.
template <typename Work>
auto unlocked(Work work) {
    nb::gil_scoped_release released;
    try {
        return work();
    } catch (const std::runtime_error& error) {
        throw nb::value_error(error.what());
    }
}

template <typename Pack>
nb::list packed(std::uint32_t buckets, Pack pack) {
    if (buckets == 0) throw nb::value_error("there must be at least one bucket");
    const std::vector<std::string> pieces = unlocked(pack);
    nb::list out;
    for (const std::string& piece : pieces) out.append(bytes_of(piece));
    return out;
}

std::string_view view_of(const nb::bytes& data) { return {data.c_str(), data.size()}; }

void bind_tables(nb::module_& module) {
    nb::class_<FrequencyTable>(module, "FrequencyTable", "The number of images whose references have each n-gram.")
        .def(nb::init<>())
        .def_prop_ro("images", &FrequencyTable::images)
        .def_prop_ro("tokenizer", &FrequencyTable::tokenizer)
        .def("__len__", &FrequencyTable::size)
        .def("count", &count_of, nb::arg("tokens"))
        .def("merge", &FrequencyTable::merge, nb::arg("other"))
        .def("varies", &FrequencyTable::varies)
        .def("pack",
             [](FrequencyTable& self, std::uint32_t buckets) {
                 const mmeval::DocumentFrequencies& counts = self.read_counts();
                 return packed(buckets, [&] { return mmeval::packed_table(counts, buckets); });
             },
             nb::arg("buckets"))
        .def("with_at_least",
             [](FrequencyTable& self, std::uint32_t least) {
                 const mmeval::DocumentFrequencies& counts = self.read_counts();
                 return unlocked([&] { return FrequencyTable(counts.with_at_least(least)); });
             },
             nb::arg("least"))
        .def("to_bytes", [](const FrequencyTable& self) { return bytes_of(unlocked([&] { return self.to_bytes(); })); })
        .def_static("from_bytes", [](nb::bytes data) {
            const std::string_view bytes = view_of(data);
            return unlocked([&] { return FrequencyTable::from_bytes(std::string(bytes)); });
        });

    nb::class_<mmeval::BucketSum>(module, "BucketSum", "The sum of one bucket over the pieces of many parts.")
        .def(nb::init<>())
        .def("add",
             [](mmeval::BucketSum& self, nb::bytes piece) {
                 const std::string_view bytes = view_of(piece);
                 unlocked([&] { self.add(bytes); });
             },
             nb::arg("piece"))
        .def("finish", [](mmeval::BucketSum& self) { return bytes_of(unlocked([&] { return self.finish(); })); });

    nb::class_<mmeval::BucketUnion>(module, "BucketUnion", "The buckets of all n-grams as one table.")
        .def(nb::init<>())
        .def("add",
             [](mmeval::BucketUnion& self, nb::bytes bucket) {
                 const std::string_view bytes = view_of(bucket);
                 unlocked([&] { self.add(bytes); });
             },
             nb::arg("bucket"))
        .def_prop_ro("has_weights", &mmeval::BucketUnion::has_weights)
        .def("finish",
             [](mmeval::BucketUnion& self, std::size_t threads) {
                 return unlocked([&] { return FrequencyTable::from_bytes(self.finish(threads)); });
             },
             nb::arg("threads") = 1);
}

}  // namespace

void bind_text(nb::module_& module) {
    module.def("tokenize", &tokenize, nb::arg("texts"), nb::arg("tokenizer"), nb::arg("are_lines") = false,
               "The tokens of each text, alone or as lines of one file.");
    module.def("text_hashes", &text_hashes, nb::arg("texts"), "The `text_hash` of each text of an Arrow array.");

    bind_tables(module);
    nb::class_<Captions>(module, "Captions", "Captions with their references, tokenized once.")
        .def("__init__", &make_captions, nb::arg("candidates"), nb::arg("references"), nb::arg("tokenizer"),
             nb::arg("threads") = 1, nb::arg("with_ngrams") = true, nb::arg("are_lines") = false)
        .def("__len__", &Captions::images)
        .def("document_frequencies", &Captions::document_frequencies, nb::call_guard<nb::gil_scoped_release>())
        .def("packed_frequencies",
             [](const Captions& self, std::uint32_t buckets) {
                 return packed(buckets, [&] { return self.packed_frequencies(buckets); });
             },
             nb::arg("buckets"))
        .def("cider", &with_frequencies<&Captions::cider>, nb::arg("df"), nb::arg("n") = mmeval::kOrders)
        .def("cider_d", &with_frequencies<&Captions::cider_d>, nb::arg("df"), nb::arg("n") = mmeval::kOrders)
        .def("cider_r", &with_frequencies<&Captions::cider_r>, nb::arg("df"), nb::arg("n") = mmeval::kOrders)
        .def("rouge_l", &rouge_l)
        .def("bleu", &bleu, "(images x 4 scores, images x 10 statistics)")
        .def("bleu_and_cider_d", &bleu_and_cider_d, nb::arg("df"), "(bleu's scores and statistics, cider_d's scores)");
}
