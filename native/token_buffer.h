// Tokens of one text, laid end to end: no allocation a token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mmeval {

struct TokenBuffer {
    std::string bytes;
    std::vector<std::uint32_t> ends;  // end of each token in `bytes`

    void clear() {
        bytes.clear();
        ends.clear();
    }
    std::size_t size() const { return ends.size(); }
    std::string_view operator[](std::size_t i) const {
        const std::size_t begin = i == 0 ? 0 : ends[i - 1];
        return std::string_view(bytes).substr(begin, ends[i] - begin);
    }
    void push(std::string_view token) {
        bytes.append(token);
        ends.push_back(static_cast<std::uint32_t>(bytes.size()));
    }
};

}  // namespace mmeval
