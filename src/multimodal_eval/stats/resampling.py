"""Intervals for agreement statistics: the percentile bootstrap over units, or over groups of units.

Every agreement value is a function of statistics that add up over units. A resample is therefore a vector
of weights, its statistics are one matrix product, and units with the same ratings are drawn together.

Reference:
    Efron and Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall, chapters 6 and 13.
    For groups: Field and Welsh (2007). Bootstrapping clustered data. JRSS B 69(3), 369-390.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.stats.intervals import LEVEL, Interval
from multimodal_eval.stats.ratings import SparseTable

if TYPE_CHECKING:
    from multimodal_eval.stats.ratings import Codes

Vector = NDArray[np.float64]
# Totals of the statistics (resamples x statistics) -> values (resamples x values), NaN if undefined.
Figures = Callable[[Vector], Vector]

RESAMPLES = 1000
NO_PAIRS = "no unit has two ratings"
ONE_LABEL = "all ratings have the same label, so no disagreement was possible"
_MAX_CELLS = 1 << 22  # in the largest array of a resampling step: 32 MB


@dataclass(frozen=True, slots=True)
class Agreement:
    """An agreement value with its interval; if it is undefined, `value` is None and `reason` says why."""

    name: str
    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    n_units: int
    n_annotators: int
    method: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Resampling:
    """The settings of the bootstrap: the number of resamples (0: no interval) of units, or of groups of units.

    `groups` are integer codes, one per unit.
    """

    resamples: int = RESAMPLES
    seed: int = 0
    groups: Codes | None = None

    def only(self, units: NDArray[np.bool_]) -> Resampling:
        """The same settings for the selected units."""
        if self.groups is None:
            return self
        if len(self.groups) != len(units):
            raise ConfigError(f"there must be one group per unit. Got {len(self.groups)} groups, {len(units)} units.")
        return Resampling(self.resamples, self.seed, self.groups[units])


def undefined(name: str, n_units: int, n_annotators: int, reason: str) -> Agreement:
    """An undefined agreement value."""
    return Agreement(name, None, None, None, None, n_units, n_annotators, "no interval: no value", reason)


def with_interval(name: str, interval: Interval, n_units: int, n_annotators: int) -> Agreement:
    """An agreement value with its interval."""
    low, high = interval.low, interval.high
    return Agreement(name, interval.value, interval.stderr, low, high, n_units, n_annotators, interval.method)


def estimate(statistics: SparseTable, pattern: Codes, figures: Figures, plan: Resampling) -> list[Interval | None]:
    """The values over all units, each with its interval; None if a value is undefined.

    `statistics` has one row per pattern; `pattern` is the row index of each unit.
    """
    counts = np.bincount(pattern, minlength=statistics.shape[0]).astype(np.float64)
    values = figures(statistics.totals(counts)[None, :])[0]
    if plan.groups is None:
        noun, drawn, chances = "unit", statistics, counts / len(pattern)
        draws = len(pattern)
    else:
        noun, drawn = "group", _by_group(statistics, pattern, plan.groups)
        draws = drawn.shape[0]
        chances = np.full(draws, 1 / draws)
    if plan.resamples and draws > 1:
        sampled = _resampled(drawn, chances, draws, figures, plan)
    else:
        sampled = np.zeros((0, len(values)))
    units = f"{draws:,} {noun}s" if draws > 1 else f"1 {noun}"
    return [
        None if np.isnan(value) else _percentiles(float(value), column[~np.isnan(column)], len(column), units)
        for value, column in zip(values, sampled.T, strict=True)
    ]


def _by_group(statistics: SparseTable, pattern: Codes, groups: Codes) -> SparseTable:
    """The sums of the statistics over the units of each group."""
    _, group = np.unique(groups, return_inverse=True)
    shape = (int(group.max()) + 1, statistics.shape[0])
    cells, units = np.unique(group * shape[1] + pattern, return_counts=True)
    rows, columns = np.divmod(cells, shape[1])
    return statistics.summed(SparseTable.of_cells(rows, columns, units.astype(np.float64), shape))


def _resampled(drawn: SparseTable, chances: Vector, draws: int, figures: Figures, plan: Resampling) -> Vector:
    """The values of every resample, computed in blocks to bound the memory."""
    random = np.random.default_rng(plan.seed)
    step = max(1, _MAX_CELLS // max(drawn.shape))
    blocks = []
    for start in range(0, plan.resamples, step):
        size = min(step, plan.resamples - start)
        blocks.append(figures(drawn.totals(random.multinomial(draws, chances, size=size).astype(np.float64))))
    return np.concatenate(blocks)


def _percentiles(value: float, sampled: Vector, resamples: int, units: str) -> Interval:
    """The middle 95 % of the resamples; resamples in which the value is undefined are left out and counted."""
    if not resamples:
        return Interval(value, None, None, None, f"no interval: {units}" if units.startswith("1 ") else "no interval")
    lost = resamples - len(sampled)
    if lost > resamples / 2:
        return Interval(value, None, None, None, f"no interval: undefined in {lost:,} of {resamples:,} resamples")
    low, high = np.quantile(sampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    method = f"{LEVEL:.0%} percentile bootstrap, {resamples:,} resamples of {units}"
    if lost:
        method += f", {lost:,} of them undefined and left out"
    return Interval(value, float(np.std(sampled, ddof=1)), float(low), float(high), method)


def side_by_side(blocks: Sequence[SparseTable | Vector]) -> SparseTable:
    """Statistics of the same patterns as one sparse table; a vector becomes one column."""
    return SparseTable.side_by_side([b if isinstance(b, SparseTable) else SparseTable.of_dense(b) for b in blocks])


def ratio(numerator: Vector, denominator: Vector) -> Vector:
    """The ratio, NaN (undefined) where the denominator is not positive."""
    out = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out
