"""Standard errors and intervals from influence values, with or without clusters of samples.

References:
    Miller (2024). Adding Error Bars to Evals. arXiv:2411.00640, section 2.2.
    Wilson (1927). Probable Inference, the Law of Succession, and Statistical Inference. JASA 22.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate

LEVEL = 0.95
ROUNDING = 1e-12  # relative rounding error of floating-point sums
LARGE_CLUSTER = 0.1  # share of the samples above which a cluster makes the interval unreliable

Vector = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its uncertainty; `stderr`, `low` and `high` are None if they cannot be computed."""

    value: float
    stderr: float | None
    low: float | None
    high: float | None
    method: str


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


def interval(
    estimate: Estimate, clusters: Codes | None = None, *, values: Vector | None = None, level: float = LEVEL
) -> Interval:
    """Wilson's interval for the mean of values that are all 0 or 1, the bootstrap for strata, else the t interval.

    `values` are the values of the rows if the estimate is their mean. If all of them are equal, their variance says
    nothing: see `interval_of_equal_values`.
    """
    if estimate.strata is not None:
        from multimodal_eval.stats.stratified import stratified_interval

        return stratified_interval(estimate, clusters, level)
    if values is not None and estimate.is_mean and len(values) > 0 and bool(np.isin(values, (0.0, 1.0)).all()):
        return wilson_interval(estimate, clusters, level)
    if values is not None and estimate.is_mean and _are_equal(values) and None not in estimate.bounds:
        return interval_of_equal_values(estimate, clusters, level)
    return t_interval(estimate, clusters, level)


def _are_equal(values: Vector) -> bool:
    return len(values) > 1 and bool((values == values[0]).all())


def interval_of_equal_values(estimate: Estimate, clusters: Codes | None = None, level: float = LEVEL) -> Interval:
    """The interval of a mean within bounds a and b if all n values equal c, so that the t interval has no width.

    By Wilson's interval for 0 of n, at most the share u = z^2 / (n + z^2) of all samples has another value. Their
    values are between a and b, so that the mean is between c - u (c - a) and c + u (b - c). For c = a and c = b, this
    is Wilson's interval. With clusters, n is their number, and z the t quantile.
    """
    from multimodal_eval.stats.special import ndtri, stdtrit

    low, high = estimate.bounds
    assert low is not None
    assert high is not None
    count = number_of_units(estimate.influence, clusters)
    if count < 2:
        return Interval(estimate.value, None, None, None, f"no interval: {_units(count, clusters)}")
    quantile = (1 + level) / 2
    z = float(ndtri(quantile)) if clusters is None else float(stdtrit(count - 1, quantile))
    other = z * z / (count + z * z)
    value = estimate.value
    method = f"{level:.0%} Wilson interval of the share of other values, all values equal, {_units(count, clusters)}"
    return Interval(value, 0.0, value - other * (value - low), value + other * (high - value), method)


def t_interval(estimate: Estimate, clusters: Codes | None = None, level: float = LEVEL) -> Interval:
    """estimate ± t * SE, where t has C - 1 degrees of freedom for C clusters; it ends at the bounds of the estimate.

    If errors multiply, the interval is computed for the logarithm, whose standard error is SE / estimate:
    estimate * exp(± t * SE / estimate). It stays above 0.
    """
    from multimodal_eval.stats.special import stdtrit

    error = standard_error(estimate.influence, clusters, corrected=estimate.corrected)
    count = number_of_units(estimate.influence, clusters)
    if error is None:
        return Interval(estimate.value, None, None, None, f"no interval: {_units(count, clusters)}")
    half = float(stdtrit(count - 1, (1 + level) / 2)) * error
    method = f"{level:.0%} t interval, {_units(count, clusters)}"
    if estimate.multiplies and estimate.value > 0:
        method = method.replace("t interval", "t interval of the logarithm")
        factor = exp(min(half / estimate.value, 700))  # a larger exponent overflows
        return Interval(estimate.value, error, estimate.value / factor, estimate.value * factor, method)
    least, most = estimate.bounds
    low = estimate.value - half if least is None else max(least, estimate.value - half)
    high = estimate.value + half if most is None else min(most, estimate.value + half)
    return Interval(estimate.value, error, low, high, method)


def wilson_interval(
    estimate: Estimate, clusters: Codes | None = None, level: float = LEVEL, *, is_limited: bool = True
) -> Interval:
    """Wilson's score interval for a share p of n:

        ( p + z^2/2n ± z sqrt( p(1-p)/n + z^2/4n^2 ) ) / ( 1 + z^2/n )

    With clusters, n is the effective number of samples p(1-p) / SE^2, at most the number of samples (the number of
    clusters if all have the same share), and z is the t quantile with C - 1 degrees of freedom. With
    `is_limited=False`, n may be greater: for samples of a cluster that balance each other.
    """
    from multimodal_eval.stats.special import ndtri, stdtrit

    count = number_of_units(estimate.influence, clusters)
    error = standard_error(estimate.influence, clusters)
    if error is None:
        return Interval(estimate.value, None, None, None, f"no interval: {_units(count, clusters)}")
    p = estimate.value
    if clusters is None:
        z, n = float(ndtri((1 + level) / 2)), float(count)
    else:
        z = float(stdtrit(count - 1, (1 + level) / 2))
        n = p * (1 - p) / error**2 if error > ROUNDING else float(count)
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
