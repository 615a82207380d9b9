"""Systems on the same samples: the difference of two with its test and interval, its power, and the ranks of many.

Every metric, a mean or not, is represented by one value per sample: the estimate plus the sample's influence value.
The mean of these values is the estimate. For a mean, they are the values of the samples.

Each kind of score has one test, and its interval is this test inverted: p < .05 if and only if the 95% interval
excludes 0. Values that are all 0 or 1 are compared by the score test (`paired_binary`), other values by randomization
of whole clusters (`randomization`), and more than two systems by the largest statistic of all pairs.

References:
    Miller (2024). Adding Error Bars to Evals. arXiv:2411.00640, sections 3 and 5.
    Holm (1979). A Simple Sequentially Rejective Multiple Test Procedure. Scandinavian Journal of Statistics 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, fsum, inf, isinf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import (
    LEVEL,
    ROUNDING,
    Codes,
    Interval,
    cluster_error,
    ends_of_equal_values,
    interval_of_equal_values,
    moved_within,
    quantile_of_units,
    standard_error,
    within,
)
from multimodal_eval.stats.paired_binary import (
    PairedCounts,
    is_share,
    paired_counts,
    quantile_of,
    score_interval,
    score_test,
)
from multimodal_eval.stats.power import (
    MIN_PAIRS,
    MIN_UNITS,
    detectable_effect,
    detectable_share,
    samples_for_share,
)
from multimodal_eval.stats.randomization import (
    ROUNDS,
    Inverted,
    MaxT,
    Parts,
    agreeing,
    all_pairs,
    alpha_of,
    interval_within,
    max_t,
    parts_of,
    randomized_parts,
    randomized_sums,
)
from multimodal_eval.stats.stratified import degrees_of_freedom, unit_effects

__all__ = ["Comparison", "Standings", "compare", "compare_pairs", "holm", "ranks", "standings"]

_TOO_MANY = 1e12  # an unrealistic number of samples


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference b - a; p < 1 - level if and only if the interval excludes 0.

    With more than two systems, the p-value and the interval hold for all pairs together.
    """

    difference: Interval
    p_value: float | None
    detectable: float | None  # the smallest true difference that this many samples detect with 80 % probability
    needed: int | None  # samples needed to detect the observed difference (or `effect`) with the same probability


@dataclass(frozen=True, slots=True)
class _Case:
    """A difference to test: how it is tested depends on its kind."""

    difference: Estimate
    clusters: Codes | None
    parts: Parts
    counts: PairedCounts | None  # of a difference of shares
    stderr: float | None
    freedom: float

    @property
    def units(self) -> int:
        """The clusters or samples that count; of scores that labels correct, those with labels."""
        return int(np.count_nonzero(self.parts.shares))

    @property
    def noun(self) -> str:
        """What the units are."""
        if self.is_by_labels:
            return "label" if self.clusters is None else "labelled cluster"
        return "sample" if self.clusters is None else "cluster"

    @property
    def is_by_labels(self) -> bool:
        """Whether human labels correct the scores."""
        return self.difference.strata is None and self.difference.weights is not None

    @property
    def size(self) -> float:
        """The size of the parts, which says what is a rounding error."""
        return max(float(np.abs(self.difference.influence).max(initial=0.0)), abs(self.difference.value))

    @property
    def is_constant(self) -> bool:
        """Whether all differences are equal."""
        rest = self.parts.effects - fsum(self.parts.effects) * self.parts.shares
        return float(np.abs(rest).max(initial=0.0)) * self.units <= 1e-9 * max(self.size, 1e-300)

    @property
    def is_identical(self) -> bool:
        return self.size <= ROUNDING and not self.is_by_labels

    def described(self, test: str, level: float) -> str:
        strata = "" if self.difference.strata is None else " within strata"
        return f"{level:.0%} interval by {test}, {self.units} {self.noun}{'' if self.units == 1 else 's'}{strata}"


def _case(first: Estimate, second: Estimate, clusters: Codes | None) -> _Case:
    difference = second.minus(first)
    counts = paired_counts(difference, clusters) if is_share(first) and is_share(second) else None
    parts = parts_of(difference, clusters)
    if difference.strata is None:
        over = cluster_error(difference.influence, clusters, weights=difference.weights)
        stderr = None if over is None else over.stderr
        if clusters is not None:
            stderr = standard_error(difference.influence, clusters)
        return _Case(difference, clusters, parts, counts, stderr, 0.0 if over is None else over.freedom)
    effects, strata = unit_effects(difference, clusters)
    sizes = np.bincount(strata)
    if (sizes == 1).any():
        return _Case(difference, clusters, parts, None, None, 0.0)
    sampled = sizes > 1
    variances = np.bincount(strata, weights=effects * effects)[sampled] * sizes[sampled] / (sizes[sampled] - 1)
    freedom = degrees_of_freedom(variances, sizes[sampled]) if variances.any() else float(sizes.sum() - len(sizes))
    return _Case(difference, clusters, parts, None, sqrt(fsum(variances)), freedom)


def compare(
    a: Sequence[Estimate],
    b: Sequence[Estimate],
    clusters: Codes | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
    level: float = LEVEL,
    effect: float | None = None,
) -> list[Comparison]:
    """b - a for several metrics over the same samples in the same order; all metrics share the random signs."""
    cases = [_case(first, second, clusters) for first, second in zip(a, b, strict=True)]
    flipped = [case for case in cases if case.counts is None and case.units > 1]
    tested = randomized_parts([case.parts for case in flipped], rounds=rounds, seed=seed, threads=threads, level=level)
    tests = {id(case): test for case, test in zip(flipped, tested, strict=True)}
    for case, first, second in zip(cases, a, b, strict=True):
        if first.summed is not None and second.summed is not None and case.units > 1:
            tests[id(case)] = randomized_sums(
                first.summed, second.summed, clusters, rounds=rounds, seed=seed, threads=threads, level=level
            )
    return [_compared(case, tests.get(id(case)), level, effect) for case in cases]


def _compared(case: _Case, test: Inverted | None, level: float, effect: float | None) -> Comparison:
    value = case.difference.value
    if case.stderr is None:
        return Comparison(Interval(value, None, None, None, f"no interval: {_few(case)}"), None, None, None)
    if case.counts is not None:
        critical = quantile_of(case.counts, level)
        p_value = score_test(case.counts)
        ends = agreeing(*score_interval(case.counts, critical), value, p_value >= alpha_of(level))
        figure = Interval(value, case.stderr, *ends, case.described("the score test of paired shares", level))
        return Comparison(figure, p_value, *_power_of_shares(case, critical, effect))
    assert test is not None
    if case.is_identical:
        return Comparison(_identical(case), 1.0, None, None)
    if case.is_constant:
        return _constant(case, test.p_value, level)
    figure = _bounded(case, test.low, test.high, case.described("randomization", level))
    return Comparison(figure, test.p_value, *_power_of_means(case, level, effect))


def _few(case: _Case) -> str:
    noun = case.noun
    if case.difference.strata is None:
        return f"{case.units} {noun}{'' if case.units == 1 else 's'}"
    return f"{case.units:,} {noun}s in {len(np.unique(case.parts.strata))} strata, one of which has a single {noun}"


def _identical(case: _Case) -> Interval:
    return Interval(0.0, 0.0, None, None, f"no interval: identical on {len(case.difference.influence):,} samples")


def _bounded(case: _Case, low: float, high: float, method: str) -> Interval:
    """The interval between the bounds of the difference; none if it has no end and the difference no bound."""
    value = case.difference.value
    if any(map(isinf, within(low, high, case.difference))):
        return Interval(value, case.stderr, None, None, f"no interval: {case.units} {case.noun}s, too few for a test")
    return moved_within(Interval(value, case.stderr, low, high, method), case.difference.bounds)


def _constant(case: _Case, p_value: float, level: float) -> Comparison:
    """Equal differences other than 0: how often others could occur decides, as in `interval_of_equal_values`.

    The interval reaches 0 if z^2 = n c / -a for a difference c > 0 with the lower bound a, or n c / b with the upper
    bound b for c < 0. Without bounds there is no interval, and `p_value` is that of the randomization.
    """
    from multimodal_eval.stats.special import ndtr, stdtr

    figure = interval_of_equal_values(case.difference, case.clusters, level)
    low, high = case.difference.bounds
    if low is None or high is None or figure.low is None or figure.high is None:
        return Comparison(figure, p_value, None, None)
    room = -low if case.difference.value > 0 else high
    z = -sqrt(case.units * abs(case.difference.value) / room) if room > 0 else -inf
    p_value = float(2 * (ndtr(z) if case.clusters is None else stdtr(case.units - 1, z)))
    ends = agreeing(figure.low, figure.high, figure.point, p_value >= alpha_of(level))
    return Comparison(Interval(figure.value, 0.0, *ends, figure.method), p_value, None, None)


def _constant_among_several(case: _Case, p_value: float, level: float, critical: float) -> Comparison:
    """The same for several pairs: the interval is as wide as the critical value of all says, and p is theirs.

    The statistic of equal differences is the same for any other true difference, so that it has no interval of its own.
    """
    figure = interval_of_equal_values(case.difference, case.clusters, level)
    if figure.low is None:
        return Comparison(figure, p_value, None, None)
    quantile = max(quantile_of_units(case.units, case.clusters, level), critical)
    ends = ends_of_equal_values(case.difference.value, case.difference.bounds, case.units, quantile)
    assert ends is not None
    ends = agreeing(*within(*ends, case.difference), figure.point, p_value >= alpha_of(level))
    return Comparison(Interval(figure.value, 0.0, *ends, figure.method), p_value, None, None)


def _power_of_means(
    case: _Case, level: float, effect: float | None, critical: float | None = None
) -> tuple[float | None, int | None]:
    """The detectable difference and the samples needed, by t and the standard error."""
    assert case.stderr is not None
    if case.units < MIN_UNITS or case.stderr <= ROUNDING * case.size or (critical is not None and isinf(critical)):
        return None, None
    shares = case.parts.shares
    deviations = (case.parts.effects - case.difference.value * shares)[shares > 0]
    spread = float((deviations**2).mean())  # 0 if all labels differ equally, and only verdicts vary
    skewness = float((deviations**3).mean()) / spread**1.5 if spread**1.5 > 0 else 0.0
    detectable = detectable_effect(case.stderr, case.freedom + 1, level=level, critical=critical, skewness=skewness)
    target = abs(case.difference.value) if effect is None else effect
    if target <= ROUNDING * max(1.0, case.size):
        return detectable, None
    samples = len(case.difference.influence)
    return detectable, _whole(max(samples * (detectable / target) ** 2, MIN_UNITS * samples / case.units))


def _power_of_shares(case: _Case, critical: float, effect: float | None) -> tuple[float | None, int | None]:
    """The detectable difference of shares and the samples needed, by the power of the score test."""
    counts = case.counts
    assert counts is not None
    if counts.n < MIN_PAIRS or isinf(critical):
        return None, None
    lost, gained = sorted((counts.gained / counts.n, counts.lost / counts.n))
    detectable = detectable_share(lost, counts.n, critical=critical)
    needed = samples_for_share(gained if effect is None else lost + effect, lost, critical=critical)
    return detectable, _whole(needed * len(case.difference.influence) / counts.n)


def _whole(samples: float) -> int | None:
    return ceil(samples) if samples < _TOO_MANY else None


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p-values: the k-th smallest of m is multiplied by m - k + 1; non-decreasing, at most 1."""
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[index] = highest
    return adjusted


def ranks(better: NDArray[np.bool_]) -> list[int | None]:
    """The rank of each system: one more than the number of better systems; better[i, j]: i is better than j."""
    return [int(1 + better[:, j].sum()) for j in range(better.shape[1])]


# Many systems on the same samples: all pairs together.


def compare_pairs(
    estimates: Sequence[Estimate],
    pairs: Sequence[tuple[int, int]],
    clusters: Codes | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
    level: float = LEVEL,
    effect: float | None = None,
    with_power: bool = True,
    tests: MaxT | None = None,
) -> list[Comparison]:
    """The second minus the first system of each pair, with p-values and intervals that hold for all pairs together.

    One pair is compared as by `compare`. Of several, each is compared with the largest statistic of all pairs.
    `with_power=False` leaves out the detectable difference and the samples needed. `tests` are those of the pairs, if
    they were made before, together with further pairs.
    """
    if len(pairs) <= 1 and tests is None:
        first, second = [estimates[a] for a, _ in pairs], [estimates[b] for _, b in pairs]
        settings = {"rounds": rounds, "seed": seed, "threads": threads}
        return compare(first, second, clusters, **settings, level=level, effect=effect)
    cases = [_case(estimates[a], estimates[b], clusters) for a, b in pairs]
    if cases and cases[0].stderr is None:
        return [_compared(case, None, level, effect) for case in cases]
    if tests is None:
        units = np.column_stack([parts_of(estimate, clusters).effects for estimate in estimates])
        tests = max_t(units, pairs, rounds=rounds, seed=seed, threads=threads, level=level)
    return [
        _compared_together(case, float(p_value), tests.critical, level, effect, with_power)
        for case, p_value in zip(cases, tests.p_values, strict=True)
    ]


def _compared_together(
    case: _Case, p_value: float, critical: float, level: float, effect: float | None, with_power: bool
) -> Comparison:
    contains_zero, value = p_value >= alpha_of(level), case.difference.value
    method = case.described("max-T randomization of all pairs", level)
    assert case.stderr is not None
    if case.counts is not None:
        ends = agreeing(*score_interval(case.counts, critical), value, contains_zero)
        figure = Interval(value, case.stderr, *ends, method)
        power = _power_of_shares(case, critical, effect) if with_power else (None, None)
        return Comparison(figure, p_value, *power)
    if case.is_identical:
        return Comparison(_identical(case), 1.0, None, None)
    if case.is_constant:
        return _constant_among_several(case, p_value, level, critical)
    ends = agreeing(*interval_within(critical, case.parts.effects, case.parts.shares), value, contains_zero)
    # The statistic has the uncentred variance: as a quantile of t, its critical value is larger.
    left = case.units - critical**2
    as_t = critical * sqrt((case.units - 1) / left) if left > 0 else inf
    return Comparison(_bounded(case, *ends, method), p_value, *_power_of_means(case, level, effect, as_t))


@dataclass(frozen=True, slots=True)
class Standings:
    """The rank of each system, its possible ranks, and for each pair (i, j) with i < j their comparison, j minus i.

    A rank is one more than the number of systems that are significantly better; systems that cannot be distinguished
    share a rank. `ranges` are the best and the worst rank that the comparisons leave possible: with 95 % probability,
    they contain the true ranks of all systems. All are None if a stratum has a single cluster: there is no test then.
    """

    ranks: list[int | None]
    ranges: list[tuple[int, int] | None]
    comparisons: dict[tuple[int, int], Comparison]
    small_strata: tuple[tuple[int, int], ...] = ()  # (stratum, clusters) if they are too few for a test of its own

    @property
    def p_values(self) -> dict[tuple[int, int], float | None]:
        """The p-value of each pair, corrected for all pairs."""
        return {pair: comparison.p_value for pair, comparison in self.comparisons.items()}


def standings(
    estimates: Sequence[Estimate],
    clusters: Codes | None = None,
    *,
    higher_is_better: bool = True,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
    level: float = LEVEL,
) -> Standings:
    """Compare all pairs of systems; the estimates are over the same rows in the same order."""
    pairs, count = all_pairs(len(estimates)), len(estimates)
    settings: dict[str, Any] = {"rounds": rounds, "seed": seed, "threads": threads}
    compared = compare_pairs(estimates, pairs, clusters, **settings, level=level, with_power=False)
    comparisons = dict(zip(pairs, compared, strict=True))
    better = better_of(comparisons, count, level, higher_is_better=higher_is_better)
    testable = all(comparison.p_value is not None for comparison in compared)
    ranking: list[int | None] = ranks(better) if testable else [None] * count
    return Standings(ranking, ranges_of(better, testable), comparisons, _small_strata(estimates[0], clusters))


def better_of(
    comparisons: dict[tuple[int, int], Comparison], count: int, level: float, *, higher_is_better: bool = True
) -> NDArray[np.bool_]:
    """Which systems are significantly better than which: [i, j] says that i is better than j."""
    better: NDArray[np.bool_] = np.zeros((count, count), dtype=np.bool_)
    for (a, b), comparison in comparisons.items():
        value = comparison.difference.value
        if comparison.p_value is not None and comparison.p_value < alpha_of(level) and value:
            second_is_better = (value > 0) == higher_is_better
            better[(b, a) if second_is_better else (a, b)] = True
    return better


def ranges_of(better: NDArray[np.bool_], testable: bool = True) -> list[tuple[int, int] | None]:
    """The best and worst possible rank of each system: one more than those above it, and all but those below it."""
    count = len(better)
    if not testable:
        return [None] * count
    return [(int(1 + better[:, i].sum()), int(count - better[i].sum())) for i in range(count)]


def _small_strata(estimate: Estimate, clusters: Codes | None) -> tuple[tuple[int, int], ...]:
    if estimate.strata is None or len(np.unique(estimate.strata[estimate.strata >= 0])) < 2:
        return ()
    strata = parts_of(estimate, clusters).strata
    codes, counts = np.unique(strata, return_counts=True)
    return tuple((int(code), int(count)) for code, count in zip(codes, counts, strict=True) if count < MIN_UNITS)
