#include "shifted_edits.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace mmeval {
namespace {

constexpr std::size_t kLongestShift = 10, kFarthestShift = 50, kMostTried = 1000;
constexpr int kBeam = 25;
constexpr std::int32_t kInfinite = 1 << 29;
constexpr char kKeep = ' ', kSubstitute = 's', kInsert = 'i', kDelete = 'd', kUnknown = 'x';

// With at most this distance plus the difference in length, every optimal path stays inside the beam: the path leaves
// the straight line between the corners by at most half of the sum, and rounding adds 1.
constexpr std::int64_t kInsideBeam = 2 * (kBeam - 2);

std::size_t difference(std::size_t a, std::size_t b) { return a > b ? a - b : b - a; }

}  // namespace

std::size_t ShiftedEdits::operator()(Span candidate, Span reference) {
    if (reference.size == 0 || candidate.size == 0) return candidate.size + reference.size;
    if (candidate.size >= static_cast<std::size_t>(kInfinite) || reference.size >= static_cast<std::size_t>(kInfinite))
        throw std::length_error("a text of more than 500 million words cannot be scored");
    number_words(candidate, reference);
    find_band();
    tried_ = 0;
    for (std::size_t shifts = 0;; ++shifts) {
        distance_ = align();
        Best best{0, {}};
        if (!find_best(best) || tried_ >= kMostTried || best.gain <= 0)
            return shifts + static_cast<std::size_t>(distance_);
        apply(best.shift);
    }
}

void ShiftedEdits::number_words(Span candidate, Span reference) {
    numbers_.start(reference.size);
    reference_.clear();
    for (const std::uint32_t word : reference) reference_.push_back(numbers_.add(word));
    candidate_.clear();
    for (const std::uint32_t word : candidate) candidate_.push_back(numbers_.find(word));
    place_begins_.assign(numbers_.size() + 2, 0);
    for (const std::uint32_t number : reference_) ++place_begins_[number + 2];
    for (std::size_t i = 1; i < place_begins_.size(); ++i) place_begins_[i] += place_begins_[i - 1];
    places_.resize(reference_.size());
    for (std::size_t i = 0; i < reference_.size(); ++i)
        places_[place_begins_[reference_[i] + 1]++] = static_cast<std::uint32_t>(i);
    bits_.clear();
    if (reference_.size() > 64) return;
    bits_.assign(numbers_.size(), 0);
    for (std::size_t i = 0; i < reference_.size(); ++i) bits_[reference_[i]] |= std::uint64_t{1} << i;
}

// The cells of each row that the beam covers. Limits are computed with the same floating-point operations as in sacrebleu.
void ShiftedEdits::find_band() {
    const std::size_t rows = candidate_.size(), columns = reference_.size();
    const double ratio = static_cast<double>(columns) / static_cast<double>(rows);
    const double beam = kBeam < ratio / 2 ? std::ceil(ratio / 2 + kBeam) : kBeam;
    const double last = static_cast<double>(columns + 1);
    row_begin_.assign(1, 0);
    row_end_.assign(1, static_cast<std::uint32_t>(columns + 1));
    row_offset_.assign(1, 0);
    for (std::size_t row = 1; row <= rows; ++row) {
        const double diagonal = std::floor(static_cast<double>(row) * ratio);
        row_offset_.push_back(row_offset_.back() + row_end_.back() - row_begin_.back());
        row_begin_.push_back(static_cast<std::uint32_t>(std::max(0.0, diagonal - beam)));
        row_end_.push_back(static_cast<std::uint32_t>(row == rows ? last : std::min(last, diagonal + beam)));
    }
}

// Tries moves of words that are also in the reference. False if there is none.
bool ShiftedEdits::find_best(Best& best) {
    best.gain = -kInfinite;
    const std::size_t words = candidate_.size();
    for (std::size_t start = 0; start < words; ++start) {
        if (candidate_[start] == kMissing) continue;
        for (std::uint32_t i = place_begins_[candidate_[start]]; i < place_begins_[candidate_[start] + 1]; ++i) {
            const std::size_t target = places_[i];
            if (difference(start, target) > kFarthestShift) continue;
            for (std::size_t length = 1;; ++length) {
                try_pair(start, target, length, best);
                if (tried_ >= kMostTried) return true;
                if (length == kLongestShift || start + length == words || target + length == reference_.size()) break;
                if (candidate_[start + length] != reference_[target + length]) break;
            }
        }
    }
    return best.gain != -kInfinite;
}

// `target` is the place of the words in the reference. They move if some of them are wrong at their place, and the
// reference has no match at the other one yet.
void ShiftedEdits::try_pair(std::size_t start, std::size_t target, std::size_t length, Best& best) {
    if (candidate_errors_[start + length] == candidate_errors_[start]) return;
    if (reference_errors_[target + length] == reference_errors_[target]) return;
    const std::int64_t there = aligned_[target], begin = static_cast<std::int64_t>(start);
    if (there >= begin && there < begin + static_cast<std::int64_t>(length)) return;
    std::int64_t last = -1;
    for (std::size_t i = 0; i <= length; ++i) {
        const std::int64_t place = target + i == 0 ? 0 : aligned_[target + i - 1] + 1;
        if (place == last) continue;
        last = place;
        const Shift shift{start, length, static_cast<std::size_t>(place)};
        const auto [first, end] = apply(shift);
        const std::int64_t gain = distance_ - shifted_distance(first, end);
        undo(shift);
        ++tried_;
        const auto is_better = [&] {
            if (gain != best.gain) return gain > best.gain;
            if (length != best.shift.length) return length > best.shift.length;
            if (start != best.shift.start) return start < best.shift.start;
            return shift.target < best.shift.target;
        };
        if (is_better()) best = {gain, shift};
    }
}

// Moves the words, and returns the range that changed. A target inside the words moves them to the right.
std::pair<std::size_t, std::size_t> ShiftedEdits::apply(const Shift& shift) {
    const auto at = [&](std::size_t i) { return candidate_.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto [start, length, target] = shift;
    if (target < start) {
        std::rotate(at(target), at(start), at(start + length));
        return {target, start + length};
    }
    const std::size_t end = target > start + length ? target : std::min(candidate_.size(), target + length);
    std::rotate(at(start), at(start + length), at(end));
    return {start, end};
}

void ShiftedEdits::undo(const Shift& shift) {
    const auto at = [&](std::size_t i) { return candidate_.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto [start, length, target] = shift;
    if (target < start) {
        std::rotate(at(target), at(target + length), at(start + length));
        return;
    }
    const std::size_t end = target > start + length ? target : std::min(candidate_.size(), target + length);
    std::rotate(at(start), at(end - length), at(end));
}

std::int64_t ShiftedEdits::align() {
    uses_columns_ = !bits_.empty();
    std::int64_t distance = uses_columns_ ? fill_columns() : 0;
    if (uses_columns_) {
        const auto lengths = static_cast<std::int64_t>(difference(candidate_.size(), reference_.size()));
        uses_columns_ = distance + lengths <= kInsideBeam;
    }
    if (!uses_columns_) distance = fill_rows();
    trace();
    return distance;
}

ShiftedEdits::Column ShiftedEdits::next_column(const Column& before, std::uint32_t word) const {
    const std::uint64_t equal = word == kMissing ? 0 : bits_[word];
    const std::uint64_t hits = equal | before.down;
    const std::uint64_t diagonal = (((hits & before.up) + before.up) ^ before.up) | hits;
    const std::uint64_t right = before.down | ~(before.up | diagonal), left = before.up & diagonal;
    const std::uint64_t shifted = right << 1 | 1;
    const std::size_t last = reference_.size() - 1;
    const std::int64_t distance = before.distance + static_cast<std::int64_t>(right >> last & 1) -
                                  static_cast<std::int64_t>(left >> last & 1);
    return {left << 1 | ~(shifted | diagonal), shifted & diagonal, diagonal, right, distance};
}

std::int64_t ShiftedEdits::fill_columns() {
    columns_.resize(candidate_.size() + 1);
    columns_[0] = {~std::uint64_t{0}, 0, 0, 0, static_cast<std::int64_t>(reference_.size())};
    for (std::size_t i = 0; i < candidate_.size(); ++i) columns_[i + 1] = next_column(columns_[i], candidate_[i]);
    return columns_.back().distance;
}

// One row of the table inside the beam. Of equal costs, keeping and substituting come first, then deleting, as in sacrebleu.
void ShiftedEdits::fill_row(std::size_t row, const std::int32_t* before, std::int32_t* out, char* operations) const {
    const std::uint32_t word = candidate_[row - 1];
    const std::size_t begin = row_begin_[row], end = row_end_[row];
    const std::size_t before_begin = row_begin_[row - 1], before_end = row_end_[row - 1];
    std::int32_t left = kInfinite;
    for (std::size_t j = begin; j < end; ++j) {
        std::int32_t cost = kInfinite;
        char operation = kUnknown;
        if (j > before_begin && j <= before_end) {
            const bool is_equal = word == reference_[j - 1];
            cost = before[j - 1 - before_begin] + !is_equal;
            operation = is_equal ? kKeep : kSubstitute;
        }
        if (j >= before_begin && j < before_end && cost > before[j - before_begin] + 1) {
            cost = before[j - before_begin] + 1;
            operation = kDelete;
        }
        if (cost > left + 1) {
            cost = left + 1;
            operation = kInsert;
        }
        out[j - begin] = left = cost;
        if (operations != nullptr) operations[j - begin] = operation;
    }
}

std::int64_t ShiftedEdits::fill_rows() {
    const std::size_t rows = candidate_.size(), cells = row_offset_.back() + row_end_.back() - row_begin_.back();
    costs_.resize(cells);
    operations_.resize(cells);
    for (std::size_t j = 0; j <= reference_.size(); ++j) {
        costs_[j] = static_cast<std::int32_t>(j);
        operations_[j] = kInsert;
    }
    for (std::size_t row = 1; row <= rows; ++row)
        fill_row(row, &costs_[row_offset_[row - 1]], &costs_[row_offset_[row]], &operations_[row_offset_[row]]);
    return costs_.back();
}

char ShiftedEdits::operation(std::size_t row, std::size_t column) const {
    if (row == 0) return kInsert;
    if (!uses_columns_) return operations_[row_offset_[row] + column - row_begin_[row]];
    if (column == 0) return kDelete;
    if (candidate_[row - 1] == reference_[column - 1]) return kKeep;
    const Column& here = columns_[row];
    if ((here.is_diagonal >> (column - 1) & 1) == 0) return kSubstitute;
    return here.is_right >> (column - 1) & 1 ? kDelete : kInsert;
}

// Walks back from the end, and notes for every word whether it is wrong, and for every word of the reference its place.
void ShiftedEdits::trace() {
    candidate_errors_.assign(candidate_.size() + 1, 0);
    reference_errors_.assign(reference_.size() + 1, 0);
    aligned_.resize(reference_.size());
    std::size_t i = candidate_.size(), j = reference_.size();
    while (i > 0 || j > 0) {
        const char next = operation(i, j);
        if (next == kUnknown) throw std::logic_error("the edit distance left the beam");
        const bool uses_reference = next != kDelete, uses_candidate = next != kInsert;
        const bool is_wrong = next != kKeep;
        if (uses_reference) aligned_[j - 1] = static_cast<std::int64_t>(i) - 1;
        if (uses_reference) reference_errors_[j--] = is_wrong;
        if (uses_candidate) candidate_errors_[i--] = is_wrong;
    }
    for (std::size_t k = 1; k < candidate_errors_.size(); ++k) candidate_errors_[k] += candidate_errors_[k - 1];
    for (std::size_t k = 1; k < reference_errors_.size(); ++k) reference_errors_[k] += reference_errors_[k - 1];
}

std::int64_t ShiftedEdits::shifted_distance(std::size_t begin, std::size_t end) {
    if (begin == end) return distance_;
    return uses_columns_ ? distance_by_columns(begin, end) : distance_by_rows(begin, end);
}

// Outside the beam the value can be too small only if the shift makes things worse, in which case it is not used.
std::int64_t ShiftedEdits::distance_by_columns(std::size_t begin, std::size_t end) const {
    const std::uint64_t used = reference_.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << reference_.size()) - 1;
    Column column = columns_[begin];
    for (std::size_t i = begin; i < candidate_.size(); ++i) {
        column = next_column(column, candidate_[i]);
        const Column& old = columns_[i + 1];
        if (i + 1 >= end && ((column.up ^ old.up) & used) == 0 && ((column.down ^ old.down) & used) == 0)
            return distance_ + column.distance - old.distance;  // the rest is the same as before
    }
    return column.distance;
}

std::int64_t ShiftedEdits::distance_by_rows(std::size_t begin, std::size_t end) {
    const std::int32_t* before = &costs_[row_offset_[begin]];
    for (std::size_t row = begin + 1; row <= candidate_.size(); ++row) {
        const std::size_t cells = row_end_[row] - row_begin_[row];
        this_row_.resize(std::max(this_row_.size(), cells));
        fill_row(row, before, this_row_.data(), nullptr);
        const std::int32_t* old = &costs_[row_offset_[row]];
        const std::int32_t more = this_row_[0] - old[0];
        if (row >= end && std::equal(old, old + cells, this_row_.begin(),
                                     [&](std::int32_t was, std::int32_t is) { return is - was == more; }))
            return distance_ + more;  // the rest is the same as before, with a constant added
        if (row == candidate_.size()) return this_row_[cells - 1];
        std::swap(this_row_, other_row_);
        before = other_row_.data();
    }
    return distance_;
}

}  // namespace mmeval
