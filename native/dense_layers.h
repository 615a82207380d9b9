// Small dense layers in single precision: linear, and maxout followed by layer normalisation.
//
// Every output is summed in the order of the inputs, whatever the width of the machine's vectors, so all machines give
// the same digits.
#pragma once

#include <cstddef>
#include <vector>

namespace mmeval {

// output[row] = input[row] * weights + bias. Rows of the input may overlap: a window of neighbouring vectors is a row.
class Linear {
   public:
    Linear() = default;
    // `weights` is outputs x inputs, row by row; `order[i]` is the row of output i.
    Linear(const float* weights, const float* bias, std::size_t inputs, const std::vector<std::size_t>& order);

    std::size_t inputs() const { return inputs_; }
    std::size_t outputs() const { return outputs_; }

    // `stride` is the distance of two rows of the input. Rows of the output are outputs() apart.
    void apply(const float* input, std::size_t stride, std::size_t rows, float* output) const;
    // The same without the bias, for the inputs [first, first + count) alone.
    void apply_part(const float* input, std::size_t stride, std::size_t rows, std::size_t first, std::size_t count,
                    float* output) const;
    void add_bias(float* output) const;

   private:
    std::size_t inputs_ = 0, outputs_ = 0, padded_ = 0;
    std::vector<float> weights_;  // inputs x padded outputs
    std::vector<float> bias_;
};

// The largest of several linear pieces per output, normalised to mean 0 and variance 1, then scaled and shifted.
class MaxoutNorm {
   public:
    MaxoutNorm() = default;
    // `weights` is outputs x pieces x inputs, `bias` outputs x pieces.
    MaxoutNorm(const float* weights, const float* bias, const float* gain, const float* shift, std::size_t inputs,
               std::size_t outputs, std::size_t pieces);

    const Linear& linear() const { return linear_; }
    std::size_t width() const { return width_; }

    // From the sums of all pieces, with bias, to the output.
    void finish(const float* sums, float* output) const;
    // `sums` is room for rows * linear().outputs() numbers.
    void apply(const float* input, std::size_t stride, std::size_t rows, float* sums, float* output) const;

   private:
    std::size_t width_ = 0, pieces_ = 0;
    Linear linear_;  // outputs: piece by piece
    std::vector<float> gain_, shift_;
};

}  // namespace mmeval
