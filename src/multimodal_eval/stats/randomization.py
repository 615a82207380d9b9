"""Randomization of whole clusters: one test, and the interval that is this test inverted.

Two equal systems could have answered the other way round in any cluster. Swapping them there flips the sign of the
cluster's part of the difference. With D the difference, D_s the difference after flips s, w_c the share of cluster c in
the mean and b_s = sum_c s_c w_c, a true difference theta is rejected if few flips are as far from it as D:

    p(theta) = share of flips with |D_s - b_s theta| >= |D - theta|

Each flip fulfils this between (D - D_s) / (1 - b_s) and (D + D_s) / (1 + b_s), the means of the flipped clusters and of
the others, which are on different sides of D. So p falls on both sides of D, and its interval has a closed form: p is
below 1 - level for 0 if and only if the interval excludes 0. All flips are enumerated if there are not more of them
than rounds. The test is exact if the clusters' differences are symmetric around theta, however large they are and
however uneven the clusters.

Many systems are compared with the largest statistic of all pairs after the same flips (max-T), where

    T = |D| / sqrt( sum_c d_c^2 )        d_c: the part of cluster c, so that D = sum_c d_c

The flips do not change the denominator. So the p-values hold for all pairs together, and no far tail is needed.

References:
    Noreen (1989). Computer-Intensive Methods for Testing Hypotheses. Wiley.
    Hartigan (1969). Using Subsample Values as Typical Values. JASA 64, 1303-1317. (intervals from subsets)
    Westfall and Young (1993). Resampling-Based Multiple Testing. Wiley. (max-T)
    Mogstad, Romano, Shaikh and Wilhelm (2024). Inference for Ranks. Review of Economic Studies 91. (ranges of ranks)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, groupby
from math import ceil, fsum, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate, Summed
from multimodal_eval.stats.intervals import LEVEL, ROUNDING, Codes, Vector, cluster_sums
from multimodal_eval.stats.stratified import unit_effects

__all__ = [
    "Flips",
    "Inverted",
    "MaxT",
    "PairSums",
    "Parts",
    "agreeing",
    "all_pairs",
    "alpha_of",
    "flips_of",
    "interval_of_sums",
    "interval_within",
    "inverted",
    "max_t",
    "max_t_of",
    "pair_sums",
    "parts_of",
    "randomization_p_values",
    "randomized_parts",
    "randomized_sums",
]

ROUNDS = 10_000
_BLOCK = 500  # rounds at a time, to bound the memory of all pairs

Matrix = NDArray[np.float64]


def alpha_of(level: float) -> float:
    """1 - level without its rounding error: .05 for .95."""
    return round(1 - level, 12)


@dataclass(frozen=True, slots=True)
class Flips:
    """Sums of columns after flips of whole units, in the rows of `sums`; `is_complete` if they are all flips."""

    sums: Matrix
    is_complete: bool

    @property
    def count(self) -> int:
        """The number of assignments that p-values are shares of: drawn ones and the observed one, or all."""
        return len(self.sums) + (0 if self.is_complete else 1)

    def p_value(self, as_far: int) -> float:
        """The share of assignments that are as far as the observed one, which is one of them."""
        return (as_far + (0 if self.is_complete else 1)) / self.count

    def rank(self, level: float) -> int:
        """The number of flips that must be as far for a p-value of 1 - level."""
        return ceil(alpha_of(level) * self.count - 1e-9) - (0 if self.is_complete else 1)


def flips_of(units: Matrix, *, rounds: int = ROUNDS, seed: int = 0, threads: int = 1) -> Flips:
    """The column sums of `units` (units x columns) after flips: all 2^units of them, or `rounds` random ones."""
    from multimodal_eval._native import flipped_sums

    if 2 ** min(len(units), 64) <= rounds:
        patterns = np.arange(2 ** len(units))[:, None] >> np.arange(len(units))
        return Flips((1.0 - 2.0 * (patterns & 1)) @ units, is_complete=True)
    return Flips(flipped_sums(np.ascontiguousarray(units), rounds, seed & (2**64 - 1), threads), is_complete=False)


@dataclass(frozen=True, slots=True)
class Inverted:
    """The p-value of a difference of 0, and the differences that the test does not reject."""

    p_value: float
    low: float
    high: float


def inverted(
    difference: float, flipped: Vector, balance: Vector, flips: Flips, level: float = LEVEL, scale: float = 1.0
) -> Inverted:
    """The test of `difference` by its values after flips, and the test's interval; ends may be infinite.

    `balance` is b_s, between -1 and 1. `scale` is the size of the summed parts, for their rounding error.
    """
    slack = ROUNDING * max(scale, abs(difference))
    p_value = flips.p_value(int((np.abs(flipped) >= abs(difference) - slack).sum()))
    first, second = 1 - balance, 1 + balance
    one_sided = np.minimum(first, second) <= ROUNDING  # all units flipped, or none: as far from any theta
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(difference - flipped) / first, (difference + flipped) / second])
    lows, highs = ends.min(axis=0), ends.max(axis=0)
    lows[one_sided], highs[one_sided] = -inf, inf
    rank = flips.rank(level)
    if rank < 1:
        low, high = -inf, inf
    else:
        low = float(np.partition(lows, rank - 1)[rank - 1])
        high = -float(np.partition(-highs, rank - 1)[rank - 1])
    return Inverted(p_value, *agreeing(low, high, difference, p_value >= alpha_of(level)))


def agreeing(low: float, high: float, difference: float, contains_zero: bool) -> tuple[float, float]:
    """The ends, where a rounding error must not put 0 on the other side than the p-value does."""
    if contains_zero:
        return min(low, 0.0), max(high, 0.0)
    smallest = float(np.finfo(np.float64).tiny)
    return (max(low, smallest), high) if difference > 0 else (low, min(high, -smallest))


@dataclass(frozen=True, slots=True)
class Parts:
    """The units of a difference: each one's part d_c of it and share w_c in the mean, and its stratum."""

    effects: Vector
    shares: Vector
    strata: Codes


def parts_of(difference: Estimate, clusters: Codes | None) -> Parts:
    """The parts of clusters (or samples) of a difference: those of strata without a weight are left out."""
    if difference.strata is None:
        count = len(difference.influence)
        weights = np.ones(count) if difference.weights is None else difference.weights
        values = cluster_sums(difference.value * weights + difference.influence, clusters) / count
        sizes = cluster_sums(weights, clusters) / count
        return Parts(values, sizes, np.zeros(len(values), dtype=np.int64))
    values = difference.value + difference.influence if difference.contributions is None else difference.contributions
    weights = np.ones(len(values)) if difference.weights is None else difference.weights
    effects, strata = unit_effects(replace(difference, influence=values), clusters)
    shares, _ = unit_effects(replace(difference, influence=weights), clusters)
    return Parts(effects, shares / max(fsum(shares), ROUNDING), strata)


def randomized_parts(
    parts: Sequence[Parts],
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
    level: float = LEVEL,
) -> list[Inverted]:
    """The test of each difference and its interval; all differences have the same units and share the flips."""
    if not parts:
        return []
    results = []
    for part in parts:
        flips = flips_of(part.effects[:, None], rounds=rounds, seed=seed, threads=threads)
        balance = _balance(part.shares.tobytes(), rounds, seed, threads)
        size = float(np.abs(part.effects).sum())
        results.append(inverted(fsum(part.effects), flips.sums[:, 0], balance, flips, level, size))
    return results


@lru_cache(maxsize=8)
def _balance(shares: bytes, rounds: int, seed: int, threads: int) -> Vector:
    """b_s of every flip; the metrics of a comparison usually have the same samples, and so the same shares."""
    units = np.frombuffer(shares, dtype=np.float64)[:, None]
    return np.clip(flips_of(units, rounds=rounds, seed=seed, threads=threads).sums[:, 0], -1.0, 1.0)


def randomization_p_values(
    differences: Sequence[Vector],
    clusters: Codes | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
) -> list[float]:
    """The p-value of each column of paired differences, by flips of clusters (or samples)."""
    if not differences:
        return []
    units = np.column_stack([cluster_sums(values, clusters) for values in differences])
    observed = np.array([abs(fsum(column)) for column in units.T])
    flips = flips_of(units, rounds=rounds, seed=seed, threads=threads)
    as_far = (np.abs(flips.sums) >= observed - ROUNDING * np.abs(units).sum(axis=0)).sum(axis=0)
    return [flips.p_value(count) for count in as_far.tolist()]


def randomized_sums(
    a: Summed,
    b: Summed,
    clusters: Codes | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
    level: float = LEVEL,
) -> Inverted:
    """The test of two scores that are functions of summed statistics: they are computed again after every flip."""
    halves = [cluster_sums(column, clusters) for column in (b.stats - a.stats).T / 2]
    shares = cluster_sums(np.full(len(a.stats), 1 / len(a.stats)), clusters)
    centre = (b.stats.sum(axis=0) + a.stats.sum(axis=0)) / 2
    units = np.column_stack([*halves, shares])
    flips = flips_of(units, rounds=rounds, seed=seed, threads=threads)
    observed = units[:, :-1].sum(axis=0)[None, :]
    (difference,) = (b.scores(centre + observed) - a.scores(centre - observed)).tolist()
    sums = flips.sums[:, :-1]
    flipped = b.scores(centre + sums) - a.scores(centre - sums)
    return inverted(difference, flipped, np.clip(flips.sums[:, -1], -1.0, 1.0), flips, level)


# Many systems: all pairs by the largest statistic.


@dataclass(frozen=True, slots=True)
class MaxT:
    """The statistic and p-value of each pair, corrected for all pairs, and the critical value of all statistics.

    A pair differs at the level if and only if its statistic is above the critical value, which is infinite if no
    statistic could be.
    """

    statistics: Vector
    p_values: Vector
    critical: float


def max_t(
    units: Matrix,
    pairs: Sequence[tuple[int, int]],
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
    level: float = LEVEL,
) -> MaxT:
    """Compare pairs of columns of `units` (units x systems) by max-T; the first minus the second."""
    return max_t_of(flips_of(units, rounds=rounds, seed=seed, threads=threads), [pair_sums(units, pairs)], pairs, level)


@dataclass(frozen=True, slots=True)
class PairSums:
    """Of each pair of systems: the difference, the sum of its squared parts, and the size of both systems' parts."""

    differences: Vector
    squares: Vector
    sizes: Vector

    def times(self, share: float) -> PairSums:
        """Those of scores that are multiplied by `share`."""
        return PairSums(share * self.differences, share * share * self.squares, share * self.sizes)


def pair_sums(units: Matrix, pairs: Sequence[tuple[int, int]]) -> PairSums:
    """Those of the columns of `units` (units x systems)."""
    systems, sizes = np.ascontiguousarray(units.T), np.abs(units).sum(axis=0)
    differences, squares, both = np.zeros((3, len(pairs)))
    for a, others, places in _by_first(pairs, range(len(pairs))):
        parts = systems[a] - systems[others]
        differences[places], squares[places] = parts.sum(axis=1), (parts * parts).sum(axis=1)
        both[places] = sizes[a] + sizes[others]
    return PairSums(differences, squares, both)


def _by_first(
    pairs: Sequence[tuple[int, int]], places: Iterable[int]
) -> Iterator[tuple[int, slice | list[int], list[int]]]:
    """The pairs in these places that share their first system: it, the second ones without a copy, and the places."""
    for a, group in groupby(places, key=lambda place: pairs[place][0]):
        together = list(group)
        others = [pairs[place][1] for place in together]
        is_range = others == list(range(others[0], others[0] + len(others)))
        yield a, slice(others[0], others[-1] + 1) if is_range else others, together


def max_t_of(flips: Flips, sums: Sequence[PairSums], pairs: Sequence[tuple[int, int]], level: float = LEVEL) -> MaxT:
    """The same of flips that were made before; the sums of several samples add up."""
    differences, squares, sizes = (
        np.array([fsum(values) for values in zip(*(getattr(each, name) for each in sums), strict=True)])
        for name in ("differences", "squares", "sizes")
    )
    differs = squares > (ROUNDING * np.maximum(sizes, 1e-300)) ** 2
    lengths = np.sqrt(np.where(differs, squares, 1.0))
    statistics = np.where(differs, np.abs(differences), 0.0) / lengths
    largest = np.concatenate(
        [
            _largest(flips.sums[start : start + _BLOCK], pairs, differs, lengths)
            for start in range(0, len(flips.sums), _BLOCK)
        ]
    )
    ordered = np.sort(largest)
    as_far = len(ordered) - np.searchsorted(ordered, statistics * (1 - ROUNDING), side="left")
    p_values = np.array([flips.p_value(int(count)) for count in as_far])
    rank = flips.rank(level)
    trivial = 2 if flips.is_complete else 0  # all units flipped, or none: as far as any observation
    critical = inf if rank <= trivial else float(ordered[-rank]) * (1 + ROUNDING)
    return MaxT(statistics, p_values, critical)


def _largest(sums: Matrix, pairs: Sequence[tuple[int, int]], differs: NDArray[np.bool_], lengths: Vector) -> Vector:
    """The largest statistic of each flip. A system's sums are together in memory: the largest is taken along rows."""
    systems, largest = np.ascontiguousarray(sums.T), np.zeros(len(sums))
    for a, others, places in _by_first(pairs, np.flatnonzero(differs).tolist()):
        distances = np.abs(systems[a] - systems[others])
        distances /= lengths[places, None]
        np.maximum(largest, distances.max(axis=0), out=largest)
    return largest


def interval_within(critical: float, effects: Vector, shares: Vector) -> tuple[float, float]:
    """The differences theta with |D - theta| / sqrt( sum_c (d_c - w_c theta)^2 ) <= critical; ends may be infinite."""
    return interval_of_sums(
        critical, fsum(effects), fsum(effects * effects), fsum(effects * shares), fsum(shares * shares)
    )


def interval_of_sums(
    critical: float, difference: float, squares: float, products: float, shares: float
) -> tuple[float, float]:
    """The same from D and the sums of d_c^2, of d_c w_c and of w_c^2."""
    if critical == inf:
        return -inf, inf
    square = critical * critical
    a = 1 - square * shares
    b = difference - square * products
    c = difference * difference - square * squares
    if a <= ROUNDING:
        return -inf, inf
    root = sqrt(max(0.0, b * b - a * c))
    return (b - root) / a, (b + root) / a


def all_pairs(count: int) -> list[tuple[int, int]]:
    """The pairs (i, j) with i < j of `count` systems."""
    return list(combinations(range(count), 2))
