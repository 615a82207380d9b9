#include "edit_alignment.h"

#include <algorithm>

namespace mmeval {
namespace {

constexpr std::size_t kWord = 64;
constexpr std::size_t kSlots = 128;  // of a word's hash table, at most half full
constexpr std::size_t kDensest = std::size_t{1} << 16;
constexpr std::uint32_t kNoKey = 0xffffffff;

// RapidFuzz keeps the matrix of differences up to this size in bytes, and otherwise splits the texts (Hirschberg 1975).
// Which of several alignments results depends on it.
constexpr std::size_t kLargestMatrix = std::size_t{1} << 20;
constexpr std::size_t kShortReference = 65, kShortHypothesis = 10;
constexpr std::size_t kFirstGuess = 64;  // of an unknown distance

Span part(Span span, std::size_t begin, std::size_t end) { return {span.data + begin, end - begin}; }

std::size_t ones(std::uint64_t word) {
    std::size_t count = 0;
    for (; word != 0; word &= word - 1) ++count;
    return count;
}

}  // namespace

const std::vector<EditRun>& EditAligner::align(Span reference, Span hypothesis, std::size_t kinds) {
    kinds_ = kinds;
    edits_.clear();
    align_parts(reference, hypothesis, std::max(reference.size, hypothesis.size), false);
    return edits_;
}

void EditAligner::append(Edit kind, std::uint64_t length) {
    if (length == 0) return;
    if (!edits_.empty() && edits_.back().kind == kind)
        edits_.back().length += length;
    else
        edits_.push_back({kind, length});
}

void EditAligner::align_parts(Span reference, Span hypothesis, std::size_t most, bool is_exact) {
    const std::size_t shorter = std::min(reference.size, hypothesis.size);
    std::size_t prefix = 0;
    while (prefix < shorter && reference.data[prefix] == hypothesis.data[prefix]) ++prefix;
    std::size_t suffix = 0;
    while (suffix < shorter - prefix &&
           reference.data[reference.size - 1 - suffix] == hypothesis.data[hypothesis.size - 1 - suffix])
        ++suffix;
    append(Edit::kHit, prefix);
    reference = part(reference, prefix, reference.size - suffix);
    hypothesis = part(hypothesis, prefix, hypothesis.size - suffix);

    const std::size_t m = reference.size, n = hypothesis.size;
    most = std::min(most, std::max(m, n));
    if (m == 0 || n == 0) {
        append(Edit::kDeletion, m);
        append(Edit::kInsertion, n);
    } else if (2 * std::min(m, 2 * most + 1) * n / 8 < kLargestMatrix || m < kShortReference || n < kShortHypothesis) {
        align_directly(reference, hypothesis, most);
    } else {
        const Split at = split(reference, hypothesis, most, is_exact);
        align_parts(part(reference, 0, at.reference), part(hypothesis, 0, at.hypothesis), at.left_distance, true);
        align_parts(part(reference, at.reference, m), part(hypothesis, at.hypothesis, n), at.right_distance, true);
    }
    append(Edit::kHit, suffix);
}

void EditAligner::align_directly(Span reference, Span hypothesis, std::size_t most) {
    set_patterns(reference);
    if (is_dense_ && (words_ <= 2 || most + kWord >= words_ * kWord)) {
        width_ = words_;
        keep(hypothesis.size);
        words_ == 1 ? run_whole<1>(hypothesis) : words_ == 2 ? run_whole<2>(hypothesis) : run_whole<0>(hypothesis);
        trace<true>(reference, hypothesis);
    } else {
        run<true>(hypothesis, most);
        trace<false>(reference, hypothesis);
    }
}

// From the end to the beginning: a deletion if there is one, then an insertion unless another edit is as good.
template <bool kIsWhole>
void EditAligner::trace(Span reference, Span hypothesis) {
    backwards_.clear();
    std::size_t column = reference.size, row = hypothesis.size;
    const auto is_set = [&](const std::vector<std::uint64_t>& kept, std::size_t in_row) {
        const std::size_t bit = column - 1, first = kIsWhole ? 0 : kept_first_[in_row];
        return (kept[in_row * width_ + bit / kWord - first] >> (bit % kWord) & 1) != 0;
    };
    const auto add = [&](Edit kind) {
        if (!backwards_.empty() && backwards_.back().kind == kind)
            ++backwards_.back().length;
        else
            backwards_.push_back({kind, 1});
    };
    while (row > 0 && column > 0) {
        if (is_set(kept_plus_, row - 1)) {
            --column;
            add(Edit::kDeletion);
            continue;
        }
        --row;
        if (row > 0 && is_set(kept_minus_, row - 1)) {
            add(Edit::kInsertion);
            continue;
        }
        --column;
        add(reference.data[column] == hypothesis.data[row] ? Edit::kHit : Edit::kSubstitution);
    }
    append(Edit::kDeletion, column);
    append(Edit::kInsertion, row);
    for (auto run = backwards_.rbegin(); run != backwards_.rend(); ++run) append(run->kind, run->length);
}

// The middle of the hypothesis, and the first position in the reference through which a best alignment goes.
EditAligner::Split EditAligner::split(Span reference, Span hypothesis, std::size_t most, bool is_exact) {
    Split best{};
    std::size_t guess = is_exact ? most : std::min(most, kFirstGuess);
    while (!find_split(reference, hypothesis, guess, best)) guess = std::min(most, 2 * guess);
    return best;
}

// False if the distance is greater than `most`.
bool EditAligner::find_split(Span reference, Span hypothesis, std::size_t most, Split& split) {
    const std::size_t m = reference.size, n = hypothesis.size, middle = n / 2;
    if (std::max(m, n) - std::min(m, n) > most) return false;
    turned_reference_.assign(std::make_reverse_iterator(reference.end()), std::make_reverse_iterator(reference.begin()));
    turned_hypothesis_.assign(std::make_reverse_iterator(hypothesis.end()),
                              std::make_reverse_iterator(hypothesis.begin() + middle));
    distances({turned_reference_.data(), m}, {turned_hypothesis_.data(), n - middle}, most, right_);
    distances(reference, part(hypothesis, 0, middle), most, left_);
    std::size_t best = most + 1;
    for (std::size_t i = 0; i < left_.values.size(); ++i) {
        const std::size_t position = left_.first + i, rest = m - position;
        if (rest < right_.first || rest - right_.first >= right_.values.size()) continue;
        const std::size_t left = left_.values[i], right = right_.values[rest - right_.first];
        if (left + right >= best) continue;
        best = left + right;
        split = {position, middle, left, right};
    }
    return best <= most;
}

void EditAligner::distances(Span reference, Span hypothesis, std::size_t most, Distances& out) {
    set_patterns(reference);
    run<false>(hypothesis, most);
    out.first = first_word_ * kWord;
    out.values.assign(1, top_);
    const std::size_t end = std::min(reference.size, (last_word_ + 1) * kWord);
    std::size_t distance = top_;
    for (std::size_t i = out.first; i < end; ++i) {
        distance += plus_[i / kWord] >> (i % kWord) & 1;
        distance -= minus_[i / kWord] >> (i % kWord) & 1;
        out.values.push_back(distance);
    }
}

void EditAligner::set_patterns(Span reference) {
    words_ = (reference.size + kWord - 1) / kWord;
    is_dense_ = (kinds_ + 1) * words_ <= kDensest;
    if (is_dense_) {
        dense_.assign((kinds_ + 1) * words_, 0);  // the last one is for numbers that are not in the reference
        for (std::size_t i = 0; i < reference.size; ++i)
            dense_[reference.data[i] * words_ + i / kWord] |= std::uint64_t{1} << (i % kWord);
        return;
    }
    keys_.assign(words_ * kSlots, kNoKey);
    bits_.assign(words_ * kSlots, 0);
    for (std::size_t i = 0; i < reference.size; ++i) {
        const std::size_t begin = i / kWord * kSlots;
        std::size_t slot = reference.data[i] % kSlots;
        while (keys_[begin + slot] != kNoKey && keys_[begin + slot] != reference.data[i]) slot = (slot + 1) % kSlots;
        keys_[begin + slot] = reference.data[i];
        bits_[begin + slot] |= std::uint64_t{1} << (i % kWord);
    }
}

std::uint64_t EditAligner::pattern(std::uint32_t number, std::size_t word) const {
    if (is_dense_) return dense_[std::min<std::size_t>(number, kinds_) * words_ + word];
    const std::size_t begin = word * kSlots;
    std::size_t slot = number % kSlots;
    while (keys_[begin + slot] != kNoKey) {
        if (keys_[begin + slot] == number) return bits_[begin + slot];
        slot = (slot + 1) % kSlots;
    }
    return 0;
}

void EditAligner::keep(std::size_t rows) {
    if (kept_plus_.size() >= width_ * rows) return;
    kept_plus_.resize(width_ * rows);
    kept_minus_.resize(width_ * rows);
}

// `run` without a band; the number of words of the reference may be known to the compiler.
template <std::size_t kWords>
void EditAligner::run_whole(Span hypothesis) {
    const std::size_t words = kWords == 0 ? words_ : kWords;
    plus_.assign(words, ~std::uint64_t{0});
    minus_.assign(words, 0);
    const std::uint64_t *plus = plus_.data(), *minus = minus_.data();
    std::uint64_t *kept_plus = kept_plus_.data(), *kept_minus = kept_minus_.data();
    for (const std::uint32_t number : hypothesis) {
        const std::uint64_t* patterns = dense_.data() + std::min<std::size_t>(number, kinds_) * words;
        std::uint64_t plus_carry = 1, minus_carry = 0;
        for (std::size_t word = 0; word < words; ++word) {
            const std::uint64_t equal = patterns[word] | minus_carry;
            const std::uint64_t diagonal = (((equal & plus[word]) + plus[word]) ^ plus[word]) | equal | minus[word];
            const std::uint64_t right_plus = minus[word] | ~(diagonal | plus[word]);
            const std::uint64_t right_minus = diagonal & plus[word];
            const std::uint64_t moved_plus = right_plus << 1 | plus_carry, moved_minus = right_minus << 1 | minus_carry;
            plus_carry = right_plus >> 63;
            minus_carry = right_minus >> 63;
            kept_plus[word] = moved_minus | ~(diagonal | moved_plus);
            kept_minus[word] = moved_plus & diagonal;
        }
        plus = kept_plus;
        minus = kept_minus;
        kept_plus += words;
        kept_minus += words;
    }
}

// The matrix of edit distances row by row, as differences in words of 64 bits (Myers 1999, Hyyrö 2003). Only the words
// with a cell that is at most `most` from the diagonal are computed: outside of them no alignment is good enough.
// Distances at their edge may be too large, but not those on a best alignment.
template <bool kKeeps>
void EditAligner::run(Span hypothesis, std::size_t most) {
    const std::size_t n = hypothesis.size;
    plus_.assign(words_, ~std::uint64_t{0});
    minus_.assign(words_, 0);
    first_word_ = 0;
    last_word_ = std::min(words_ - 1, most / kWord);
    top_ = 0;
    if (kKeeps) {
        width_ = std::min(words_, 2 * most / kWord + 2);
        keep(n);
        if (kept_first_.size() < n) kept_first_.resize(n);
    }
    for (std::size_t row = 0; row < n; ++row) {
        if (row > most && (row - most) / kWord > first_word_ && first_word_ < last_word_) {
            top_ += ones(plus_[first_word_]);
            top_ -= ones(minus_[first_word_]);
            ++first_word_;
        }
        last_word_ = std::min(words_ - 1, (row + most) / kWord);
        ++top_;
        std::uint64_t plus_carry = 1, minus_carry = 0;
        for (std::size_t word = first_word_; word <= last_word_; ++word) {
            const std::uint64_t plus = plus_[word], minus = minus_[word];
            const std::uint64_t equal = pattern(hypothesis.data[row], word) | minus_carry;
            const std::uint64_t diagonal = (((equal & plus) + plus) ^ plus) | equal | minus;
            std::uint64_t right_plus = minus | ~(diagonal | plus);
            std::uint64_t right_minus = diagonal & plus;
            const std::uint64_t next_plus = right_plus >> 63, next_minus = right_minus >> 63;
            right_plus = right_plus << 1 | plus_carry;
            right_minus = right_minus << 1 | minus_carry;
            plus_carry = next_plus;
            minus_carry = next_minus;
            plus_[word] = right_minus | ~(diagonal | right_plus);
            minus_[word] = right_plus & diagonal;
        }
        if (kKeeps) {
            kept_first_[row] = first_word_;
            const std::size_t size = last_word_ - first_word_ + 1;
            std::copy_n(plus_.begin() + static_cast<std::ptrdiff_t>(first_word_), size,
                        kept_plus_.begin() + static_cast<std::ptrdiff_t>(row * width_));
            std::copy_n(minus_.begin() + static_cast<std::ptrdiff_t>(first_word_), size,
                        kept_minus_.begin() + static_cast<std::ptrdiff_t>(row * width_));
        }
    }
}

}  // namespace mmeval
