"""Two systems that are right or wrong on the same samples: the score test of their difference, and its interval.

With n samples, of which the second system alone is right on b and the first alone on c, a true difference theta has
the statistic

    z(theta) = (b - c - n theta) / sqrt( n (2 q + theta (1 - theta)) )

where q is the probability of c that is most likely given theta: the larger root of
2n q^2 + ((2n - b + c) theta - b - c) q - c theta (1 - theta) = 0. For theta = 0 it is McNemar's (b - c) / sqrt(b + c).
The interval has every theta with |z(theta)| <= z_(1+level)/2, so that the test and the interval never contradict each
other, and it has a width even if b = c = 0.

With clusters, all counts are divided by the design effect, the variance of the difference over clusters relative to
that of independent samples (at least 1; n / C if no two samples differ), and z is the quantile of t.

References:
    Tango (1998). Equivalence Test and Confidence Interval for the Difference in Proportions for the Paired-Sample
    Design. Statistics in Medicine 17, 891-908.
    Durkalski, Palesch, Lipsitz and Rust (2003). Analysis of Clustered Matched-Pair Data. Statistics in Medicine 22.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, inf, sqrt

import numpy as np

from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import LEVEL, ROUNDING, Codes, cluster_error, cluster_sums, may_be_share

__all__ = ["PairedCounts", "is_share", "paired_counts", "score_interval", "score_statistic", "score_test"]

_STEPS = 200  # at most; bisection ends earlier, when the ends are neighbouring numbers
_WHOLE = 1e-9


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """n samples, of which the second system alone is right on `gained`, the first alone on `lost`.

    With clusters, they are divided by the design effect. `freedom` are the degrees of freedom of t, infinite without
    clusters.
    """

    n: float
    gained: float
    lost: float
    freedom: float = inf


def is_share(estimate: Estimate) -> bool:
    """Whether the estimate is the mean of values that are all 0 or 1."""
    if estimate.strata is not None or estimate.summed is not None or not estimate.is_mean or not estimate.corrected:
        return False
    values = estimate.value + estimate.influence
    return may_be_share(estimate) and bool((np.minimum(np.abs(values), np.abs(values - 1)) < _WHOLE).all())


def paired_counts(difference: Estimate, clusters: Codes | None) -> PairedCounts:
    """The counts of a difference of two shares over the same samples."""
    values = np.rint(difference.value + difference.influence)
    n, gained, lost = len(values), int((values > 0).sum()), int((values < 0).sum())
    if clusters is None:
        return PairedCounts(n, gained, lost)
    error = cluster_error(difference.influence, clusters)
    count = len(cluster_sums(difference.influence, clusters))
    if error is None:
        return PairedCounts(n, gained, lost, 0.0)
    independent = float((difference.influence**2).sum()) / n**2
    effect = max(1.0, error.stderr**2 / independent) if independent > ROUNDING**2 else n / count
    return PairedCounts(n / effect, gained / effect, lost / effect, error.freedom)


def score_statistic(counts: PairedCounts, theta: float) -> float:
    """z(theta), which decreases with theta; infinite if theta is impossible."""
    n, b, c = counts.n, counts.gained, counts.lost
    excess = b - c - n * theta
    linear = (2 * n - b + c) * theta - b - c
    root = sqrt(max(0.0, linear * linear + 8 * n * c * theta * (1 - theta)))
    q = (root - linear) / (4 * n)
    variance = n * (2 * q + theta * (1 - theta))
    if variance <= ROUNDING * n:
        return 0.0 if abs(excess) <= _WHOLE * n else copysign(inf, excess)
    return excess / sqrt(variance)


def score_test(counts: PairedCounts) -> float:
    """The p-value of a difference of 0."""
    from multimodal_eval.stats.special import ndtr, stdtr

    z = -abs(score_statistic(counts, 0.0))
    return float(2 * (ndtr(z) if counts.freedom == inf else stdtr(counts.freedom, z)))


def quantile_of(counts: PairedCounts, level: float = LEVEL) -> float:
    """The critical value of |z|: a quantile of the normal distribution, or of t."""
    from multimodal_eval.stats.special import ndtri, stdtrit

    share = (1 + level) / 2
    return float(ndtri(share) if counts.freedom == inf else stdtrit(counts.freedom, share))


def score_interval(counts: PairedCounts, critical: float) -> tuple[float, float]:
    """The differences theta with |z(theta)| <= critical."""
    estimate = (counts.gained - counts.lost) / counts.n
    return _end(counts, -1.0, estimate, critical), _end(counts, 1.0, estimate, -critical)


def _end(counts: PairedCounts, outside: float, inside: float, aim: float) -> float:
    """Where z, which decreases with theta, reaches `aim`, between the estimate and the bound `outside`."""
    if abs(score_statistic(counts, outside)) <= abs(aim):
        return outside
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        if middle in (inside, outside):
            break
        if abs(score_statistic(counts, middle)) > abs(aim):
            outside = middle
        else:
            inside = middle
    return outside
