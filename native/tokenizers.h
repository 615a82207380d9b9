// The tokenizers by name.
#pragma once

#include <string>
#include <string_view>

#include "token_buffer.h"

namespace mmeval {

using Tokenizer = void (*)(std::string_view text, TokenBuffer& out);

// "ptb", "13a", "whitespace", "unicode" or "evalscope"; nullptr for any other name.
Tokenizer find_tokenizer(std::string_view name);

// Splits at white space, as Python's str.split() does.
void whitespace_tokenize(std::string_view text, TokenBuffer& out);

// mteval-v13a as in sacrebleu: punctuation split off, numbers kept whole, case kept.
void mteval_tokenize(std::string_view text, TokenBuffer& out);

// The steps of mteval-v13a, for tokenizers that share some: the characters that are always separated, then points and
// commas that are not inside a number and dashes after a digit.
std::string surround_separators(const std::string& text);
std::string separate_points_and_dashes(const std::string& text);
std::string replaced(const std::string& text, std::string_view old, std::string_view fresh);

// Runs of letters, marks and digits of any script, lower-cased; Han and Kana one character at a time.
void unicode_tokenize(std::string_view text, TokenBuffer& out);

// Lower case, with ASCII punctuation other than ':' as spaces, split at white space.
void evalscope_tokenize(std::string_view text, TokenBuffer& out);

}  // namespace mmeval
