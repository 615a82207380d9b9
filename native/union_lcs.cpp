#include "union_lcs.h"

#include <algorithm>
#include <cmath>

namespace mmeval {

void UnionLcs::start(Span reference, std::size_t words) {
    reference_ = reference;
    width_ = (reference.size + 63) / 64;
    if (slots_.size() < words) slots_.resize(words, 0);
    positions_.assign(width_, 0);
    for (std::size_t i = 0; i < reference.size; ++i) {
        std::uint32_t& slot = slots_[reference.data[i]];
        if (slot == 0) {
            slot = static_cast<std::uint32_t>(positions_.size() / width_);
            positions_.resize(positions_.size() + width_, 0);
        }
        positions_[slot * width_ + i / 64] |= std::uint64_t{1} << i % 64;
    }
    is_shared_.assign(reference.size, false);
}

// Hyyro's bit-parallel step (2004), with carries from one machine word to the next.
void UnionLcs::next_row(const std::uint64_t* row, Row out, std::uint32_t word) const {
    const std::uint64_t* here = &positions_[slots_[word] * width_];
    std::uint64_t carry = 0;
    for (std::size_t k = 0; k < width_; ++k) {
        const std::uint64_t hits = row[k] & here[k];
        const std::uint64_t sum = row[k] + hits, with_carry = sum + carry;
        carry = (sum < row[k]) | (with_carry < sum);
        out[k] = with_carry | (row[k] & ~here[k]);
    }
}

// The rows after the candidate's words begin + 1 to end, from the kept row before them.
void UnionLcs::fill_rows(Span candidate, std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) {
        const std::size_t at = (j - begin) * width_;
        next_row(&block_[at], &block_[at + width_], candidate.data[j]);
    }
}

// A reference of at most 64 words: a row is one machine word, and all rows are kept.
void UnionLcs::add_short(Span candidate) {
    block_.resize(candidate.size + 1);
    std::uint64_t row = block_[0] = ~std::uint64_t{0}, any = 0;
    for (std::size_t j = 0; j < candidate.size; ++j) {
        const std::uint64_t here = positions_[slots_[candidate.data[j]]];
        any |= here;
        row = (row + (row & here)) | (row & ~here);
        block_[j + 1] = row;
    }
    if (any == 0) return;
    for (std::size_t i = reference_.size, j = candidate.size; i > 0 && j > 0;) {
        const std::uint64_t bit = std::uint64_t{1} << (i - 1);
        if (positions_[slots_[candidate.data[j - 1]]] & bit) {
            is_shared_[i - 1] = true;
            --i;
            --j;
        } else if (block_[j] & bit) {
            --i;
        } else {
            --j;
        }
    }
}

void UnionLcs::add(Span candidate) {
    if (reference_.size == 0 || candidate.size == 0) return;
    if (width_ == 1) return add_short(candidate);
    const auto step = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(candidate.size))));
    const std::size_t blocks = (candidate.size + step - 1) / step;
    kept_.resize(blocks * width_);
    block_.resize((step + 1) * width_);
    row_.assign(width_, ~std::uint64_t{0});
    for (std::size_t j = 0; j < candidate.size; ++j) {
        if (j % step == 0) std::copy(row_.begin(), row_.end(), kept_.begin() + static_cast<std::ptrdiff_t>(j / step * width_));
        if (slots_[candidate.data[j]] != 0) next_row(row_.data(), row_.data(), candidate.data[j]);
    }
    std::size_t i = reference_.size, j = candidate.size;
    for (std::size_t block = blocks; block-- > 0 && i > 0;) {
        const std::size_t begin = block * step;
        std::copy_n(kept_.begin() + static_cast<std::ptrdiff_t>(block * width_), width_, block_.begin());
        fill_rows(candidate, begin, j);
        while (i > 0 && j > begin) {
            const std::uint64_t* row = &block_[(j - begin) * width_];
            if (reference_.data[i - 1] == candidate.data[j - 1]) {
                is_shared_[i - 1] = true;
                --i;
                --j;
            } else if (row[(i - 1) / 64] >> (i - 1) % 64 & 1) {  // the shorter reference shares as much
                --i;
            } else {
                --j;
            }
        }
    }
}

const std::vector<bool>& UnionLcs::finish() {
    for (const std::uint32_t word : reference_) slots_[word] = 0;
    return is_shared_;
}

}  // namespace mmeval
