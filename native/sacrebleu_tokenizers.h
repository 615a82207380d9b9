// The tokenizers of sacrebleu's BLEU that need no other package.
#pragma once

#include <string_view>

#include "tokenizers.h"

namespace mmeval {

// "13a", "intl", "char", "zh" or "none"; nullptr for any other name.
Tokenizer find_sacrebleu_tokenizer(std::string_view name);

}  // namespace mmeval
