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
# The same for C clusters whose mean is near a bound, nearer than this share of the range: in sqrt(C) clusters of any
# values, and of values that are 0 or 1. The smallest with which simulated intervals cover 93%.
_NEAR, _PSEUDO_CLUSTERS, _PSEUDO_SHARES = 0.25, 0.065, 0.0125

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


def cluster_error(
    influence: Vector, clusters: Codes | None, *, corrected: bool = True, weights: Vector | None = None
) -> ClusterError | None:
    """CR2 and the degrees of freedom of Bell and McCaffrey, at the estimated correlation within clusters.

    With n_c of n samples in cluster c, CR2 is the square root of sum_c (sum_{i in c} psi_i)^2 / (1 - n_c / n) / n^2,
    that of `standard_error` if all n_c are equal. The degrees of freedom are 2 E(V)^2 / Var(V) for this variance V if
    samples of a cluster have the correlation rho, as Imbens and Kolesár do, C - 1 for equal clusters. None if there is
    only one cluster; `corrected=False` omits the division by 1 - n_c / n, as for a macro F1. With `weights`, those of
    an estimate by labels, the degrees of freedom are those of as many labels.
    """
    if weights is not None:
        error, shares = standard_error(influence, clusters, corrected=False), cluster_sums(weights, clusters)
        return None if error is None else ClusterError(error, fsum(shares) ** 2 / fsum(shares * shares) - 1)
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
    means = values if estimate.is_mean and may_be_share(estimate) else None
    if means is not None and len(means) > 0 and bool(np.isin(means, (0.0, 1.0)).all()):
        return wilson_interval(estimate, clusters, level)
    return t_interval(estimate, clusters, level, is_mean=values is not None and estimate.is_mean)


def may_be_share(estimate: Estimate) -> bool:
    """Whether values that are all 0 or 1 make it a share, and are not ends of a scale from 1 to 5 or from 0 to 10."""
    low, high = estimate.bounds
    return low in (None, 0) and high in (None, 1)


def interval_of_equal_values(estimate: Estimate, clusters: Codes | None = None, level: float = LEVEL) -> Interval:
    """The interval of a mean within bounds a and b if all n values equal c, so that the t interval has no width.

    By Wilson's interval for 0 of n, at most the share u = z^2 / (n + z^2) of all samples has another value. Their
    values are between a and b, so that the mean is between c - u (c - a) and c + u (b - c). For c = a and c = b, this
    is Wilson's interval. With clusters, n is their number, and z the t quantile. Without bounds there is no interval.
    """
    counted = np.ones(len(estimate.influence)) if estimate.weights is None else estimate.weights
    count = int(np.count_nonzero(cluster_sums(counted, clusters)))
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
    over = cluster_error(estimate.influence, clusters, corrected=estimate.corrected, weights=estimate.weights)
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
    if is_mean and _has_wilson_form(estimate, clusters):
        method = f"{level:.0%} Wilson interval of a mean, {units}"
        return _near_bound(estimate, clusters, error, over.stderr, t, method)
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


def moved_within(figure: Interval, bounds: tuple[float | None, float | None]) -> Interval:
    """The figure within the bounds: a correction may lead out of them. An interval beyond a bound keeps its width."""
    low, high = (limit if end is None else end for end, limit in zip(bounds, (-np.inf, np.inf), strict=True))
    ends = {
        name: None if end is None else float(min(max(end, low), high))
        for name, end in (("value", figure.value), ("low", figure.low), ("high", figure.high))
    }
    if ends["low"] is not None and ends["low"] == ends["high"] and figure.low != figure.high:
        width = (figure.high or 0.0) - (figure.low or 0.0)
        ends |= {"low": max(low, high - width)} if ends["high"] == high else {"high": min(high, low + width)}
    return msgspec.structs.replace(figure, **ends)


def _share_of_range(estimate: Estimate) -> float | None:
    """Where the estimate is between its bounds, from 0 to 1; None without bounds."""
    low, high = estimate.bounds
    return None if low is None or high is None else min(1.0, max(0.0, (estimate.value - low) / (high - low)))


def _has_wilson_form(estimate: Estimate, clusters: Codes | None) -> bool:
    """Whether values between bounds are skewed. Clusters near a bound may not show it: a rare bad one is not drawn."""
    share = _share_of_range(estimate)
    if share is None or _are_near(share, clusters):
        return share is not None
    sums = cluster_sums(estimate.influence, clusters)
    deviations = sums - sums.mean()
    spread = float((deviations**2).mean())
    return spread > 0 and abs(float((deviations**3).mean())) > _SKEWED * spread**1.5 * sqrt(len(sums))


def _are_near(share: float, clusters: Codes | None) -> bool:
    """Whether clusters with this mean, from 0 to 1, are near a bound."""
    return clusters is not None and min(share, 1 - share) < _NEAR


def _near_bound(
    estimate: Estimate, clusters: Codes | None, stderr: float, error: float, t: float, method: str
) -> Interval:
    """Wilson's interval for a mean p of bounded values (from 0 to 1 here), with the effective number p(1 - p) / SE^2.

    A few skewed values do not show how far others are away: see `_variance_of_others`.
    """
    p, (low, high) = _share_of_range(estimate), estimate.bounds
    assert p is not None
    assert low is not None
    assert high is not None
    width = high - low
    weight = _PSEUDO_CLUSTERS if _are_near(p, clusters) else _PSEUDO
    variance = (error / width) ** 2 + _variance_of_others(p, weight, estimate.influence, clusters)
    least, most = wilson_bounds(p, max(p * (1 - p), ROUNDING) / variance, t)
    return Interval(estimate.value, stderr, low + width * least, low + width * most, method)


def _variance_of_others(p: float, weight: float, influence: Vector, clusters: Codes | None) -> float:
    """What two pseudo-values at 0 and 1 add to the variance of a mean p, with half of the weight each.

    The weight is in samples or clusters; near a bound, in sqrt(C) clusters, whose squared size is the mean of all.
    """
    sizes = cluster_sums(np.ones(len(influence)), clusters)
    others = weight / 2 * (p * p + (1 - p) ** 2)
    if not _are_near(p, clusters):
        return others / len(sizes) ** 2
    return others * fsum(sizes * sizes) / sqrt(len(sizes)) / len(influence) ** 2


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
    clusters if all have the same share), and z is the t quantile of `cluster_error`. Near a bound, SE is that of
    `_near_bound`. With `is_limited=False`, n may be greater: for samples of a cluster that balance each other.
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
        weight = _PSEUDO_SHARES if _are_near(p, clusters) else 0.0
        others = _variance_of_others(p, weight, estimate.influence, clusters)
        n = p * (1 - p) / (over.stderr**2 + others) if over.stderr > ROUNDING else float(count)
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
