"""The power of a paired comparison: how many samples does a difference need, and which difference do samples show?

Scores that are not only 0 and 1 have the differences' standard deviation s. n samples detect a difference of

    (t_{1-a/2} + t_power) s / sqrt(n)                                  t with n - 1 degrees of freedom (clusters: C - 1)

with probability `power`. Shares are compared by the score test, whose statistic is (b - c) / sqrt(b + c). Given
probabilities `lost` and `gained` that only the first or only the second system is right, psi = gained + lost and
theta = gained - lost, its power is the probability that b - c > z sqrt(b + c). It is summed over all b and c, or with
many differing samples

    Phi( (theta sqrt(n) - z sqrt(psi)) / sqrt(psi - theta^2) )

A difference beyond the observed one comes on top of the differing samples that cancel each other: `lost` stays as it
is, and `gained` is `lost` + theta.

References:
    Connor (1987). Sample Size for Testing Differences in Proportions for the Paired-Sample Design. Biometrics 43.
    Miller (2024). Adding Error Bars to Evals. arXiv:2411.00640, section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval.stats.intervals import LEVEL, Vector

__all__ = [
    "detectable_effect",
    "detectable_share",
    "power_of_mean",
    "power_of_share",
    "sample_size",
    "samples_for_share",
]

POWER = 0.8
MIN_UNITS = 6  # with fewer, no p-value of the randomization test reaches .05: 2 / 2^5 is .0625
MIN_PAIRS = 4  # with fewer, the score test cannot reach .05: (b - c) / sqrt(b + c) is at most sqrt(3)
_EXACT = 150  # differing samples up to which the power is summed
_NEGLIGIBLE = 1e-9
_STEPS = 60


def detectable_effect(
    stderr: float,
    units: float | None = None,
    *,
    level: float = LEVEL,
    power: float = POWER,
    critical: float | None = None,
    skewness: float = 0.0,
) -> float:
    """The minimum detectable effect: (z_{1-a/2} + z_power) * SE.

    With `units` samples or clusters, z is the quantile of t with `units` - 1 degrees of freedom. `critical` takes the
    place of z_{1-a/2} if several runs are compared. With a `skewness` g of the differences, the effect is that of the
    direction which is harder to show: the mean and the standard deviation of skewed samples are correlated, so that the
    statistic has the variance 1 + g l / sqrt(n) + 1.5 g^2 l^2 / 4n if its mean is l.
    """
    from multimodal_eval.stats.special import ndtri, stdtrit

    first, second = (float(ndtri(p) if units is None else stdtrit(units - 1, p)) for p in ((1 + level) / 2, power))
    least = first if critical is None else max(first, critical)
    distance = least + second
    if skewness and units is not None:
        relative = abs(skewness) / sqrt(units)
        for _ in range(_STEPS):
            spread = sqrt(1 + relative * distance + 0.375 * (relative * distance) ** 2)
            distance = (least + second * spread - relative / 2) / (1 + 0.5625 * relative**2)
    return distance * stderr


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


def power_of_mean(effect: float, deviation: float, units: float, *, level: float = LEVEL) -> float:
    """The probability that `units` differences with this standard deviation show a true difference of `effect`."""
    from multimodal_eval.stats.special import stdtr, stdtrit

    if units < MIN_UNITS:
        return 0.0
    if deviation <= 0:
        return 1.0
    return float(stdtr(units - 1, abs(effect) * sqrt(units) / deviation - stdtrit(units - 1, (1 + level) / 2)))


def critical_value(level: float) -> float:
    """The two-sided critical value of the normal distribution."""
    from multimodal_eval.stats.special import ndtri

    return float(ndtri((1 + level) / 2))


def power_of_share(gained: float, lost: float, n: float, *, critical: float | None = None) -> float:
    """The probability that n samples show that the second system is better.

    `gained` and `lost` are the probabilities that only the second, or only the first system is right on a sample.
    """
    from multimodal_eval.stats.special import ndtr

    z = critical_value(LEVEL) if critical is None else critical
    differing, effect = gained + lost, gained - lost
    if differing <= 0:
        return 0.0
    if n * differing > _EXACT:
        spread = sqrt(max(differing - effect**2, 1e-300))
        return float(ndtr((effect * sqrt(n) - z * sqrt(differing)) / spread))
    # The differing samples are binomial, and so are the gains among them.
    whole = max(1, round(n))
    totals = np.arange(min(whole, 4 * _EXACT) + 1)
    weights = np.exp(_log_binomial(whole, min(1.0, differing * n / whole), totals))
    totals, weights = totals[weights > _NEGLIGIBLE], weights[weights > _NEGLIGIBLE]
    gains = np.arange(int(totals.max()) + 1)
    possible = gains <= totals[:, None]
    shown = possible & (2 * gains - totals[:, None] > z * np.sqrt(totals)[:, None])
    chances = np.exp(_log_binomial(totals[:, None], gained / differing, np.where(possible, gains, 0)))
    return float(weights @ (chances * shown).sum(axis=1))


def _log_binomial(n: ArrayLike, share: float, counts: NDArray[np.int64]) -> Vector:
    """The logarithms of the probabilities of these counts, each at most n."""
    size = np.broadcast_to(np.asarray(n, np.int64), counts.shape)
    if share <= 0 or share >= 1:
        return np.where(counts == (0 if share <= 0 else size), 0.0, -np.inf)
    top = int(counts.max(initial=0))
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, top + 1)))])
    if np.ndim(n) == 0:  # n! / (n - k)! for one n, which may be large
        products = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(1, int(size.flat[0]) - np.arange(top))))])[counts]
    else:
        logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(size.max()) + 1)))])
        products = logs[size] - logs[size - counts]
    return np.asarray(products - factorials[counts] + counts * log(share) + (size - counts) * log(1 - share))


def detectable_share(
    lost: float, n: float, *, power: float = POWER, critical: float | None = None, level: float = LEVEL
) -> float | None:
    """The smallest difference of two shares that n samples show with this probability.

    `lost` is the rate of differing samples that cancel each other on either side. None if no difference is shown.
    """
    z = critical_value(level) if critical is None else critical
    most = max(0.0, 1 - 2 * lost)
    return _smallest(lambda effect: power_of_share(lost + effect, lost, n, critical=z), most, power)


def _smallest(power_at: Callable[[float], float], most: float, power: float) -> float | None:
    if power_at(most) < power:
        return None
    low, high = 0.0, most
    for _ in range(_STEPS):
        if high - low < 1e-5 * high:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if power_at(middle) >= power else (middle, high)
    return high


def samples_for_share(
    gained: float, lost: float, *, power: float = POWER, critical: float | None = None, level: float = LEVEL
) -> float:
    """The samples that show a difference of two shares with this probability; infinite if they are equal."""
    from multimodal_eval.stats.special import ndtri

    z = critical_value(level) if critical is None else critical
    differing, effect = gained + lost, abs(gained - lost)
    if effect <= 0:
        return inf
    spread = sqrt(max(0.0, differing - effect**2))
    estimate = ((z * sqrt(differing) + float(ndtri(power)) * spread) / effect) ** 2
    if estimate * differing > _EXACT:
        return estimate
    count = max(MIN_PAIRS, ceil(estimate / 2))
    most = 4 * ceil(estimate) + 50
    larger, smaller = max(gained, lost), min(gained, lost)
    while count < most and power_of_share(larger, smaller, count, critical=z) < power:
        count += max(1, count // 50)
    return float(count)
