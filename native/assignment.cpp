// Shortest augmenting paths. Crouse (2016). On Implementing 2D Rectangular Assignment Algorithms. IEEE Transactions on
// Aerospace and Electronic Systems 52(4), 1679-1696. Ties are broken as in SciPy 1.17 (NOTICE has its licence).
#include "assignment.h"

#include <algorithm>
#include <limits>

namespace mmeval {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// Has at most as many rows as columns.
class Assignment {
  public:
    Assignment(std::vector<double> costs, std::size_t rows, std::size_t columns)
        : costs_(std::move(costs)), rows_(rows), columns_(columns), row_price_(rows), column_price_(columns),
          distance_(columns), from_(columns), column_of_(rows, kNone), row_of_(columns, kNone), row_seen_(rows),
          column_seen_(columns), open_(columns) {}

    std::vector<std::size_t> column_of_each_row() {
        for (std::size_t row = 0; row < rows_; ++row) assign(row);
        return column_of_;
    }

  private:
    void assign(std::size_t row) {
        double length = 0;
        const std::size_t end = shortest_path(row, length);
        row_price_[row] += length;
        for (std::size_t i = 0; i < rows_; ++i)
            if (row_seen_[i] && i != row) row_price_[i] += length - distance_[column_of_[i]];
        for (std::size_t j = 0; j < columns_; ++j)
            if (column_seen_[j]) column_price_[j] -= length - distance_[j];
        for (std::size_t column = end;;) {  // every row on the path takes the column from which it was left
            const std::size_t i = from_[column];
            row_of_[column] = i;
            std::swap(column_of_[i], column);
            if (i == row) break;
        }
    }

    // The shortest path from a row to a free column. Of equal columns, a free one is preferred.
    std::size_t shortest_path(std::size_t row, double& length) {
        std::fill(row_seen_.begin(), row_seen_.end(), 0);
        std::fill(column_seen_.begin(), column_seen_.end(), 0);
        std::fill(distance_.begin(), distance_.end(), std::numeric_limits<double>::infinity());
        for (std::size_t i = 0; i < columns_; ++i) open_[i] = columns_ - i - 1;  // equal costs give the diagonal
        for (std::size_t left = columns_;;) {
            row_seen_[row] = 1;
            std::size_t best = 0;
            double lowest = std::numeric_limits<double>::infinity();
            for (std::size_t i = 0; i < left; ++i) {
                const std::size_t column = open_[i];
                const double there = length + costs_[row * columns_ + column] - row_price_[row] - column_price_[column];
                if (there < distance_[column]) {
                    from_[column] = row;
                    distance_[column] = there;
                }
                if (distance_[column] < lowest || (distance_[column] == lowest && row_of_[column] == kNone)) {
                    lowest = distance_[column];
                    best = i;
                }
            }
            length = lowest;
            const std::size_t column = open_[best];
            column_seen_[column] = 1;
            if (row_of_[column] == kNone) return column;
            row = row_of_[column];
            open_[best] = open_[--left];
        }
    }

    std::vector<double> costs_;
    std::size_t rows_, columns_;
    std::vector<double> row_price_, column_price_, distance_;
    std::vector<std::size_t> from_, column_of_, row_of_;
    std::vector<char> row_seen_, column_seen_;
    std::vector<std::size_t> open_;
};

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> best_assignment(const std::vector<double>& preferences,
                                                                 std::size_t rows, std::size_t columns) {
    const bool is_tall = columns < rows;
    std::vector<double> costs(preferences.size());
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < columns; ++column)
            costs[is_tall ? column * rows + row : row * columns + column] = -preferences[row * columns + column];
    const std::vector<std::size_t> chosen =
        Assignment(std::move(costs), std::min(rows, columns), std::max(rows, columns)).column_of_each_row();
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0; i < chosen.size(); ++i)
        pairs.push_back(is_tall ? std::make_pair(chosen[i], i) : std::make_pair(i, chosen[i]));
    std::sort(pairs.begin(), pairs.end());
    return pairs;
}

}  // namespace mmeval
