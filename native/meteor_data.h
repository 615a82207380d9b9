// METEOR 1.5's word lists and paraphrases in one memory-mapped file: opening it costs nothing, and only the pages in
// use are read. MeteorDataBuilder builds the file from the lists that the METEOR program ships.
//
// The file is a sequence of arrays of 32-bit numbers, then the bytes of the words. Phrases form a trie: a node is a
// phrase, its children are contiguous in the order of their last word, and node 0 is the empty phrase.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ngrams.h"
#include "span.h"

namespace mmeval {

class MeteorData {
public:
    static constexpr std::uint32_t kRoot = 0;

    MeteorData() = default;
    explicit MeteorData(std::string_view file);  // `file` must outlive this; throws std::runtime_error if it is damaged

    std::uint32_t word(std::string_view text) const;  // its number, or kMissing
    bool is_function_word(std::uint32_t word) const { return function_words_.data[word] != 0; }
    Span synsets(std::uint32_t word) const { return list(synset_ends_, synsets_, word); }            // ascending
    Span exception_bases(std::uint32_t word) const { return list(base_ends_, bases_, word); }        // words
    std::uint32_t longer(std::uint32_t node, std::uint32_t word) const;  // the phrase extended by a word, or kMissing
    Span paraphrases(std::uint32_t node) const { return list(paraphrase_ends_, paraphrases_, node); }  // nodes
    std::string_view prefixes() const { return prefixes_; }

private:
    friend class MeteorDataBuilder;
    static constexpr std::size_t kArrays = 11;

    std::string_view text_of(std::uint32_t word) const;
    static Span list(Span ends, Span values, std::uint32_t index);

    Span word_ends_{}, slots_{}, function_words_{}, synset_ends_{}, synsets_{}, base_ends_{}, bases_{};
    Span child_ends_{}, last_words_{}, paraphrase_ends_{}, paraphrases_{};
    std::string_view words_, prefixes_;
};

class MeteorDataBuilder {
public:
    void add_function_words(std::string_view lines);  // one word per line
    void add_synsets(std::string_view lines);         // alternating lines: a word, its synsets' numbers
    void add_exceptions(std::string_view lines);      // alternating lines: a base form, its inflected forms
    void add_prefixes(std::string_view lines) { prefixes_ = lines; }
    void add_paraphrases(std::string_view piece);     // lines: probability, phrase, paraphrase; cut anywhere

    std::string finish();  // the file; the builder cannot be used afterwards

private:
    std::uint32_t phrase(std::string_view text);
    std::vector<std::uint32_t> renumber_phrases(std::vector<std::uint32_t>& child_ends,
                                                std::vector<std::uint32_t>& last_words);

    using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
    Vocabulary words_;
    std::vector<std::uint32_t> function_words_;
    Pairs synsets_, bases_, paraphrases_;
    NgramTable phrases_;
    std::string unfinished_;  // an incomplete line
    int line_ = 0;            // of three
    std::uint32_t key_ = 0;
    std::string prefixes_;
};

}  // namespace mmeval
