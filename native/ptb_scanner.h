// The longest match of the Penn Treebank rules: walks the tables of ptb_tables.h in linear time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ptb_tables.h"
#include "utf8.h"

namespace mmeval::ptb {

constexpr int kStride = 128;  // a power of two: the row of a state is found by a shift
static_assert(kClasses <= kStride, "rows are too short");

const uint16_t* transitions();

using ClassPage = std::remove_const_t<std::remove_reference_t<decltype(kClassPage[0])>>;
const ClassPage* file_classes();  // of ASCII characters, with a line break as the end of a line

inline int class_of(uint32_t c) {
    return c < 0x10000 ? kClassPage[kClassIndex[c >> 8] * 256 + (c & 255)] : kJunkClass;
}

// Failed long lookaheads. Some rules read far ahead (an e-mail address needs an @), and in some texts every token
// starts such a search. A search that reaches a (place, state) known to fail stops there, so the whole text takes
// linear time. Only places 32 bytes apart are stored, and only for lookaheads of more than 32 bytes.
class FailedLooks {
public:
    static constexpr std::size_t kSpacing = 32;

    bool contains(std::size_t place, int state) const {
        if (slots_.empty()) return false;
        for (std::size_t i = slot(key(place, state));; i = (i + 1) & (slots_.size() - 1)) {
            if (slots_[i] == key(place, state)) return true;
            if (slots_[i] == 0) return false;
        }
    }

    void insert(std::size_t place, int state) {
        if (count_ * 2 >= slots_.size()) grow();
        put(key(place, state));
    }

private:
    static uint64_t key(std::size_t place, int state) {
        return static_cast<uint64_t>(place / kSpacing) * kStates + static_cast<uint64_t>(state) + 1;
    }
    std::size_t slot(uint64_t k) const { return static_cast<std::size_t>(k * 0x9e3779b97f4a7c15ull >> 20) & (slots_.size() - 1); }
    void put(uint64_t k) {
        std::size_t i = slot(k);
        while (slots_[i] != 0 && slots_[i] != k) i = (i + 1) & (slots_.size() - 1);
        if (slots_[i] == 0) ++count_;
        slots_[i] = k;
    }
    void grow() {
        std::vector<uint64_t> old(slots_.empty() ? 256 : slots_.size() * 2, 0);
        old.swap(slots_);
        count_ = 0;
        for (uint64_t k : old)
            if (k != 0) put(k);
    }

    std::vector<uint64_t> slots_;
    std::size_t count_ = 0;
};

struct Match {
    std::size_t end = 0;  // end of the longest match, including lookahead; text.size() + 1 if past the text
    int state = 0;        // the accepting state; 0 if nothing matched

    Action action() const { return static_cast<Action>(kAccept[state]); }
};

class Scanner {
public:
    // In a file, a line break ends a caption, and the next one follows it.
    explicit Scanner(std::string_view text, bool is_file = false)
        : text_(text), next_(transitions()), classes_(is_file ? file_classes() : kClassPage) {}

    Match longest(std::size_t begin) {
        Match best;
        int state = kStart;
        std::size_t i = begin;
        const std::size_t soon = std::min(text_.size(), begin + FailedLooks::kSpacing);
        run(i, soon, state, best);
        if (state == 0) return best;
        if (i < text_.size()) return look_far(i, state, best);
        look_past_end(state, best);
        return best;
    }

private:
    // Walks from i until `stop` is reached or the state is dead (0).
    void run(std::size_t& i, std::size_t stop, int& state, Match& best) const {
        while (i < stop) {
            const unsigned char b = static_cast<unsigned char>(text_[i]);
            int cls;
            if (b < 0x80) {
                cls = classes_[b];
                ++i;
            } else {
                const CodePoint c = decode(text_, i);
                cls = class_of(c.value);
                i += c.bytes;
            }
            state = next_[state * kStride + cls];
            if (state == 0) return;
            if (state >= kFirstAccept) best = {i, state};
        }
    }

    Match look_far(std::size_t i, int state, Match best) {
        passed_.clear();
        while (i < text_.size()) {
            if (failed_.contains(i, state)) {
                state = 0;
                break;
            }
            const std::size_t matched = best.end;
            passed_.emplace_back(i, state);
            const std::size_t place = (i / FailedLooks::kSpacing + 1) * FailedLooks::kSpacing;
            run(i, std::min(place, text_.size()), state, best);
            if (best.end != matched) passed_.clear();
            if (state == 0) break;
        }
        const std::size_t matched = best.end;
        if (state != 0) look_past_end(state, best);
        if (best.end == matched)
            for (const auto& p : passed_) failed_.insert(p.first, p.second);
        return best;
    }

    // A line break and an empty line after the text can serve as lookahead.
    void look_past_end(int state, Match& best) const {
        for (int lines = 0; lines < 2; ++lines) {
            state = next_[state * kStride + kEolClass];
            if (state == 0) return;
            if (state >= kFirstAccept) best = {text_.size() + 1, state};
        }
    }

    std::string_view text_;
    const uint16_t* next_;
    const ClassPage* classes_;  // of ASCII characters
    FailedLooks failed_;
    std::vector<std::pair<std::size_t, int>> passed_;  // places since the last match of the current lookahead
};

}  // namespace mmeval::ptb
