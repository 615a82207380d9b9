"""Two systems on the same samples: the difference with its interval, a randomization test, what could be detected.

Every number, a mean or not, enters as one value a sample: the estimate plus the sample's influence value. Their mean is
the estimate, and for a mean they are the samples' own values.

References:
    Miller (2024). Adding Error Bars to Evals. arXiv:2411.00640, sections 3 and 5.
    Noreen (1989). Computer-Intensive Methods for Testing Hypotheses. Wiley. (approximate randomization)
    Holm (1979). A Simple Sequentially Rejective Multiple Test Procedure. Scandinavian Journal of Statistics 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, fsum

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate
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

ROUNDS = 10_000
POWER = 0.8
FEWEST_UNITS = 6  # below, no p-value of the randomization reaches .05: 2 / 2^5 is .0625
_TOO_MANY = 1e12  # samples that nobody will have

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is said of the difference b - a."""

    difference: Interval
    p_value: float | None
    detectable: float | None  # the smallest true difference that a test of this size finds with 80 % probability
    needed: int | None  # samples that it takes to find a difference as large as this one (or `effect`) as surely


def pseudo_values(estimate: Estimate) -> Vector:
    """One value a sample, whose mean is the estimate: estimate + psi_i, or the contributions of a weighted sum."""
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
    """b - a for several numbers at once, over the same samples in the same order; all share their random signs."""
    differences = [two.minus(one) for one, two in zip(a, b, strict=True)]
    p_values = randomization_p_values(
        [pseudo_values(difference) for difference in differences], clusters, rounds=rounds, seed=seed, threads=threads
    )
    return [
        _comparison(difference, p_value, clusters, level, effect)
        for difference, p_value in zip(differences, p_values, strict=True)
    ]


def _comparison(
    difference: Estimate, p_value: float, clusters: Codes | None, level: float, effect: float | None
) -> Comparison:
    found = interval(difference, clusters, level=level)
    if found.stderr is None:
        return Comparison(found, None, None, None)
    units = number_of_units(difference.influence, clusters)
    if units < FEWEST_UNITS:
        return Comparison(found, p_value, None, None)
    detectable = detectable_effect(found.stderr, units, level=level)
    wanted = abs(found.value) if effect is None else effect
    if wanted <= ROUNDING * max(1.0, float(np.abs(difference.influence).max())):
        return Comparison(found, p_value, detectable, None)
    samples = len(difference.influence)
    needed = max(samples * (detectable / wanted) ** 2, FEWEST_UNITS * samples / units)
    return Comparison(found, p_value, detectable, ceil(needed) if needed < _TOO_MANY else None)


def randomization_p_values(
    differences: Sequence[Vector],
    clusters: Codes | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
) -> list[float]:
    """p = (1 + #{|D*| >= |D|}) / (rounds + 1) for each column of paired differences.

    D is the sum of the differences and D* the same with the sign of every cluster (sample) drawn anew: as if each one's
    two systems had changed places or not. The numbers depend on the seed alone, not on threads.
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


def detectable_effect(stderr: float, units: int | None = None, *, level: float = LEVEL, power: float = POWER) -> float:
    """The minimum detectable effect: (z_{1-a/2} + z_power) * SE.

    For so many samples or clusters z is the quantile of t with one degree of freedom less than `units`.
    """
    from scipy.special import ndtri, stdtrit

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

    `variance` (omega^2) is that of the two systems' expected differences over questions, `variance_a` and `variance_b`
    those of an answer drawn anew, with `answers_a` and `answers_b` answers a question. Not rounded. Miller, equation 9.
    """
    from scipy.special import ndtri

    spread = variance + variance_a / answers_a + variance_b / answers_b
    return float(ndtri((1 + level) / 2) + ndtri(power)) ** 2 * spread / effect**2


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted for their number: the k-th smallest of m times m - k + 1, never falling, at most 1."""
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[index] = highest
    return adjusted


def ranks(better: NDArray[np.bool_]) -> list[int | None]:
    """The rank of each system: one more than those that are better than it; better[i, j]: i is better than j."""
    return [int(1 + better[:, j].sum()) for j in range(better.shape[1])]
