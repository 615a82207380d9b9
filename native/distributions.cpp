#include "distributions.h"

#include <cmath>
#include <cstddef>
#include <limits>

namespace mmeval {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kPi = 3.14159265358979323846;
constexpr double kRootHalf = 0.70710678118654752440;
constexpr int kMostSteps = 100;

template <std::size_t N>
double polynomial(const double (&coefficients)[N], double x) {
    double value = 0;
    for (std::size_t i = N; i-- > 0;) value = value * x + coefficients[i];
    return value;
}

// Gamma(a + 1/2) / Gamma(a) = sqrt(w) S(1 / w^2) for w = a - 1/4, Stirling's series. Small arguments are moved up.
constexpr double kFromSeries = 15;  // with seven terms the error is below 1e-17

double stirling_series(double w) {
    static constexpr double kSeries[] = {1,
                                         1.0 / 64,
                                         -19.0 / 8192,
                                         631.0 / 524288,
                                         -174317.0 / 134217728,
                                         20491783.0 / 8589934592,
                                         -7334801895.0 / 1099511627776};
    return polynomial(kSeries, 1 / (w * w));
}

double gamma_ratio(double a) {
    double factor = 1;
    for (; a < kFromSeries; a += 1) factor *= a / (a + 0.5);
    return factor * std::sqrt(a - 0.25) * stirling_series(a - 0.25);
}

// Student's t for values t > 0. Probabilities are those of the incomplete beta function I_x(a, 1/2) with
// a = freedom / 2, x = freedom / (freedom + t^2) and y = 1 - x. DiDonato and Morris (1992). Algorithm 708: Significant
// Digit Computation of the Incomplete Beta Function Ratios. ACM TOMS 18(3), 360-373.
class Student {
  public:
    explicit Student(double freedom) : freedom_(freedom), a_(freedom / 2), ratio_(gamma_ratio(freedom / 2)) {}

    double density(double t) const {
        return ratio_ / std::sqrt(kPi * freedom_) * std::exp(-(a_ + 0.5) * log_base(t));
    }

    // P(0 < T < t) and P(T > t)
    double inside(double t) const { return is_central(t) ? series(t) : 0.5 - far_tail(t); }
    double outside(double t) const { return is_central(t) ? 0.5 - series(t) : far_tail(t); }

    // The t > 0 with P(0 < T < t) = share, for a share up to 1/4: Newton's method on a concave function, from below.
    double quantile_of_inside(double share) const {
        double t = share / density(0);
        for (int step = 0; step < kMostSteps; ++step) {
            const double change = (share - inside(t)) / density(t);
            t += change;
            if (!(std::fabs(change) > kLastStep * t)) break;  // the next one is below the rounding
        }
        return t;
    }

    // The t > 0 with P(T > t) = share, for a share below 1/4: Newton's method on the logarithms of both. One is a concave
    // function of the other, so that it converges from above after the first step.
    double quantile_of_outside(double share) const {
        const double z = -normal_quantile(share);
        double t = z * (1 + (z * z + 1) / (4 * freedom_));  // the first terms of the expansion in 1 / freedom
        for (int step = 0; step < kMostSteps; ++step) {
            const double there = outside(t);
            const double slope = ratio_ / std::sqrt(kPi * freedom_) * std::exp(std::log(t) - (a_ + 0.5) * log_base(t));
            const double change = std::log(there / share) * there / slope;
            t *= std::exp(change);
            if (!(std::fabs(change) > kLastStep)) break;
        }
        return t;
    }

  private:
    static constexpr double kLastStep = 1e-9;  // convergence is quadratic

    // -log(x) = log(1 + t^2 / freedom), also if the square overflows
    double log_base(double t) const {
        const double scaled = t / std::sqrt(freedom_);
        return scaled > 1e8 ? 2 * std::log(scaled) : std::log1p(scaled * scaled);
    }

    double y(double t) const {
        const double scaled = t / std::sqrt(freedom_);
        return scaled > 1e8 ? 1.0 : scaled * scaled / (1 + scaled * scaled);
    }

    bool is_central(double t) const { return y(t) * (a_ + 2.5) < 1.5; }

    double far_tail(double t) const {
        return a_ >= kFromSeries && log_base(t) < 0.5 ? expansion(t) : fraction(t);
    }

    // P(0 < T < t) = t density(t) sum_k prod_{j<=k} y (a + j - 1/2) / (j + 1/2)
    double series(double t) const {
        const double share = y(t);
        double term = 1, sum = 1;
        for (int k = 1; term > kEpsilon / 4 * sum; ++k) {
            term *= share * (a_ + k - 0.5) / (k + 0.5);
            sum += term;
        }
        return t * density(t) * sum;
    }

    // P(T > t) by the continued fraction of I_x(a, 1/2)
    double fraction(double t) const {
        const double y = this->y(t), x = 1 / (1 + t / freedom_ * t);
        const double c = (a_ + 0.5) * y + 0.5, c0 = 0.5 / a_, c1 = 1 + 1 / a_;
        double before = 0, below_before = 1, above = 1, below = c / c1, value = c1 / c, p = 1, s = a_ + 1;
        for (int n = 1; n < 10000; ++n) {
            const double t1 = n / a_, w = n * (0.5 - n) * x;
            double e = a_ / s;
            const double alpha = p * (p + c0) * e * e * (w * x);
            e = (1 + t1) / (c1 + t1 + t1);
            const double beta = n + w / s + e * (c + n * (1 + y));
            p = 1 + t1;
            s += 2;
            const double next = alpha * before + beta * above, below_next = alpha * below_before + beta * below;
            const double last = value;
            value = next / below_next;
            before = above / below_next;
            below_before = below / below_next;
            above = value;
            below = 1;
            if (std::fabs(value - last) <= kEpsilon * value) break;
        }
        return ratio_ / std::sqrt(kPi) * std::exp(-a_ * log_base(t)) * std::sqrt(y) / 2 * value;
    }

    // P(T > t) for large a: S(1 / w^2) / 2 (erfc(sqrt z) + sqrt(z / pi) exp(-z) sum_n d_n J_n), z = -w log x
    double expansion(double t) const {
        constexpr int kTerms = 20;
        const double w = a_ - 0.25, log_x = -log_base(t), z = -w * log_x;
        const double leading = std::erfc(std::sqrt(z)), scale = std::sqrt(z / kPi) * std::exp(-z);
        if (!(scale > 0)) return leading;  // 0, or almost
        const double v = 0.25 / (w * w), step = log_x * log_x / 4;
        double j = leading / scale, power = 1, sum = 0, c[kTerms + 1], d[kTerms + 1], factor = 1;
        for (int n = 1; n <= kTerms; ++n) {
            const double order = 0.5 + 2 * (n - 1);
            j = (order * (order + 1) * j + (z + order + 1) * power) * v;
            power *= step;
            factor /= 2.0 * n * (2.0 * n + 1);
            c[n] = factor;
            double convolution = 0;
            for (int i = 1; i < n; ++i) convolution += (0.5 * i - n) * c[i] * d[n - i];
            d[n] = -0.5 * factor + convolution / n;
            sum += d[n] * j;
            if (std::fabs(d[n] * j) <= kEpsilon / 4 * (leading / scale)) break;
        }
        return stirling_series(w) / 2 * (leading + scale * sum);
    }

    double freedom_, a_, ratio_;
};

}  // namespace

double normal_cdf(double x) { return std::erfc(-x * kRootHalf) / 2; }

// Wichura (1988). Algorithm AS 241: The Percentage Points of the Normal Distribution. Applied Statistics 37, 477-484.
double normal_quantile(double p) {
    static constexpr double kMiddle[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                         1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                         3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static constexpr double kMiddleBelow[] = {1.0,
                                              4.2313330701600911252e+1,
                                              6.8718700749205790830e+2,
                                              5.3941960214247511077e+3,
                                              2.1213794301586595867e+4,
                                              3.9307895800092710610e+4,
                                              2.8729085735721942674e+4,
                                              5.2264952788528545610e+3};
    static constexpr double kTail[] = {1.42343711074968357734e0,  4.63033784615654529590e0,  5.76949722146069140550e0,
                                       3.64784832476320460504e0,  1.27045825245236838258e0,  2.41780725177450611770e-1,
                                       2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static constexpr double kTailBelow[] = {1.0,
                                            2.05319162663775882187e0,
                                            1.67638483018380384940e0,
                                            6.89767334985100004550e-1,
                                            1.48103976427480074590e-1,
                                            1.51986665636164571966e-2,
                                            5.47593808499534494600e-4,
                                            1.05075007164441684324e-9};
    static constexpr double kFarTail[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                          2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                          2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr double kFarTailBelow[] = {1.0,
                                               5.99832206555887937690e-1,
                                               1.36929880922735805310e-1,
                                               1.48753612908506148525e-2,
                                               7.86869131145613259100e-4,
                                               1.84631831751005468180e-5,
                                               1.42151175831644588870e-7,
                                               2.04426310338993978564e-15};
    if (!(p >= 0 && p <= 1)) return kNaN;
    if (p == 0) return -kInfinity;
    if (p == 1) return kInfinity;
    const double distance = p - 0.5;
    if (std::fabs(distance) <= 0.425) {
        const double r = 0.180625 - distance * distance;
        return distance * polynomial(kMiddle, r) / polynomial(kMiddleBelow, r);
    }
    const double r = std::sqrt(-std::log(distance < 0 ? p : 1 - p));
    const double value = r <= 5 ? polynomial(kTail, r - 1.6) / polynomial(kTailBelow, r - 1.6)
                                : polynomial(kFarTail, r - 5) / polynomial(kFarTailBelow, r - 5);
    return distance < 0 ? -value : value;
}

double t_cdf(double freedom, double t) {
    if (!(freedom > 0) || std::isnan(t)) return kNaN;
    if (t == 0) return 0.5;
    if (std::isinf(t)) return t < 0 ? 0.0 : 1.0;
    if (std::isinf(freedom)) return normal_cdf(t);
    const Student student(freedom);
    return t < 0 ? student.outside(-t) : 0.5 + student.inside(t);
}

double t_quantile(double freedom, double p) {
    if (!(freedom > 0) || !(p >= 0 && p <= 1)) return kNaN;
    if (p == 0.5) return 0.0;
    if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
    if (std::isinf(freedom)) return normal_quantile(p);
    const Student student(freedom);
    const double outside = p < 0.5 ? p : 1 - p;
    const double t =
        outside < 0.25 ? student.quantile_of_outside(outside) : student.quantile_of_inside(0.5 - outside);
    return p < 0.5 ? -t : t;
}

double expit(double x) { return 1 / (1 + std::exp(-x)); }

double logit(double p) {
    if (p < 0.3 || p > 0.65) return std::log(p / (1 - p));
    const double twice = 2 * (p - 0.5);  // near 0, where the quotient is near 1
    return std::log1p(twice) - std::log1p(-twice);
}

}  // namespace mmeval
