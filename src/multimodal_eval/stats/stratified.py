"""Weighted sums over strata of clusters of samples, such as dialogues within types.

    estimate = sum over strata j of (w_j / N_j) * sum over clusters i of j of (mean of the samples of i)

The strata are independent samples, so the variances add up:

    SE^2 = sum over j of w_j^2 s_j^2 / N_j        s_j: standard deviation of the clusters' means, with N_j - 1

The interval is the percentile bootstrap within strata. A resample draws N_j - 1 of the N_j clusters, so its variance
matches the formula. N_j draws would give (N_j - 1) / N_j of it, which is too little for small strata. For the same
reason the percentiles are those of t: with few clusters, further out than 2.5 and 97.5.

References:
    Rao and Wu (1988). Resampling Inference with Complex Survey Data. JASA 83(401), 231-241, section 2.
    Hesterberg (2015). What Teachers Should Know About the Bootstrap. The American Statistician 69(4), section 3.4.
    Satterthwaite (1946). An Approximate Distribution of Estimates of Variance Components. Biometrics Bulletin 2.
"""

from __future__ import annotations

from functools import lru_cache
from math import fsum, sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import LEVEL, ROUNDING, Codes, Interval, Vector, within

RESAMPLES = 2000
LARGE = 10_000  # with more clusters, the resampled mean of a stratum is practically normal
_SEED = 0
_CACHED_DRAWS = 8  # draws of different sizes: for a whole run, and for each of its strata
_BLOCK = 100  # resamples at a time


class Strata(msgspec.Struct, frozen=True):
    """The stratum of each row, and the name and weight of each stratum."""

    codes: Codes
    names: tuple[str, ...]
    weights: tuple[float, ...]

    def of(self, rows: NDArray[np.bool_] | Codes) -> Strata:
        """The strata of the selected rows."""
        return Strata(self.codes[rows], self.names, self.weights)

    def empty(self) -> list[str]:
        """The names of the strata that have a weight but no rows."""
        counts = np.bincount(self.codes, minlength=len(self.names)).tolist()
        return [name for name, weight, n in zip(self.names, self.weights, counts, strict=True) if weight and not n]


class _Units(msgspec.Struct, frozen=True):
    """The clusters in the order of their codes, with their strata and rows."""

    row_unit: Codes  # of each row
    sizes: Vector  # rows of each cluster
    strata: Codes  # of each cluster
    counts: Codes  # clusters of each stratum


def _units(codes: Codes, clusters: Codes | None, strata: int) -> _Units:
    count = len(codes)
    row_unit = np.arange(count) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    units = int(row_unit.max()) + 1
    of_unit = np.zeros(units, dtype=np.int64)
    of_unit[row_unit] = codes
    if not np.array_equal(of_unit[row_unit], codes):
        raise ConfigError("a group of samples must be in one stratum, but one is in several")
    sizes = np.bincount(row_unit, minlength=units).astype(np.float64)
    return _Units(row_unit, sizes, of_unit, np.bincount(of_unit, minlength=strata))


def stratified_mean(values: Vector, clusters: Codes | None, strata: Strata) -> Estimate:
    """The weighted sum over strata, summed exactly: the order of clusters and samples does not change a digit.

    `clusters` are integer codes; without them each sample is a cluster. A stratum with a weight must have a cluster.
    """
    units = _units_of(clusters, strata)
    means = _cluster_means(values, units)
    of_strata = np.array(
        [fsum(means[units.strata == code]) / max(1, count) for code, count in enumerate(units.counts.tolist())]
    )
    weights = np.array(strata.weights)
    rows = _row_weights(units, strata)
    return Estimate(
        fsum(weights * of_strata),
        rows * (values - of_strata[strata.codes]),
        strata=np.where(weights[strata.codes] > 0, strata.codes, -1),
        contributions=rows * values,
        weights=rows,
    )


def row_weights(clusters: Codes | None, strata: Strata) -> Vector:
    """The weight of each row in `stratified_mean`, relative to its weight in a plain mean."""
    return _row_weights(_units_of(clusters, strata), strata)


def _row_weights(units: _Units, strata: Strata) -> Vector:
    """The cluster's share of the weight of its stratum, divided among the rows of the cluster."""
    shares = np.array(strata.weights) / np.maximum(units.counts, 1)
    rows: Vector = len(strata.codes) * shares[strata.codes] / units.sizes[units.row_unit]
    return rows


def _units_of(clusters: Codes | None, strata: Strata) -> _Units:
    if empty := strata.empty():
        raise ConfigError(f"strata that have a weight but no sample: {', '.join(empty)}")
    return _units(strata.codes, clusters, len(strata.names))


def _cluster_means(values: Vector, units: _Units) -> Vector:
    if len(units.sizes) == len(values):  # each row is a cluster
        means = np.empty(len(values))
        means[units.row_unit] = values
        return means
    ordered = values[np.argsort(units.row_unit, kind="stable")].tolist()
    ends = np.cumsum(units.sizes).astype(np.int64).tolist()
    sums = [fsum(ordered[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    return np.array(sums) / units.sizes


def mean_of_clusters(values: Vector, clusters: Codes | None) -> Estimate:
    """The mean of the cluster means: a single stratum with weight 1."""
    return stratified_mean(values, clusters, Strata(np.zeros(len(values), dtype=np.int64), ("all",), (1.0,)))


def stratified_interval(estimate: Estimate, clusters: Codes | None = None, level: float = LEVEL) -> Interval:
    """The estimate with its standard error and bootstrap interval; no interval if a stratum has only one cluster."""
    strata = stratum_effects(estimate, clusters)
    count = sum(map(len, strata.values()))
    unit = "sample" if clusters is None else "cluster"
    units = f"{count:,} {unit}{'' if count == 1 else 's'}" + (f" in {len(strata)} strata" if len(strata) > 1 else "")
    if any(len(effects) == 1 for effects in strata.values()):
        reason = units if count == 1 else f"{units}, one of which has a single {unit}"
        return Interval(estimate.value, None, None, None, f"no interval: {reason}")
    variances = np.array([_variance(effects) for effects in strata.values()])
    counts = np.array([len(effects) for effects in strata.values()])
    if sqrt(fsum(variances)) <= ROUNDING * max(1.0, abs(estimate.value)):
        return _of_equal_values(estimate, int(counts.min()), units, level)
    sampled = estimate.value + sum((_resampled(effects, code) for code, effects in strata.items()), np.zeros(RESAMPLES))
    tail = _tail(variances, counts, level)
    ends = np.quantile(sampled, [tail, 1 - tail])
    low, high = within(float(ends[0]), float(ends[1]), estimate)
    inside = " within strata" if len(strata) > 1 else ""
    method = f"{level:.0%} percentile bootstrap{inside}, {RESAMPLES:,} resamples, {units}"
    return Interval(estimate.value, sqrt(fsum(variances)), low, high, method)


def _of_equal_values(estimate: Estimate, count: int, units: str, level: float) -> Interval:
    """If nothing varies within strata, as `interval_of_equal_values` with the clusters of the smallest stratum."""
    from multimodal_eval.stats.special import stdtrit

    low, high = estimate.bounds
    if low is None or high is None:
        return Interval(estimate.value, 0.0, None, None, f"no interval: {units} that do not vary")
    t = float(stdtrit(count - 1, (1 + level) / 2))
    other, value = t * t / (count + t * t), estimate.value
    method = f"{level:.0%} Wilson interval of the share of other values, all values of a stratum equal, {units}"
    first, last = within(value - other * (value - low), value + other * (high - value), estimate)
    return Interval(value, 0.0, float(first), float(last), method)


def _tail(variances: Vector, counts: Codes, level: float) -> float:
    """The share of the resamples outside each bound: the normal probability beyond the quantile of t.

    Bootstrap percentiles correspond to a normal interval, which is too narrow for few clusters by the ratio of z to t.
    """
    from multimodal_eval.stats.special import ndtr, stdtrit

    return float(ndtr(-stdtrit(degrees_of_freedom(variances, counts), (1 + level) / 2)))


def degrees_of_freedom(variances: Vector, counts: Codes) -> float:
    """Satterthwaite's: (sum_j v_j)^2 / sum_j (v_j^2 / (N_j - 1)), where v_j is the variance from stratum j.

    The result is small if a heavy stratum has few clusters. For a single stratum it is N - 1.
    """
    return 1 / fsum((variances / fsum(variances)) ** 2 / (counts - 1))


def stratum_effects(estimate: Estimate, clusters: Codes | None) -> dict[int, Vector]:
    """The effects of the clusters on the estimate, for each stratum with a weight.

    They are sorted because draws are positions: the result must not depend on the order of the clusters.
    """
    effects, strata = unit_effects(estimate, clusters)
    return {code: np.sort(effects[strata == code]) for code in np.unique(strata).tolist()}


def unit_effects(estimate: Estimate, clusters: Codes | None) -> tuple[Vector, Codes]:
    """The effect of each cluster on the estimate, in the order of the cluster codes, and the stratum of each.

    Without strata, all clusters are in one stratum. Clusters of a stratum without a weight are left out.
    """
    strata = np.zeros(len(estimate.influence), dtype=np.int64) if estimate.strata is None else estimate.strata
    weighted = strata >= 0
    codes = strata[weighted]
    units = _units(codes, None if clusters is None else clusters[weighted], int(codes.max()) + 1)
    return np.bincount(units.row_unit, weights=estimate.influence[weighted]) / len(estimate.influence), units.strata


def _variance(effects: Vector) -> float:
    return fsum(effects * effects) * len(effects) / (len(effects) - 1)


def _resampled(effects: Vector, code: int) -> Vector:
    """The deviation from the estimate in every resample of a stratum."""
    count = len(effects)
    if count > LARGE:
        return np.random.default_rng([_SEED, code]).normal(scale=sqrt(_variance(effects)), size=RESAMPLES)
    drawn = _draws(count, code)
    sums = [drawn[start : start + _BLOCK].astype(np.float64) @ effects for start in range(0, RESAMPLES, _BLOCK)]
    return np.concatenate(sums) * (count / (count - 1))


@lru_cache(maxsize=_CACHED_DRAWS)
def _draws(count: int, code: int) -> NDArray[np.uint8]:
    """How often each of `count` clusters is drawn in each resample of `count - 1`, independently of other strata.

    The same draws are used for every metric and run. The counts fit into a byte in practice.
    """
    random = np.random.default_rng([_SEED, code, count])
    drawn = np.empty((RESAMPLES, count), dtype=np.uint8)
    for resample in drawn:
        resample[:] = np.bincount(random.integers(count, size=count - 1), minlength=count)
    return drawn
