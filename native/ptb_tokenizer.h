// Penn Treebank tokenizer for captions, as in coco-caption: lower case, punctuation dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ngrams.h"
#include "token_buffer.h"

namespace mmeval {

// The kept tokens of one caption (UTF-8; bad bytes are dropped). Always takes linear time.
void ptb_tokenize(std::string_view text, TokenBuffer& out);

// The same for the first `size` bytes of a text, whose other bytes are the next lines of the caption's file: the last
// tokens can depend on them.
void ptb_tokenize(std::string_view text, std::size_t size, TokenBuffer& out);

// The same as numbers of a vocabulary. A plain word (up to eight ASCII letters followed by a space) gives the same
// token everywhere, so its number is cached.
class PtbNumberer {
public:
    explicit PtbNumberer(Vocabulary& vocabulary) : vocabulary_(vocabulary), known_(kKnown) {}
    void number(std::string_view text, std::size_t size, std::vector<std::uint32_t>& ids);

private:
    static constexpr std::size_t kKnown = 8192;
    struct Word {
        std::uint64_t letters = 0;
        std::uint32_t id = 0;
    };

    Vocabulary& vocabulary_;
    std::vector<Word> known_;  // a cache with one slot per word; a new entry replaces the old one
    TokenBuffer buffer_;
};

}  // namespace mmeval
