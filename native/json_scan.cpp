#include "json_scan.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace mmeval {
namespace {

void append_utf8(std::string& out, unsigned code) {
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xC0 | (code >> 6));
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
        // A lone surrogate is encoded as it is: equal keys stay equal, which is sufficient here.
        out += static_cast<char>(0xE0 | (code >> 12));
        out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    }
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::string unescape(std::string_view raw) {
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
        if (raw[i] != '\\' || i + 1 >= raw.size()) {
            out += raw[i];
            continue;
        }
        const char kind = raw[++i];
        switch (kind) {
            case 'n': out += '\n'; break;
            case 't': out += '\t'; break;
            case 'r': out += '\r'; break;
            case 'b': out += '\b'; break;
            case 'f': out += '\f'; break;
            case 'u': {
                unsigned code = 0;
                bool whole = i + 4 < raw.size();
                for (std::size_t k = 1; whole && k <= 4; ++k) {
                    const int digit = hex_digit(raw[i + k]);
                    whole = digit >= 0;
                    code = code * 16 + static_cast<unsigned>(digit);
                }
                if (whole) {
                    append_utf8(out, code);
                    i += 4;
                } else {
                    out += 'u';
                }
                break;
            }
            default: out += kind;
        }
    }
    return out;
}

// The position after the string that opens at `at` (a quote), or text.size() if it never closes.
std::size_t behind_string(std::string_view text, std::size_t at, bool stop_at_newline) {
    for (std::size_t i = at + 1; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') return i + 1;
        if (c == '\n' && stop_at_newline) return i;
        if (c == '\\' && !(stop_at_newline && i + 1 < text.size() && text[i + 1] == '\n')) ++i;
    }
    return text.size();
}

// Deeper text is refused by every decoder, so its keys need no check.
constexpr std::size_t kDeepest = 100'000;

// The keys of one object. A linear search is fastest until there are many keys. The tree of many keys is never slow: an
// input could contain keys with equal hashes.
class KeySet {
public:
    bool insert(std::string_view key) {
        if (few_.size() < kFew) {
            for (const auto seen : few_)
                if (seen == key) return false;
            few_.push_back(key);
            return true;
        }
        if (many_.empty()) many_.insert(few_.begin(), few_.end());
        return many_.insert(key).second;
    }
    void clear() {
        few_.clear();
        many_.clear();
    }

private:
    static constexpr std::size_t kFew = 24;
    std::vector<std::string_view> few_;
    std::set<std::string_view> many_;
};

}  // namespace

std::vector<RepeatedKey> repeated_keys(std::string_view text, bool line_delimited) {
    std::vector<RepeatedKey> repeated;
    std::vector<KeySet> sets;                                // one per open object, reused
    std::vector<char> open;                                  // '{' or '['
    std::set<std::string> unescaped;                         // owns the keys with escapes
    std::size_t objects = 0;
    bool key_next = false;
    for (std::size_t i = 0; i < text.size();) {
        switch (text[i]) {
            case '{':
                if (open.size() == kDeepest) {
                    i = line_delimited ? std::min(text.find('\n', i), text.size()) : text.size();
                    break;
                }
                open.push_back('{');
                if (sets.size() == objects) sets.emplace_back();
                sets[objects++].clear();
                key_next = true;
                ++i;
                break;
            case '[':
                if (open.size() == kDeepest) {
                    i = line_delimited ? std::min(text.find('\n', i), text.size()) : text.size();
                    break;
                }
                open.push_back('[');
                key_next = false;
                ++i;
                break;
            case '}':
            case ']':
                if (!open.empty()) {
                    if (open.back() == '{') --objects;
                    open.pop_back();
                }
                key_next = false;
                ++i;
                break;
            case ',':
                key_next = !open.empty() && open.back() == '{';
                ++i;
                break;
            case '"': {
                const std::size_t end = behind_string(text, i, line_delimited);
                if (key_next && end > i + 1 && text[end - 1] == '"') {
                    std::string_view key = text.substr(i + 1, end - i - 2);
                    if (std::memchr(key.data(), '\\', key.size()) != nullptr)
                        key = *unescaped.insert(unescape(key)).first;
                    if (!sets[objects - 1].insert(key)) repeated.push_back({i, std::string(key)});
                    key_next = false;
                }
                i = end;
                break;
            }
            case '\n':
                if (line_delimited) {
                    open.clear();
                    unescaped.clear();
                    objects = 0;
                    key_next = false;
                }
                ++i;
                break;
            default: ++i;
        }
    }
    return repeated;
}

std::size_t count_values(std::string_view text) {
    std::size_t values = 1;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (c == '"') {
            i = behind_string(text, i, false);
            continue;
        }
        values += c == ',' || c == '[' || c == '{';
        ++i;
    }
    return values;
}

ElementBatch array_elements(std::string_view text, std::size_t start, std::size_t limit) {
    ElementBatch batch;
    std::size_t i = start, depth = 0, begin = 0, lines = 0, lines_at_begin = 0;
    bool inside = false, behind_comma = start > 0 && start <= text.size() && text[start - 1] == ',';
    const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
    // A missing element becomes an empty range, which every decoder refuses.
    const auto finish = [&](std::size_t end, bool owed) {
        if (inside) {
            while (end > begin && is_space(text[end - 1])) --end;
            batch.elements.push_back({begin, end, lines_at_begin});
        } else if (owed) {
            batch.elements.push_back({end, end, lines});
        }
        inside = false;
    };
    while (i < text.size()) {
        const char c = text[i];
        if (depth == 0 && (c == ',' || c == ']')) {
            finish(i, c == ',' || behind_comma);
            ++i;
            behind_comma = c == ',';
            batch.closed = c == ']';
            if (batch.closed || batch.elements.size() >= limit) {
                batch.next = i;
                batch.lines_passed = lines;
                return batch;
            }
            continue;
        }
        if (c == '\n') {
            ++lines;
        } else if (!inside && !is_space(c)) {
            inside = true;
            behind_comma = false;
            begin = i;
            lines_at_begin = lines;
        }
        if (c == '"') {
            const std::size_t end = behind_string(text, i, false);
            for (std::size_t k = i; k < end; ++k) lines += text[k] == '\n';
            i = end;
            continue;
        }
        if (c == '{' || c == '[') ++depth;
        if ((c == '}' || c == ']') && depth > 0) --depth;
        ++i;
    }
    finish(text.size(), false);
    batch.next = text.size();
    batch.lines_passed = lines;
    batch.broken = true;
    return batch;
}

}  // namespace mmeval
