// A batch of captions with their references, tokenized once and scored by any caption metric.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frequency_table.h"
#include "span.h"
#include "tokenizers.h"

namespace mmeval {

class Counter;

// The texts of a batch, concatenated: for each image the candidate, then its references.
struct Texts {
    // Whether the candidates are the lines of one file and the references those of another, as for the Java tokenizer,
    // which looks at the next line. Otherwise, texts are separate.
    bool are_lines = false;
    std::string bytes;
    std::vector<std::uint64_t> ends;        // of each text in `bytes`
    std::vector<std::uint64_t> image_ends;  // of each image in `ends`

    std::string_view operator[](std::size_t text) const {
        const std::size_t begin = text == 0 ? 0 : ends[text - 1];
        return std::string_view(bytes).substr(begin, ends[text] - begin);
    }
    std::size_t first_text(std::size_t image) const { return image == 0 ? 0 : image_ends[image - 1]; }
    std::size_t images() const { return image_ends.size(); }
    std::size_t first_byte(std::size_t image) const {
        const std::size_t text = first_text(image);
        return text == 0 ? 0 : ends[text - 1];
    }
    // A text of an image with the beginning of the next lines; what the tokenizer gets if texts are lines.
    void read_lines(std::size_t image, std::size_t text, std::string& lines) const;
};

// Tokenizes texts one after the other, alone or as lines.
class TextTokenizer {
public:
    TextTokenizer(const Texts& texts, Tokenizer tokenize)
        : texts_(texts), tokenize_(tokenize), is_ptb_(tokenize == find_tokenizer("ptb")) {}
    bool is_ptb() const { return is_ptb_; }
    // A text and, if they matter, the next lines.
    std::string_view view(std::size_t image, std::size_t text);
    void operator()(std::size_t image, std::size_t text, TokenBuffer& out);

private:
    const Texts& texts_;
    Tokenizer tokenize_;
    bool is_ptb_;
    std::string lines_;
};

class Captions {
public:
    // document_frequencies() needs n-grams; scores use them if they are there, and otherwise number those of a few
    // images at a time, which is faster unless all n-grams are needed anyway.
    Captions(const Texts& texts, Tokenizer tokenize, const std::string& tokenizer, bool with_ngrams, std::size_t threads);

    std::size_t images() const { return images_; }
    FrequencyTable document_frequencies() const;
    // The document frequencies in `buckets` pieces (see ngram_pieces.h); n-grams need not be numbered.
    std::vector<std::string> packed_frequencies(std::uint32_t buckets) const;

    // One value per image. `df` may be any table. document_frequencies() gives the one of this batch.
    // `orders` (1 to 4) is the longest n-gram.
    void cider(const FrequencyTable& df, int orders, double* out) const;
    void cider_d(const FrequencyTable& df, int orders, double* out) const;
    void cider_r(const FrequencyTable& df, int orders, double* out) const;
    void rouge_l(double* out) const;
    void bleu(double* scores, double* stats) const;  // images x 4 and images x kBleuStats
    void bleu_and_cider_d(const FrequencyTable& df, double* scores, double* stats, double* cider_d) const;

private:
    // The n-grams of consecutive texts: orders 1..4 of a text, each left to right.
    struct Ngrams {
        NgramTable table;
        std::vector<std::uint32_t> nodes;
        std::vector<std::uint64_t> node_ends;
        std::size_t first_text = 0;

        void start(std::size_t text);
        void number(Span tokens);  // of the next text
        Span nodes_of(std::size_t text) const { return span(nodes, node_ends, text - first_text); }
    };

    // A contiguous range of images with its own numbering of tokens and n-grams: the work of one thread.
    struct Shard {
        Vocabulary vocabulary;
        std::string tokenizer;
        std::vector<std::uint32_t> tokens;    // of all texts, concatenated
        std::vector<std::uint64_t> token_ends;
        std::vector<std::uint64_t> image_ends;  // in texts
        std::size_t first_image = 0;
        Ngrams all;                             // of all texts, if they are numbered
        LargeVector<std::uint32_t> counts;      // by node of `all`: the images in whose references it occurs
        std::uint64_t with_references = 0;      // images
        std::uint32_t looked_at = 0;  // tokens below this number have been checked for spaces
        std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> pieces;      // of tokens with a space
        std::unordered_map<std::size_t, std::vector<std::uint32_t>> whole_texts;  // texts with such a token

        std::size_t first_text(std::size_t image) const { return image == 0 ? 0 : image_ends[image - 1]; }
        std::size_t images() const { return image_ends.size(); }
        Span tokens_of(std::size_t text) const { return span(tokens, token_ends, text); }
        std::size_t words_of(std::size_t text) const { return tokens_of(text).size; }
        void build(const Texts& texts, std::size_t begin, std::size_t end, Tokenizer tokenize);
        void number_all();
        void split_at_blanks(std::size_t first_token);
        DocumentFrequencies table() const;
        std::vector<double> repetition_penalties() const;  // of all references, in their order
        template <typename... Scorers>
        void walk(const Ngrams& ngrams, std::size_t begin, std::size_t end, Counter& counts,
                  Scorers&... scorers) const;
    };

    static Span span(const std::vector<std::uint32_t>& values, const std::vector<std::uint64_t>& ends,
                     std::size_t text) {
        const std::size_t begin = text == 0 ? 0 : ends[text - 1];
        return {values.data() + begin, ends[text] - begin};
    }
    // Passes every image of a shard to every scorer, with the weights of `df` if there is one.
    template <typename... Scorers>
    void score(const Shard& shard, const FrequencyTable* df, Scorers&&... scorers) const;
    template <typename Score>
    void for_each_shard(Score score) const;

    bool with_ngrams_;
    std::vector<Shard> shards_;
    std::size_t images_ = 0;
};

}  // namespace mmeval
