#include "json_canonical.h"

#include <charconv>
#include <cmath>
#include <cstddef>

namespace mmeval {
namespace {

constexpr int kDeepest = 32;
constexpr std::size_t kDigits = 18;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) {}

    bool whole() { return value(0) && at_ == text_.size(); }

private:
    bool take(char c) {
        if (at_ == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }

    bool word(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) return false;
        at_ += expected.size();
        return true;
    }

    bool string(std::string_view& content) {
        if (!take('"')) return false;
        const std::size_t start = at_;
        for (; at_ < text_.size() && text_[at_] != '"'; ++at_)
            if (text_[at_] == '\\' || static_cast<unsigned char>(text_[at_]) < 0x20) return false;
        content = text_.substr(start, at_ - start);
        return take('"');
    }

    bool number() {
        const std::size_t start = at_;
        take('-');
        const std::size_t first = at_;
        while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
        const std::size_t digits = at_ - first;
        if (digits == 0 || digits > kDigits || (digits > 1 && text_[first] == '0')) return false;
        if (take('.')) return fraction(start);
        return digits > 1 || text_[first] != '0' || first == start;  // not "-0"
    }

    // Whether a number that starts at `start` is the shortest text of a floating-point number.
    bool fraction(std::size_t start) {
#ifdef __cpp_lib_to_chars
        while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
        const std::string_view digits = text_.substr(start, at_ - start);
        double value = 0;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        const double size = std::fabs(value);
        if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return false;
        if (size != 0 && !(size >= 1e-3 && size < 1e15)) return false;  // written with an exponent
        char written[64];
        const auto end = std::to_chars(written, written + sizeof written, value, std::chars_format::fixed);
        std::string_view shortest(written, static_cast<std::size_t>(end.ptr - written));
        if (shortest.find('.') != std::string_view::npos) return shortest == digits;
        return digits.size() == shortest.size() + 2 && digits.substr(0, shortest.size()) == shortest &&
               digits.substr(shortest.size()) == ".0";
#else
        (void)start;
        return false;
#endif
    }

    bool array(int depth) {
        if (take(']')) return true;
        do {
            if (!value(depth)) return false;
        } while (take(','));
        return take(']');
    }

    bool object(int depth) {
        if (take('}')) return true;
        std::string_view previous, key;
        bool is_first = true;
        do {
            if (!string(key) || (!is_first && key <= previous) || !take(':') || !value(depth)) return false;
            previous = key;
            is_first = false;
        } while (take(','));
        return take('}');
    }

    bool value(int depth) {
        if (depth > kDeepest || at_ == text_.size()) return false;
        std::string_view content;
        switch (text_[at_]) {
            case '"': return string(content);
            case '[': ++at_; return array(depth + 1);
            case '{': ++at_; return object(depth + 1);
            case 't': return word("true");
            case 'f': return word("false");
            case 'n': return word("null");
            default: return number();
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

bool is_canonical_json(std::string_view text) { return Scanner(text).whole(); }

void append_json(std::string& out, std::string_view text) {
    constexpr char kHex[] = "0123456789abcdef";
    out += '"';
    std::size_t start = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        out.append(text.substr(start, i - start));
        start = i + 1;
        out += '\\';
        switch (c) {
            case '\b': out += 'b'; break;
            case '\t': out += 't'; break;
            case '\n': out += 'n'; break;
            case '\f': out += 'f'; break;
            case '\r': out += 'r'; break;
            case '"':
            case '\\': out += static_cast<char>(c); break;
            default: out.append("u00").append(1, kHex[c >> 4]).append(1, kHex[c & 15]);
        }
    }
    out.append(text.substr(start));
    out += '"';
}

}  // namespace mmeval
