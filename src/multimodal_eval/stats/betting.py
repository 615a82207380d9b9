"""Confidence sequences for the mean of a finite population that is drawn without replacement, by betting.

The interval may be computed after every draw and sampling may stop at any of them: the probability that an interval
ever misses the mean is at most 1 - level. Nothing is assumed but bounds on the values and a random order.

With N units of weight s_i in [0, 1] (0: unscored) and scored values of sum z_i, the mean m = sum z_i / sum s_i solves
sum (z_i - m s_i) = 0. So for the true m, y_t = z_t - m s_t has the conditional mean mu_t = -(y_1 + … + y_{t-1}) /
(N - t + 1), and a player who bets a share lambda_t of the capital on y_t > mu_t has the capital

    K_t = (1 + lambda_1 (y_1 - mu_1)) · … · (1 + lambda_t (y_t - mu_t)),

a martingale that starts at 1 and reaches 2/alpha with a probability of at most alpha/2. A candidate m is refused if the
player who bets on larger values, or the one who bets on smaller values, has more than 2/alpha.

The bets are tuned to a half width w: lambda_t = w_t / (v_t + w_t^2) with w_t = w N / (N - t + 1) and the variance v_t
of the earlier values, cut off so that no bet loses more than 3/4 of the capital. Without a half width, the capital is
divided among several. The capital of the first player decreases in m and that of the second increases, so that the set
of candidates is an interval, whose ends are found by bisection and rounded outwards.

References:
    Waudby-Smith and Ramdas (2024). Estimating means of bounded random variables by betting. JRSS-B 86(1), sections 4
    and 5. Waudby-Smith and Ramdas (2020). Confidence sequences for sampling without replacement. NeurIPS.
    Ville (1939). Étude critique de la notion de collectif.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, log

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import LEVEL, Interval

__all__ = ["Units", "confidence_sequence", "log_capital", "refusal_at", "sequence_method"]

_LARGEST_LOSS = 0.75  # share of the capital that one bet can lose
_WIDTHS = tuple(2.0**-power for power in range(2, 9))  # half widths, as shares of the range, if none is given
_SPENT = 0.95  # share of alpha that is used, so that simulations stay below alpha, too; it costs 1.4% more samples
_STEPS = 40  # of the bisection
_ROUNDING = 1e-9  # of the logarithm of the capital
_NAME = "betting confidence sequence (Waudby-Smith and Ramdas 2024)"

Vector = NDArray[np.float64]
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Units:
    """The drawn units in the order of drawing, with values scaled to [0, 1], out of a population of `population` units.

    `sums` are the sums of the scored values of each unit and `weights` the numbers of scored values, both divided by
    the number of values in a unit.
    """

    sums: Vector
    weights: Vector
    population: int

    @classmethod
    def of(cls, values: Vector, population: int, bounds: Bounds, size: int = 1) -> Units:
        """Units of `size` consecutive values each, in the order of drawing; NaN is an unscored value."""
        low, high = bounds
        if not high > low:
            raise ValueError(f"the upper bound must be larger than the lower one. Got {bounds} instead.")
        if len(values) % size or len(values) > population * size:
            raise ValueError(f"{len(values)} values are not units of {size} out of {population}")
        scaled = np.clip((values - low) / (high - low), 0.0, 1.0).reshape(-1, size)
        return cls(np.nansum(scaled, axis=1) / size, np.isfinite(scaled).mean(axis=1), population)

    def __len__(self) -> int:
        return len(self.sums)

    @property
    def mirrored(self) -> Units:
        """The units with every value x replaced by 1 - x."""
        return Units(self.weights - self.sums, self.weights, self.population)

    @property
    def mean(self) -> float:
        """The mean of the scored values."""
        return min(1.0, fsum(self.sums) / fsum(self.weights))

    @property
    def least_mean(self) -> float:
        """The mean if all units that are not drawn yet had the value 0."""
        left = self.population - len(self)
        total = fsum(self.weights) + left
        return fsum(self.sums) / total if total else 0.0


def log_capital(units: Units, mean: float, widths: Sequence[float] = _WIDTHS) -> Vector:
    """The logarithm of the capital after every draw of a player who bets that the population's mean is above `mean`.

    `widths` are the half widths that the capital is divided among. Infinite if `mean` is impossible.
    """
    paths = np.cumsum(np.log1p(_gains(units, mean, _fixed(units, widths))), axis=-1)
    return np.asarray(np.logaddexp.reduce(paths, axis=0) - log(len(widths)))


def refusal_at(level: float = LEVEL) -> float:
    """The logarithm of the capital at which a candidate is refused."""
    return log(2 / (_SPENT * (1 - level)))


@dataclass(frozen=True)
class _Fixed:
    """What does not depend on the candidate."""

    bets: Vector  # half widths x draws: the shares before the cut-off
    sums: Vector  # of the earlier draws
    weights: Vector
    left: Vector  # units that are not drawn yet, with the current one


def _fixed(units: Units, widths: Sequence[float]) -> _Fixed:
    z, s = units.sums, units.weights
    sums, weights = _earlier(z), _earlier(s)
    left = units.population - np.arange(len(units), dtype=np.float64)
    mean = (0.5 + sums) / (1.0 + weights)
    squares = _earlier(z * z) - 2 * mean * _earlier(z * s) + mean * mean * _earlier(s * s)
    variance = (0.25 + np.maximum(squares, 0.0)) / (1.0 + weights)
    aim = np.multiply.outer(np.asarray(widths, np.float64), units.population / left)
    return _Fixed(aim / (variance + aim * aim), sums, weights, left)


def _earlier(values: Vector) -> Vector:
    """The sums of the values before each one."""
    return np.concatenate([[0.0], np.cumsum(values)[:-1]])


def _gains(units: Units, mean: float, fixed: _Fixed) -> Vector:
    """lambda_t (y_t - mu_t) for every half width and draw."""
    expected = (mean * fixed.weights - fixed.sums) / fixed.left
    surplus = units.sums - mean * units.weights - expected
    largest_loss = mean + expected  # of y_t - mu_t, since y_t >= -mean
    with np.errstate(divide="ignore", over="ignore"):
        most = np.where(largest_loss > 0, _LARGEST_LOSS / largest_loss, np.inf)
    gains = np.minimum(fixed.bets, most) * np.where(largest_loss > 0, surplus, np.maximum(surplus, 0.0))
    gains[:, largest_loss < -_ROUNDING] = np.inf  # the values so far are too large for this mean
    return gains


def confidence_sequence(
    values: Vector,
    population: int,
    bounds: Bounds,
    *,
    width: float | None = None,
    level: float = LEVEL,
    size: int = 1,
) -> Interval:
    """The mean of the drawn values, with an interval for the mean of all values of the population.

    `values` are in the order of drawing, NaN if unscored; `size` consecutive values are one unit, and `population`
    counts units. `width` is the half width to which the bets are tuned.
    """
    units = Units.of(values, population, bounds, size)
    low, high = bounds
    scored = values[np.isfinite(values)]
    method = sequence_method(level, len(units), population)
    if not len(scored):
        raise ValueError("no value is scored")
    mean = fsum(scored) / len(scored)
    if len(units) == population:
        return Interval(mean, None, mean, mean, method)
    range_ = high - low
    widths = _WIDTHS if width is None else (min(0.5, width / range_),)
    ends = low + range_ * _lower_end(units, widths, level), high - range_ * _lower_end(units.mirrored, widths, level)
    return Interval(mean, None, max(low, min(ends[0], mean)), min(high, max(ends[1], mean)), method)


def sequence_method(level: float, drawn: int, population: int) -> str:
    """The method of an interval for the mean of a population, some units of which are drawn."""
    share = f"{drawn:,} of {population:,} samples"
    return f"{level:.0%} {_NAME}, valid at any stopping time, without replacement, {share}"


def _lower_end(units: Units, widths: Sequence[float], level: float) -> float:
    """A mean that is refused as too small, just below the smallest one that is not; 0 if none is."""
    fixed = _fixed(units, widths)
    threshold = refusal_at(level) + log(len(widths)) + _ROUNDING

    def is_refused(mean: float) -> bool:
        totals = np.log1p(_gains(units, mean, fixed)).sum(axis=1)
        return bool(np.logaddexp.reduce(totals) >= threshold)

    refused, candidate = units.least_mean, units.mean
    if not is_refused(refused):  # all means below it are impossible
        return max(0.0, refused - _ROUNDING)
    for _ in range(_STEPS):
        middle = (refused + candidate) / 2
        if is_refused(middle):
            refused = middle
        else:
            candidate = middle
    return refused
