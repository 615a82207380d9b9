"""Standard errors and intervals from influence values, with or without clusters of samples.

Intervals over clusters use the bias-reduced variance CR2 with the degrees of freedom of Bell and McCaffrey: the usual
variance with C - 1 degrees of freedom makes intervals too narrow if clusters are uneven. An interval ends at the bounds
of its score, and has a width unless nothing can vary.

References:
    Miller (2024). Adding Error Bars to Evals. arXiv:2411.00640, section 2.2.
    Wilson (1927). Probable Inference, the Law of Succession, and Statistical Inference. JASA 22.
    Bell and McCaffrey (2002). Bias Reduction in Standard Errors for Linear Regression with Multi-Stage Samples. Survey
    Methodology 28, 169-181.
    Imbens and Kolesár (2016). Robust Standard Errors in Small Samples. Review of Economics and Statistics 98, 701-712.
"""

from __future__ import annotations

from math import exp, fsum, isinf, sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.figure import Figure
from multimodal_eval.core.score import Estimate

LEVEL = 0.95
ROUNDING = 1e-12  # relative rounding error of floating-point sums
LARGE_CLUSTER = 0.1  # share of the samples above which a cluster is mentioned
_SKEWED = 0.2  # skewness / sqrt(n) above which the t interval of a bounded mean covers too little
_PSEUDO = 0.2  # weight of the pseudo-values at the bounds, in values

Vector = NDArray[np.float64]
Codes = NDArray[np.int64]


Interval = Figure  # with its first five fields: value, stderr, low, high, method


def standard_error(influence: Vector, clusters: Codes | None = None, *, corrected: bool = True) -> float | None:
    """SE = (1/n) sqrt( C/(C-1) * sum over clusters c of (sum over i in c of psi_i)^2 ).

    Without `clusters` each sample is a cluster, and for a mean this is the usual s / sqrt(n).
    `clusters` are integer codes. None if there is only one cluster. `corrected=False` omits C/(C-1).
    """
    sums = cluster_sums(influence, clusters)
    count = len(sums)
    if count < 2:
        return None
    return sqrt(fsum(sums * sums) * (count / (count - 1) if corrected else 1.0)) / len(influence)


def cluster_sums(values: Vector, clusters: Codes | None) -> Vector:
    """The sum of the values in each non-empty cluster; the values themselves without clusters."""
    if clusters is None:
        return values
    sums: Vector = np.bincount(clusters, weights=values)[np.bincount(clusters) > 0].astype(np.float64)
    return sums


class ClusterError(msgspec.Struct, frozen=True):
    """The standard error of an interval over clusters, and its degrees of freedom."""

    stderr: float
    freedom: float


def cluster_error(influence: Vector, clusters: Codes | None, *, corrected: bool = True) -> ClusterError | None:
    """CR2 and the degrees of freedom of Bell and McCaffrey, at the estimated correlation within clusters.

    With n_c of n samples in cluster c, CR2 is the square root of sum_c (sum_{i in c} psi_i)^2 / (1 - n_c / n) / n^2,
    that of `standard_error` if all n_c are equal. The degrees of freedom are 2 E(V)^2 / Var(V) for this variance V if
    samples of a cluster have the correlation rho, as Imbens and Kolesár do, C - 1 for equal clusters. None if there is
    only one cluster; `corrected=False` omits the division by 1 - n_c / n, as for a macro F1.
    """
    if clusters is None:
        error = standard_error(influence, None, corrected=corrected)
        return None if error is None else ClusterError(error, len(influence) - 1)
    codes = np.unique(clusters, return_inverse=True)[1]
    sizes: Vector = np.bincount(codes).astype(np.float64)
    count, n = len(sizes), len(influence)
    if count < 2:
        return None
    sums: Vector = np.bincount(codes, weights=influence).astype(np.float64)
    shares = sizes / n
    factors = 1 / (1 - shares) if corrected else np.ones(count)
    error = sqrt(fsum(factors * sums * sums)) / n
    rho = _correlation(influence, sums, codes, sizes)
    return ClusterError(error, min(float(count - 1), _bell_mccaffrey(1 / (1 - shares), sizes, shares, rho)))


def _correlation(influence: Vector, sums: Vector, codes: Codes, sizes: Vector) -> float:
    """The correlation within clusters by the analysis of variance, at least 0."""
    count, n = len(sizes), len(influence)
    means, centre = sums / sizes, fsum(influence) / n
    between = fsum(sizes * (means - centre) ** 2) / (count - 1)
    if n == count:
        return 0.0
    within = float(((influence - means[codes]) ** 2).sum()) / (n - count)
    typical = (n - fsum(sizes * sizes) / n) / (count - 1)
    shared = max(0.0, (between - within) / typical)
    return shared / (shared + within) if shared + within > 0 else 0.0


def _bell_mccaffrey(factors: Vector, sizes: Vector, shares: Vector, rho: float) -> float:
    """tr(G)^2 / tr(G^2) for the covariance G of the clusters' residual sums, scaled by the factors of the variance.

    A cluster's sum has the variance v = n_c (1 - rho) + n_c^2 rho, and its residual sum is it minus n_c times the mean,
    so that Omega = diag(v) - w v' - v w' + (sum v) w w' with the shares w = n_c / n. The traces are sums over clusters.
    """
    variances = sizes * (1 - rho) + sizes * sizes * rho
    total = fsum(variances)
    off = -2 * shares * variances + total * shares * shares  # the diagonal of all but diag(v)
    trace = fsum(factors * (variances + off))
    ww, vv, wv = (fsum(factors * x) for x in (shares * shares, variances * variances, shares * variances))
    square = 2 * ww * vv + (total * ww) ** 2 + 2 * wv * wv - 4 * total * ww * wv
    square += fsum(factors * factors * (variances * variances + 2 * variances * off))
    return trace * trace / square


def interval(
    estimate: Estimate, clusters: Codes | None = None, *, values: Vector | None = None, level: float = LEVEL
) -> Interval:
    """Wilson's interval for the mean of values that are all 0 or 1, the bootstrap for strata, else the t interval.

    `values` are the values of the rows if the estimate is their mean. If they are skewed and bounded, the interval has
    Wilson's form. If nothing varies, the variance says nothing: see `interval_of_equal_values`.
    """
    if estimate.strata is not None:
        from multimodal_eval.stats.stratified import stratified_interval

        return stratified_interval(estimate, clusters, level)
    if values is not None and estimate.is_mean and len(values) > 0 and bool(np.isin(values, (0.0, 1.0)).all()):
        return wilson_interval(estimate, clusters, level)
    return t_interval(estimate, clusters, level, is_mean=values is not None and estimate.is_mean)


def interval_of_equal_values(estimate: Estimate, clusters: Codes | None = None, level: float = LEVEL) -> Interval:
    """The interval of a mean within bounds a and b if all n values equal c, so that the t interval has no width.

    By Wilson's interval for 0 of n, at most the share u = z^2 / (n + z^2) of all samples has another value. Their
    values are between a and b, so that the mean is between c - u (c - a) and c + u (b - c). For c = a and c = b, this
    is Wilson's interval. With clusters, n is their number, and z the t quantile. Without bounds there is no interval.
    """
    count = number_of_units(estimate.influence, clusters)
    if count < 2:
        return Interval(estimate.value, None, None, None, f"no interval: {_units(count, clusters)}")
    z = quantile_of_units(count, clusters, level)
    ends = ends_of_equal_values(estimate.value, estimate.bounds, count, z)
    if ends is None:
        reason = f"no interval: {_units(count, clusters)} that do not vary"
        return Interval(estimate.value, 0.0, None, None, reason)
    method = f"{level:.0%} Wilson interval of the share of other values, all values equal, {_units(count, clusters)}"
    return Interval(estimate.value, 0.0, *within(*ends, estimate), method)


def quantile_of_units(count: int, clusters: Codes | None, level: float = LEVEL) -> float:
    """The two-sided quantile of the normal distribution for samples, of t for so many clusters."""
    from multimodal_eval.stats.special import ndtri, stdtrit

    share = (1 + level) / 2
    return float(ndtri(share) if clusters is None else stdtrit(count - 1, share))


def ends_of_equal_values(
    value: float, bounds: tuple[float | None, float | None], count: int, z: float
) -> tuple[float, float] | None:
    """The ends for `count` equal values within the bounds, as `interval_of_equal_values` says; None without bounds."""
    low, high = bounds
    if low is None or high is None:
        return None
    other = 1.0 if isinf(z) else z * z / (count + z * z)
    return value - other * (value - low), value + other * (high - value)


def t_interval(
    estimate: Estimate, clusters: Codes | None = None, level: float = LEVEL, *, is_mean: bool = False
) -> Interval:
    """estimate ± t * SE, which ends at the bounds of the estimate; over clusters as in `cluster_error`.

    If errors multiply, the interval is computed for the logarithm, whose standard error is SE / estimate:
    estimate * exp(± t * SE / estimate). It stays above 0. An estimate with `margins` has their distances to both ends,
    stretched by the clusters. The mean of bounded, skewed values has Wilson's form: see `_near_bound`.
    """
    from multimodal_eval.stats.special import stdtrit

    error = standard_error(estimate.influence, clusters, corrected=estimate.corrected)
    count = number_of_units(estimate.influence, clusters)
    over = cluster_error(estimate.influence, clusters, corrected=estimate.corrected)
    if error is None or over is None:
        return Interval(estimate.value, None, None, None, f"no interval: {_units(count, clusters)}")
    if estimate.unreliable is not None:
        return Interval(estimate.value, error, None, None, f"no interval: {estimate.unreliable}")
    t = float(stdtrit(over.freedom, (1 + level) / 2))
    units = _units(count, clusters)
    if estimate.margins is not None:
        return _between_margins(estimate, clusters, over, t, f"{level:.0%} interval from those of the classes, {units}")
    if over.stderr <= ROUNDING * max(1.0, abs(estimate.value)):
        return interval_of_equal_values(estimate, clusters, level)
    if is_mean and None not in estimate.bounds and _is_skewed(cluster_sums(estimate.influence, clusters)):
        return _near_bound(estimate, error, over.stderr, t, count, f"{level:.0%} Wilson interval of a mean, {units}")
    half = t * over.stderr
    method = f"{level:.0%} t interval, {units}"
    if estimate.multiplies and estimate.value > 0:
        method = method.replace("t interval", "t interval of the logarithm")
        factor = exp(min(half / estimate.value, 700))  # a larger exponent overflows
        ends = within(estimate.value / factor, estimate.value * factor, estimate)
        return Interval(estimate.value, error, *ends, method)
    return Interval(estimate.value, error, *within(estimate.value - half, estimate.value + half, estimate), method)


def within(low: float, high: float, estimate: Estimate) -> tuple[float, float]:
    """The ends, or the bounds of the estimate if they are nearer."""
    least, most = estimate.bounds
    return low if least is None else max(least, low), high if most is None else min(most, high)


def _is_skewed(sums: Vector) -> bool:
    deviations = sums - sums.mean()
    spread = float((deviations**2).mean())
    return spread > 0 and abs(float((deviations**3).mean())) > _SKEWED * spread**1.5 * sqrt(len(sums))


def _near_bound(estimate: Estimate, stderr: float, error: float, t: float, count: int, method: str) -> Interval:
    """Wilson's interval for a mean p of bounded values (from 0 to 1 here), with the effective number p(1 - p) / SE^2.

    The variance is that of the values and two pseudo-values at the bounds, with a tenth of the weight of a value each:
    a few skewed values do not show how far others are away.
    """
    low, high = estimate.bounds
    assert low is not None
    assert high is not None
    width = high - low
    p = min(1.0, max(0.0, (estimate.value - low) / width))
    variance = (error / width) ** 2 + _PSEUDO / 2 * (p * p + (1 - p) ** 2) / count**2
    least, most = wilson_bounds(p, max(p * (1 - p), ROUNDING) / variance, t)
    return Interval(estimate.value, stderr, low + width * least, low + width * most, method)


def _between_margins(estimate: Estimate, clusters: Codes | None, over: ClusterError, t: float, method: str) -> Interval:
    assert estimate.margins is not None
    independent = standard_error(estimate.influence, None, corrected=estimate.corrected) or 0.0
    stretched = t * (max(1.0, over.stderr / independent) if clusters is not None and independent > ROUNDING else 1.0)
    below, above = (margin * stretched for margin in estimate.margins)
    error = standard_error(estimate.influence, clusters, corrected=estimate.corrected)
    return Interval(estimate.value, error, *within(estimate.value - below, estimate.value + above, estimate), method)


def wilson_interval(
    estimate: Estimate, clusters: Codes | None = None, level: float = LEVEL, *, is_limited: bool = True
) -> Interval:
    """Wilson's score interval for a share p of n:

        ( p + z^2/2n ± z sqrt( p(1-p)/n + z^2/4n^2 ) ) / ( 1 + z^2/n )

    With clusters, n is the effective number of samples p(1-p) / SE^2, at most the number of samples (the number of
    clusters if all have the same share), and z is the t quantile of `cluster_error`. With
    `is_limited=False`, n may be greater: for samples of a cluster that balance each other.
    """
    from multimodal_eval.stats.special import ndtri, stdtrit

    count = number_of_units(estimate.influence, clusters)
    error = standard_error(estimate.influence, clusters)
    over = cluster_error(estimate.influence, clusters)
    if error is None or over is None:
        return Interval(estimate.value, None, None, None, f"no interval: {_units(count, clusters)}")
    p = estimate.value
    if clusters is None:
        z, n = float(ndtri((1 + level) / 2)), float(count)
    else:
        z = float(stdtrit(over.freedom, (1 + level) / 2))
        n = p * (1 - p) / over.stderr**2 if over.stderr > ROUNDING else float(count)
        n = min(n, len(estimate.influence)) if is_limited else n
    low, high = wilson_bounds(p, n, z)
    return Interval(p, error, low, high, f"{level:.0%} Wilson interval, {_units(count, clusters)}")


def wilson_bounds(p: float, n: float, z: float) -> tuple[float, float]:
    """The bounds of Wilson's interval for a share p of n, which need not be a whole number."""
    middle, width = p + z * z / (2 * n), z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (middle - width) / (1 + z * z / n), (middle + width) / (1 + z * z / n)
    return max(0.0, low), min(1.0, high)


def number_of_units(influence: Vector, clusters: Codes | None) -> int:
    """The number of clusters, or of samples without clusters."""
    return len(influence) if clusters is None else int((np.bincount(clusters) > 0).sum())


def _units(count: int, clusters: Codes | None) -> str:
    """The units in words. A very large cluster is mentioned, because the coverage of the interval is then too low."""
    units = f"{count} {'sample' if clusters is None else 'cluster'}{'' if count == 1 else 's'}"
    if clusters is None or count < 2:
        return units
    largest = float(np.bincount(clusters).max()) / len(clusters)
    return f"{units}, one of them {largest:.0%} of the samples" if largest > max(LARGE_CLUSTER, 2 / count) else units
