// Numbers and texts in stored tables: appended to a string, and read without passing its end.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mmeval {

inline void put_number(std::string& out, std::uint64_t value) {
    while (value >= 0x80) {
        out += static_cast<char>(value | 0x80);
        value >>= 7;
    }
    out += static_cast<char>(value);
}

template <typename Number>
void put_raw(std::string& out, const Number* values, std::size_t count) {
    out.append(reinterpret_cast<const char*>(values), count * sizeof(Number));
}

class BytesReader {
public:
    explicit BytesReader(std::string_view bytes) : bytes_(bytes) {}
    std::uint64_t number() {  // of put_number
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1)[0]);
            value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
            if (byte < 0x80) return value;
        }
        throw std::runtime_error("a number in the document-frequency table is too long");
    }
    std::string_view take(std::uint64_t count) {
        if (count > left()) throw std::runtime_error("the document-frequency table ends too early");
        const std::string_view piece = bytes_.substr(at_, count);
        at_ += count;
        return piece;
    }
    template <typename Number>
    Number raw() {
        Number value;
        std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
        return value;
    }
    std::size_t left() const { return bytes_.size() - at_; }
    bool at_end() const { return left() == 0; }

private:
    std::string_view bytes_;
    std::size_t at_ = 0;
};

}  // namespace mmeval
