// The tokens of one text, concatenated: no allocation per token.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mmeval {

struct TokenBuffer {
    static constexpr std::size_t kLongest = std::size_t{1} << 31;

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
        if (bytes.size() + token.size() > kLongest) throw std::length_error("a text of over 2 GB cannot be tokenized");
        bytes.append(token);
        ends.push_back(static_cast<std::uint32_t>(bytes.size()));
    }
};

}  // namespace mmeval
