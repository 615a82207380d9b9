#include "ptb_tokenizer.h"
#include "tokenizers.h"
namespace mmeval {
void ptb_tokenize(std::string_view text, TokenBuffer& out) { whitespace_tokenize(text, out); }
}
