"""Systems on the same samples: the difference of two with its interval, a test and its power, and the ranks of many.

Every metric, a mean or not, is represented by one value per sample: the estimate plus the sample's influence value.
The mean of these values is the estimate. For a mean, they are the values of the samples.

References:
    Miller (2024). Adding Error Bars to Evals. arXiv:2411.00640, sections 3 and 5.
    Noreen (1989). Computer-Intensive Methods for Testing Hypotheses. Wiley. (approximate randomization)
    Holm (1979). A Simple Sequentially Rejective Multiple Test Procedure. Scandinavian Journal of Statistics 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate, Summed
from multimodal_eval.stats.intervals import (
    LEVEL,
    ROUNDING,
    Codes,
    Interval,
    Vector,
    cluster_sums,
    interval,
    number_of_units,
)
from multimodal_eval.stats.stratified import degrees_of_freedom, unit_effects

__all__ = ["Comparison", "compare", "detectable_effect", "holm", "randomization_p_values", "sample_size"]


ROUNDS = 10_000
POWER = 0.8
MIN_UNITS = 6  # with fewer, no p-value of the randomization test reaches .05: 2 / 2^5 is .0625
_TOO_MANY = 1e12  # an unrealistic number of samples

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The difference b - a."""

    difference: Interval
    p_value: float | None
    detectable: float | None  # the smallest true difference that this many samples detect with 80 % probability
    needed: int | None  # samples needed to detect the observed difference (or `effect`) with the same probability


def pseudo_values(estimate: Estimate) -> Vector:
    """One value per sample, with the estimate as mean: estimate + psi_i, or the contributions to a weighted sum."""
    values = estimate.contributions
    return estimate.value + estimate.influence if values is None else values


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
    differences = [second.minus(first) for first, second in zip(a, b, strict=True)]
    p_values = randomization_p_values(
        [pseudo_values(difference) for difference in differences], clusters, rounds=rounds, seed=seed, threads=threads
    )
    for number, (first, second) in enumerate(zip(a, b, strict=True)):
        if first.summed is not None and second.summed is not None:
            p_values[number] = swapped_p_value(
                first.summed, second.summed, clusters, rounds=rounds, seed=seed, threads=threads
            )
    return [
        _comparison(difference, p_value, clusters, level, effect)
        for difference, p_value in zip(differences, p_values, strict=True)
    ]


def _comparison(
    difference: Estimate, p_value: float, clusters: Codes | None, level: float, effect: float | None
) -> Comparison:
    estimate = interval(difference, clusters, level=level)
    if estimate.stderr is None:
        return Comparison(estimate, None, None, None)
    units = number_of_units(difference.influence, clusters)
    if units < MIN_UNITS:
        return Comparison(estimate, p_value, None, None)
    detectable = detectable_effect(estimate.stderr, units, level=level)
    target = abs(estimate.value) if effect is None else effect
    if target <= ROUNDING * max(1.0, float(np.abs(difference.influence).max())):
        return Comparison(estimate, p_value, detectable, None)
    samples = len(difference.influence)
    needed = max(samples * (detectable / target) ** 2, MIN_UNITS * samples / units)
    return Comparison(estimate, p_value, detectable, ceil(needed) if needed < _TOO_MANY else None)


def randomization_p_values(
    differences: Sequence[Vector],
    clusters: Codes | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
) -> list[float]:
    """p = (1 + #{|D*| >= |D|}) / (rounds + 1) for each column of paired differences.

    D is the sum of the differences, and D* the sum with a random sign for every cluster (or sample), which swaps the
    two systems or not. The p-values depend on the seed, but not on the number of threads.
    """
    from multimodal_eval._native import flipped_sums

    if not differences:
        return []
    units = np.column_stack([cluster_sums(values, clusters) for values in differences])
    observed = np.array([abs(fsum(column)) for column in units.T])
    slack = ROUNDING * np.abs(units).sum(axis=0)
    sums = flipped_sums(np.ascontiguousarray(units), rounds, seed & (2**64 - 1), threads)
    as_far = (np.abs(sums) >= observed - slack).sum(axis=0)
    return [float((1 + count) / (rounds + 1)) for count in as_far.tolist()]


def swapped_p_value(
    a: Summed,
    b: Summed,
    clusters: Codes | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
) -> float:
    """p = (1 + #{|D*| >= |D|}) / (rounds + 1) for two scores that are functions of summed statistics.

    D* is the difference of the scores after a random half of the clusters (or samples) are swapped between the systems.
    """
    from multimodal_eval._native import flipped_sums

    halves = [cluster_sums(column, clusters) for column in (b.stats - a.stats).T / 2]
    centre = (b.stats.sum(axis=0) + a.stats.sum(axis=0)) / 2
    units = np.ascontiguousarray(np.column_stack(halves))
    sums = flipped_sums(units, rounds, seed & (2**64 - 1), threads)
    observed = units.sum(axis=0)[None, :]
    (difference,) = np.abs(b.scores(centre + observed) - a.scores(centre - observed))
    differences = np.abs(b.scores(centre + sums) - a.scores(centre - sums))
    return float((1 + (differences >= difference - ROUNDING * max(1.0, difference)).sum()) / (rounds + 1))


def detectable_effect(stderr: float, units: int | None = None, *, level: float = LEVEL, power: float = POWER) -> float:
    """The minimum detectable effect: (z_{1-a/2} + z_power) * SE.

    With `units` samples or clusters, z is the quantile of t with `units` - 1 degrees of freedom.
    """
    from multimodal_eval.stats.special import ndtri, stdtrit

    quantiles = [float(ndtri(p) if units is None else stdtrit(units - 1, p)) for p in ((1 + level) / 2, power)]
    return sum(quantiles) * stderr


def sample_size(
    effect: float,
    variance: float,
    *,
    variance_a: float = 0.0,
    answers_a: int = 1,
    variance_b: float = 0.0,
    answers_b: int = 1,
    level: float = LEVEL,
    power: float = POWER,
) -> float:
    """Questions needed to find a true difference of `effect`:

        n = (z_{1-a/2} + z_power)^2 (omega^2 + s_A^2/K_A + s_B^2/K_B) / effect^2

    `variance` (omega^2) is the variance of the systems' expected differences over questions; `variance_a` and
    `variance_b` are the variances of repeated answers to a question, with `answers_a` and `answers_b` answers per
    question. The result is not rounded. Miller, equation 9.
    """
    from multimodal_eval.stats.special import ndtri

    spread = variance + variance_a / answers_a + variance_b / answers_b
    return float(ndtri((1 + level) / 2) + ndtri(power)) ** 2 * spread / effect**2


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


# Ranks of many systems on the same samples, from tests of all pairs.
#
# Every pair is compared by a paired t test over clusters, within strata if there are any, with Satterthwaite's degrees
# of freedom (number of clusters - 1 without strata). The p-values are Holm-corrected. The randomization test in
# `paired` cannot be used here: 50 systems make 1,225 pairs, and the p-values of 10,000 rounds are never small enough
# to survive a correction for so many.
#
# References:
#     Holm (1979). A Simple Sequentially Rejective Multiple Test Procedure. Scandinavian Journal of Statistics 6.
#     Rao and Wu (1988). Resampling Inference with Complex Survey Data. JASA 83(401), 231-241. (variances over strata)
#     Satterthwaite (1946). An Approximate Distribution of Estimates of Variance Components. Biometrics Bulletin 2.


@dataclass(frozen=True, slots=True)
class Standings:
    """The rank of each system, and for each pair (i, j) with i < j the Holm-corrected p-value of their difference.

    A rank is one more than the number of systems that are significantly better; systems that cannot be distinguished
    share a rank. Ranks and p-values are None if a stratum has a single cluster, because there is no test then.
    """

    ranks: list[int | None]
    p_values: dict[tuple[int, int], float | None]


def standings(
    estimates: Sequence[Estimate], clusters: Codes | None = None, *, higher_is_better: bool = True, level: float = LEVEL
) -> Standings:
    """Compare all pairs of systems; the estimates are over the same rows in the same order."""
    units = [unit_effects(estimate, clusters) for estimate in estimates]
    strata = units[0][1]
    counts = np.bincount(strata)
    testable = not (counts == 1).any()
    pairs = list(combinations(range(len(estimates)), 2))
    effects = [system_effects for system_effects, _ in units]
    raw = [
        _p_value(estimates[a].value - estimates[b].value, effects[a] - effects[b], strata, counts) if testable else None
        for a, b in pairs
    ]
    adjusted = holm(raw)
    better: NDArray[np.bool_] = np.zeros((len(estimates), len(estimates)), dtype=np.bool_)
    for (a, b), p_value in zip(pairs, adjusted, strict=True):
        difference = estimates[a].value - estimates[b].value
        if p_value is not None and p_value < 1 - level and difference:
            first_is_better = (difference > 0) == higher_is_better
            better[(a, b) if first_is_better else (b, a)] = True
    ranking: list[int | None] = ranks(better) if testable or not pairs else [None] * len(estimates)
    return Standings(ranking, dict(zip(pairs, adjusted, strict=True)))


def _p_value(difference: float, effects: Vector, strata: Codes, counts: Codes) -> float:
    """The two-sided p-value of t = difference / SE, with Satterthwaite's degrees of freedom."""
    from multimodal_eval.stats.special import stdtr

    sampled = counts > 1
    variances = np.bincount(strata, weights=effects * effects)[sampled] * counts[sampled] / (counts[sampled] - 1)
    error = sqrt(fsum(variances))
    if error <= ROUNDING * max(1.0, abs(difference)):
        return 1.0 if abs(difference) <= ROUNDING else 0.0
    return float(2 * stdtr(degrees_of_freedom(variances, counts[sampled]), -abs(difference) / error))
