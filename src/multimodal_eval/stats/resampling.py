"""Intervals for agreement statistics: the Bayesian bootstrap over units, or over groups of units.

Every agreement value is a function of statistics that add up over units. A resample is therefore a vector
of weights, its statistics are one matrix product, and units with the same ratings are drawn together.

The weights are Dirichlet. Pseudo-units that count as one and a half units are drawn with the others: half of them
agree, and all labels are equally frequent. Resamples of the units alone would repeat what few units happen to show:
after twenty units without a disagreement, that there is none.

Reference:
    Rubin (1981). The Bayesian Bootstrap. Annals of Statistics 9, 130-134.
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
PSEUDO_UNITS = 1.5  # what the pseudo-units count as together
MIN_OTHER = 5  # ratings with another label than the most frequent one; with fewer, there is no interval
_PSEUDO_ROWS = 64
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


def pseudo_codes(codes: Codes, labels: int) -> Codes:
    """Ratings of pseudo-units: half of them agree, in the others one rating has another label; labels are uniform.

    `codes` are those of the units; pseudo-units lack the same ratings as they do.
    """
    random = np.random.default_rng(0)
    rated = (codes >= 0)[random.integers(len(codes), size=_PSEUDO_ROWS)]
    rows = np.repeat(np.arange(_PSEUDO_ROWS)[:, None] % labels, codes.shape[1], axis=1)
    differing = np.arange(_PSEUDO_ROWS // 2, _PSEUDO_ROWS)
    column = np.where(rated, random.random(rated.shape), -1.0).argmax(axis=1)[differing]
    rows[differing, column] = (rows[differing, column] + random.integers(1, max(2, labels), len(differing))) % labels
    return np.where(rated, rows, -1)


def rare(codes: Codes) -> str | None:
    """Why there is no interval: too few ratings differ from the most frequent label. None if enough do."""
    counts = np.bincount(codes[codes >= 0])
    other = int(counts.sum() - counts.max(initial=0))
    if other >= MIN_OTHER or not counts.sum():
        return None
    return f"only {other} of {int(counts.sum())} ratings differ from the most frequent label"


def without_interval(interval: Interval, reason: str | None) -> Interval:
    """The value alone if there is a reason."""
    return interval if reason is None else Interval(interval.value, None, None, None, f"no interval: {reason}")


def estimate(
    statistics: SparseTable, pattern: Codes, figures: Figures, plan: Resampling, pseudo: SparseTable
) -> list[Interval | None]:
    """The values over all units, each with its interval; None if a value is undefined.

    `statistics` has one row per pattern; `pattern` is the row index of each unit. `pseudo` has the same statistics of
    the pseudo-units.
    """
    counts = np.bincount(pattern, minlength=statistics.shape[0]).astype(np.float64)
    values = figures(statistics.totals(counts)[None, :])[0]
    if plan.groups is None:
        noun, drawn, weights = "unit", statistics, counts
        draws = len(pattern)
    else:
        noun, drawn = "group", _by_group(statistics, pattern, plan.groups)
        draws = drawn.shape[0]
        weights = np.ones(draws)
    if plan.resamples and draws > 1:
        sampled = _resampled(drawn, weights, pseudo, len(pattern) / draws, figures, plan)
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


def _resampled(
    drawn: SparseTable, weights: Vector, pseudo: SparseTable, size: float, figures: Figures, plan: Resampling
) -> Vector:
    """The values of every resample, computed in blocks to bound the memory. `size` is that of a drawn unit."""
    random = np.random.default_rng(plan.seed)
    step = max(1, _MAX_CELLS // max(*drawn.shape, *pseudo.shape))
    shapes = np.concatenate([weights, np.full(pseudo.shape[0], PSEUDO_UNITS / max(1, pseudo.shape[0]))])
    blocks = []
    for start in range(0, plan.resamples, step):
        gammas = random.standard_gamma(shapes, size=(min(step, plan.resamples - start), len(shapes)))
        shares = gammas / gammas.sum(axis=1, keepdims=True) * weights.sum()
        mine, others = shares[:, : len(weights)], shares[:, len(weights) :] * size
        blocks.append(figures(drawn.totals(mine) + pseudo.totals(others)))
    return np.concatenate(blocks)


def _percentiles(value: float, sampled: Vector, resamples: int, units: str) -> Interval:
    """The middle 95% of the resamples; resamples in which the value is undefined are left out and counted."""
    if not resamples:
        return Interval(value, None, None, None, f"no interval: {units}" if units.startswith("1 ") else "no interval")
    lost = resamples - len(sampled)
    if lost > resamples / 2:
        return Interval(value, None, None, None, f"no interval: undefined in {lost:,} of {resamples:,} resamples")
    low, high = np.quantile(sampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    method = f"{LEVEL:.0%} Bayesian bootstrap, {resamples:,} resamples of {units}"
    if lost:
        method += f", {lost:,} of them undefined and left out"
    return Interval(value, float(np.std(sampled, ddof=1)), min(value, float(low)), max(value, float(high)), method)


def side_by_side(blocks: Sequence[SparseTable | Vector]) -> SparseTable:
    """Statistics of the same patterns as one sparse table; a vector becomes one column."""
    return SparseTable.side_by_side([b if isinstance(b, SparseTable) else SparseTable.of_dense(b) for b in blocks])


def ratio(numerator: Vector, denominator: Vector) -> Vector:
    """The ratio, NaN (undefined) where the denominator is not positive."""
    out = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out
