#include "dense_layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#if defined(__GNUC__) && defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mmeval {

namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kBlock = 2 * kLanes;  // outputs that are summed together
constexpr std::size_t kRows = 6;            // rows that share the loaded weights

#if defined(__GNUC__)
#define MMEVAL_INLINE inline __attribute__((always_inline))
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
#else  // MSVC: a loop that it unrolls, with the same order of operations
#define MMEVAL_INLINE __forceinline
struct Lanes {
    float values[kLanes];
    Lanes& operator+=(const Lanes& other) {
        for (std::size_t i = 0; i < kLanes; ++i) values[i] += other.values[i];
        return *this;
    }
};
inline Lanes operator*(float factor, Lanes lanes) {
    for (float& value : lanes.values) value *= factor;
    return lanes;
}
#endif

MMEVAL_INLINE void load(const float* from, Lanes& lanes) { std::memcpy(&lanes, from, sizeof lanes); }

template <std::size_t Rows>
MMEVAL_INLINE void sum_block(const float* input, std::size_t stride, const float* weights, std::size_t padded,
                             std::size_t inputs, std::size_t outputs, float* output, std::size_t output_stride) {
    Lanes sums[Rows][2] = {};
    for (std::size_t k = 0; k < inputs; ++k) {
        Lanes low, high;
        load(weights + k * padded, low);
        load(weights + k * padded + kLanes, high);
        for (std::size_t row = 0; row < Rows; ++row) {
            const float value = input[row * stride + k];
            sums[row][0] += value * low;
            sums[row][1] += value * high;
        }
    }
    for (std::size_t row = 0; row < Rows; ++row)
        std::memcpy(output + row * output_stride, &sums[row], outputs * sizeof(float));
}

struct Product {
    const float* input;
    std::size_t stride, rows;
    const float* weights;
    std::size_t padded, inputs, outputs;
    float* output;
};

MMEVAL_INLINE void multiply_all(const Product& product) {
    for (std::size_t first = 0; first < product.outputs; first += kBlock) {
        const std::size_t width = std::min(kBlock, product.outputs - first);
        std::size_t row = 0;
        for (; row + kRows <= product.rows; row += kRows)
            sum_block<kRows>(product.input + row * product.stride, product.stride, product.weights + first,
                             product.padded, product.inputs, width, product.output + row * product.outputs + first,
                             product.outputs);
        for (; row + 2 <= product.rows; row += 2)
            sum_block<2>(product.input + row * product.stride, product.stride, product.weights + first, product.padded,
                         product.inputs, width, product.output + row * product.outputs + first, product.outputs);
        for (; row < product.rows; ++row)
            sum_block<1>(product.input + row * product.stride, product.stride, product.weights + first, product.padded,
                         product.inputs, width, product.output + row * product.outputs + first, product.outputs);
    }
}

void multiply_anywhere(const Product& product) { multiply_all(product); }

#if defined(__GNUC__) && defined(__x86_64__)
__attribute__((target("avx2"))) void multiply_avx2(const Product& product) { multiply_all(product); }

// Whether the processor has AVX2 and the system keeps its registers. `__builtin_cpu_supports` needs a library of GCC.
bool supports_avx2() {
    unsigned a, b, c, d;
    constexpr unsigned kSaved = 1u << 27 | 1u << 28;  // OSXSAVE and AVX
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSaved) != kSaved) return false;
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6) return false;  // the registers of SSE and of AVX
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & 1u << 5) != 0;
}
#endif

void multiply(const Product& product) {
#if defined(__GNUC__) && defined(__x86_64__)
    static const bool has_avx2 = supports_avx2();
    if (has_avx2) return multiply_avx2(product);
#endif
    multiply_anywhere(product);
}

}  // namespace

Linear::Linear(const float* weights, const float* bias, std::size_t inputs, const std::vector<std::size_t>& order)
    : inputs_(inputs), outputs_(order.size()), padded_((order.size() + kBlock - 1) / kBlock * kBlock),
      weights_(inputs * padded_), bias_(order.size()) {
    for (std::size_t output = 0; output < outputs_; ++output) {
        bias_[output] = bias[order[output]];
        for (std::size_t input = 0; input < inputs; ++input)
            weights_[input * padded_ + output] = weights[order[output] * inputs + input];
    }
}

void Linear::apply_part(const float* input, std::size_t stride, std::size_t rows, std::size_t first, std::size_t count,
                        float* output) const {
    multiply({input, stride, rows, weights_.data() + first * padded_, padded_, count, outputs_, output});
}

void Linear::add_bias(float* output) const {
    for (std::size_t i = 0; i < outputs_; ++i) output[i] += bias_[i];
}

void Linear::apply(const float* input, std::size_t stride, std::size_t rows, float* output) const {
    apply_part(input, stride, rows, 0, inputs_, output);
    for (std::size_t row = 0; row < rows; ++row) add_bias(output + row * outputs_);
}

MaxoutNorm::MaxoutNorm(const float* weights, const float* bias, const float* gain, const float* shift,
                       std::size_t inputs, std::size_t outputs, std::size_t pieces)
    : width_(outputs), pieces_(pieces), gain_(gain, gain + outputs), shift_(shift, shift + outputs) {
    std::vector<std::size_t> order(outputs * pieces);
    for (std::size_t piece = 0; piece < pieces; ++piece)
        for (std::size_t output = 0; output < outputs; ++output) order[piece * outputs + output] = output * pieces + piece;
    linear_ = Linear(weights, bias, inputs, order);
}

void MaxoutNorm::finish(const float* sums, float* output) const {
    for (std::size_t i = 0; i < width_; ++i) {
        float largest = sums[i];
        for (std::size_t piece = 1; piece < pieces_; ++piece) largest = std::max(largest, sums[piece * width_ + i]);
        output[i] = largest;
    }
    double sum = 0;
    for (std::size_t i = 0; i < width_; ++i) sum += output[i];
    const float mean = static_cast<float>(sum / static_cast<double>(width_));
    double squares = 0;
    for (std::size_t i = 0; i < width_; ++i) squares += (output[i] - mean) * (output[i] - mean);
    const float variance = static_cast<float>(squares / static_cast<double>(width_)) + 1e-8f;
    const float scale = 1.0f / std::sqrt(variance);
    for (std::size_t i = 0; i < width_; ++i) output[i] = (output[i] - mean) * scale * gain_[i] + shift_[i];
}

void MaxoutNorm::apply(const float* input, std::size_t stride, std::size_t rows, float* sums, float* output) const {
    linear_.apply(input, stride, rows, sums);
    for (std::size_t row = 0; row < rows; ++row) finish(sums + row * linear_.outputs(), output + row * width_);
}

}  // namespace mmeval
