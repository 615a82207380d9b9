// Penn Treebank tokenizer for captions, as coco-caption runs it (lower-cased, one caption a line).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ngrams.h"
#include "token_buffer.h"

namespace mmeval {

// Both functions clear `out` and fill it with the tokens of one caption (UTF-8; bad bytes are dropped).
//
// The reference program sees all captions as lines of one file and, for a period at the very end of a caption, peeks
// at the caption after it: "vitamin c." is c. before "a dog" but c and . before "The dog". `following` is that next
// caption; leave it empty for a caption that stands alone.
void ptb_tokenize(std::string_view text, TokenBuffer& out);      // kept tokens, as coco-caption
void ptb_tokenize_raw(std::string_view text, TokenBuffer& out);  // every token, before the punctuation filter
void ptb_tokenize(std::string_view text, std::string_view following, TokenBuffer& out);
void ptb_tokenize_raw(std::string_view text, std::string_view following, TokenBuffer& out);

// The kept tokens as numbers of a vocabulary. A plain word (up to eight ASCII letters with a blank behind it) gives the
// same token wherever it stands, so its number is remembered and the rules are not asked again.
class PtbNumberer {
public:
    explicit PtbNumberer(Vocabulary& vocabulary) : vocabulary_(vocabulary), known_(kKnown) {}
    void number(std::string_view text, std::vector<std::uint32_t>& ids);

private:
    static constexpr std::size_t kKnown = 8192;
    struct Word {
        std::uint64_t letters = 0;
        std::uint32_t id = 0;
    };

    Vocabulary& vocabulary_;
    std::vector<Word> known_;  // a word has one place; the last that came there stays
    TokenBuffer buffer_;
};

}  // namespace mmeval
