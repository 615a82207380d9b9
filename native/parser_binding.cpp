// The Python binding of the dependency parser.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "python_texts.h"
#include "transition_parser.h"

namespace nb = nanobind;
using mmeval::Linear;
using mmeval::MaxoutNorm;
using mmeval::TransitionParser;
using mmeval::WordVectors;

namespace {

using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ends = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, std::int32_t>;
using Table = std::pair<Floats, std::uint32_t>;
using Maxout = std::tuple<Floats, Floats, Floats, Floats>;  // weights, bias, gain, shift
using Dense = std::pair<Floats, Floats>;                    // weights, bias

void require(bool condition, const char* what) {
    if (!condition) throw nb::value_error(what);
}

MaxoutNorm maxout_of(const Maxout& from) {
    const auto& [weights, bias, gain, shift] = from;
    require(weights.ndim() == 3, "the weights of a maxout layer must have three dimensions");
    const std::size_t outputs = weights.shape(0), pieces = weights.shape(1);
    require(outputs > 0 && pieces > 0 && bias.size() == outputs * pieces && gain.size() == outputs && shift.size() == outputs,
            "the arrays of a maxout layer do not fit together");
    return MaxoutNorm(weights.data(), bias.data(), gain.data(), shift.data(), weights.shape(2), outputs, pieces);
}

Linear linear_of(const Dense& from) {
    const auto& [weights, bias] = from;
    require(weights.ndim() == 2 && bias.size() == weights.shape(0), "the arrays of a linear layer do not fit together");
    std::vector<std::size_t> order(weights.shape(0));
    std::iota(order.begin(), order.end(), std::size_t{0});
    return Linear(weights.data(), bias.data(), weights.shape(1), order);
}

// The parser with the strings that its tables refer to.
struct DependencyParser {
    TransitionParser parser;
    std::vector<std::string> fixed;

    DependencyParser(const std::vector<Table>& tables, const Maxout& mix, const std::vector<Maxout>& convolutions,
                     const Dense& tagger, const Dense& narrow, const std::tuple<Floats, Floats, Floats>& features,
                     const Dense& scores, const std::vector<std::tuple<int, int, int>>& steps, int root_label,
                     nb::dict norms, nb::dict fixed_keys) {
        set_vectors(tables, mix, convolutions, norms, fixed_keys);
        parser.tagger = linear_of(tagger);
        parser.narrow = linear_of(narrow);
        parser.scores = linear_of(scores);
        set_features(features);
        for (const auto& [move, label, lifted] : steps) {
            require(move >= 0 && move < 5 && label >= 0, "a step of the parser must have a move and a label");
            parser.steps.push_back({static_cast<mmeval::Move>(move), label, lifted});
        }
        parser.root_label = root_label;
        parser.check();
    }
    DependencyParser(const DependencyParser&) = delete;  // the keys point to the strings

    void set_vectors(const std::vector<Table>& tables, const Maxout& mix, const std::vector<Maxout>& convolutions,
                     nb::dict norms, nb::dict fixed_keys) {
        WordVectors& vectors = parser.vectors;
        require(tables.size() == WordVectors::kTables, "the parser needs six tables of word features");
        for (std::size_t i = 0; i < tables.size(); ++i) {
            const auto& [rows, seed] = tables[i];
            require(rows.ndim() == 2 && rows.shape(0) < (std::size_t{1} << 31), "a table must have rows and columns");
            vectors.tables[i].rows.assign(rows.data(), rows.data() + rows.size());
            vectors.tables[i].count = static_cast<std::uint32_t>(rows.shape(0));
            vectors.tables[i].seed = seed;
        }
        vectors.mix = maxout_of(mix);
        for (const Maxout& layer : convolutions) vectors.convolutions.push_back(maxout_of(layer));
        fixed.reserve(fixed_keys.size());
        for (auto [text, key] : fixed_keys) {
            fixed.emplace_back(view(text));
            vectors.fixed_keys.emplace(fixed.back(), nb::cast<std::uint64_t>(key));
        }
        for (auto [key, norm] : norms) {
            const auto fixed_key = vectors.fixed_keys.find(view(norm));
            vectors.norms[nb::cast<std::uint64_t>(key)] =
                fixed_key == vectors.fixed_keys.end() ? mmeval::string_key(view(norm)) : fixed_key->second;
        }
        vectors.finish_setup();
    }

    // From features x outputs x pieces x inputs to rows: feature by feature, piece by piece.
    void set_features(const std::tuple<Floats, Floats, Floats>& from) {
        const auto& [weights, bias, absent] = from;
        require(weights.ndim() == 4 && weights.shape(0) == TransitionParser::kFeatures && bias.ndim() == 2,
                "the weights of the parser's features must have four dimensions");
        const std::size_t count = weights.shape(0), outputs = weights.shape(1), pieces = weights.shape(2);
        require(bias.shape(0) == outputs && bias.shape(1) == pieces && absent.size() == count * outputs * pieces,
                "the arrays of the parser's features do not fit together");
        std::vector<std::size_t> order;
        for (std::size_t feature = 0; feature < count; ++feature)
            for (std::size_t piece = 0; piece < pieces; ++piece)
                for (std::size_t output = 0; output < outputs; ++output)
                    order.push_back((feature * outputs + output) * pieces + piece);
        const std::vector<float> none(order.size(), 0.0f);
        parser.features = Linear(weights.data(), none.data(), weights.shape(3), order);
        for (const std::size_t from_row : order) parser.absent.push_back(absent.data()[from_row]);
        for (std::size_t piece = 0; piece < pieces; ++piece)
            for (std::size_t output = 0; output < outputs; ++output)
                parser.bias.push_back(bias.data()[output * pieces + piece]);
    }
};

Result numbers_of(std::unique_ptr<std::int32_t[]> data, std::size_t count) {
    std::int32_t* values = data.release();
    nb::capsule owner(values, [](void* pointer) noexcept { delete[] static_cast<std::int32_t*>(pointer); });
    return Result(values, {count}, owner);
}

nb::tuple parse(const DependencyParser& self, nb::list words, Numbers sentences, Ends ends, std::size_t threads) {
    TransitionParser::Batch batch;
    std::vector<nb::tuple> owners;  // keep the strings while the GIL is released
    for (nb::handle word : words) {
        owners.push_back(nb::cast<nb::tuple>(word));
        const nb::tuple& of = owners.back();
        require(of.size() == 5, "a word needs its text, lower case, prefix, suffix and shape");
        batch.words.push_back({view(of[1]), view(of[2]), view(of[3]), view(of[4]), view(of[0])});
    }
    batch.sentences = sentences.data();
    std::int64_t previous = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        require(ends(i) >= previous && ends(i) <= static_cast<std::int64_t>(sentences.size()), "the ends must ascend");
        previous = ends(i);
        batch.ends.push_back(static_cast<std::size_t>(ends(i)));
    }
    for (std::size_t i = 0; i < sentences.size(); ++i)
        require(sentences(i) >= 0 && static_cast<std::size_t>(sentences(i)) < words.size(), "no word has that number");
    auto tags = std::make_unique<std::int32_t[]>(sentences.size());
    auto heads = std::make_unique<std::int32_t[]>(sentences.size());
    auto labels = std::make_unique<std::int32_t[]>(sentences.size());
    {
        nb::gil_scoped_release unlocked;
        self.parser.parse(batch, threads, tags.get(), heads.get(), labels.get());
    }
    return nb::make_tuple(numbers_of(std::move(tags), sentences.size()), numbers_of(std::move(heads), sentences.size()),
                          numbers_of(std::move(labels), sentences.size()));
}

}  // namespace

void bind_parser(nb::module_& module) {
    nb::class_<DependencyParser>(module, "DependencyParser")
        .def(nb::init<const std::vector<Table>&, const Maxout&, const std::vector<Maxout>&, const Dense&, const Dense&,
                      const std::tuple<Floats, Floats, Floats>&, const Dense&,
                      const std::vector<std::tuple<int, int, int>>&, int, nb::dict, nb::dict>(),
             nb::arg("tables"), nb::arg("mix"), nb::arg("convolutions"), nb::arg("tagger"), nb::arg("narrow"),
             nb::arg("features"), nb::arg("scores"), nb::arg("steps"), nb::arg("root_label"), nb::arg("norms"),
             nb::arg("fixed_keys"))
        .def("parse", &parse, nb::arg("words"), nb::arg("sentences"), nb::arg("ends"), nb::arg("threads") = 1);
}
