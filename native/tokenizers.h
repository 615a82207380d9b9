// The tokenizers by name.
#pragma once

#include <string_view>

#include "token_buffer.h"

namespace mmeval {

using Tokenizer = void (*)(std::string_view text, TokenBuffer& out);

// "ptb", "13a", "whitespace" or "unicode"; nullptr for any other name.
Tokenizer find_tokenizer(std::string_view name);

// Splits at white space, as Python's str.split() does.
void whitespace_tokenize(std::string_view text, TokenBuffer& out);

// mteval-v13a as in sacrebleu: punctuation split off, numbers kept whole, case kept.
void mteval_tokenize(std::string_view text, TokenBuffer& out);

// Runs of letters, marks and digits of any script, lower-cased; Han and Kana one character at a time.
void unicode_tokenize(std::string_view text, TokenBuffer& out);

}  // namespace mmeval
