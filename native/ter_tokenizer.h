// The words of a text as Tercom splits it, in sacrebleu's version.
#pragma once

#include <string>
#include <string_view>

#include "token_buffer.h"

namespace mmeval {

struct TerOptions {
    bool normalized = false, no_punct = false, asian_support = false, case_sensitive = false;
};

class TerTokenizer {
public:
    explicit TerTokenizer(const TerOptions& options) : options_(options) {}
    void operator()(std::string_view text, TokenBuffer& out);

private:
    void normalize(std::string& text) const;

    TerOptions options_;
    std::string text_, changed_;
};

}  // namespace mmeval
