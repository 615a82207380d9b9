#pragma once
#include <string_view>
#include "token_buffer.h"
namespace mmeval {
void ptb_tokenize(std::string_view text, TokenBuffer& out);
}
