"""Krippendorff's alpha: agreement beyond chance for any number of annotators and any level, with missing ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval.core.errors import ConfigError, did_you_mean, shorten
from multimodal_eval.core.levels import LEVELS, Level
from multimodal_eval.stats.ratings import Codes, Ratings, SparseTable, as_ratings, patterns
from multimodal_eval.stats.resampling import (
    NO_PAIRS,
    ONE_LABEL,
    RESAMPLES,
    Agreement,
    Figures,
    Resampling,
    Vector,
    estimate,
    pseudo_codes,
    rare,
    ratio,
    side_by_side,
    undefined,
    with_interval,
    without_interval,
)

MAX_RATIO_VALUES = 5000  # expected disagreement at the ratio level is a sum over all pairs of values
_ROUNDING = 1e-12


def krippendorff_alpha(
    ratings: ArrayLike | Ratings,
    level: Level = "nominal",
    *,
    order: Sequence[Any] | None = None,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Agreement:
    """alpha = 1 - D_o / D_e, observed over expected disagreement.

    With n_uc ratings c of unit u, m_u = sum_c n_uc >= 2 and the coincidences
    o_ck = sum_u n_uc (n_uk - [c = k]) / (m_u - 1), n_c = sum_k o_ck, n = sum_c n_c:

        D_o = sum_ck o_ck d2(c, k) / n,    D_e = sum_ck n_c n_k d2(c, k) / (n (n - 1))

    The distance d2 is [c != k] (nominal), (r_c - r_k)^2 with the mid-ranks r_c = n_1 + … + n_c - n_c / 2
    (ordinal), (c - k)^2 (interval) or ((c - k) / (c + k))^2 (ratio).

    `ratings` are units x annotators. Missing ratings are NaN, None or "" (see `as_ratings`). Units with
    fewer than two ratings are left out. `groups` are integer codes, one per unit, for a bootstrap over
    groups. The value is None if all ratings have the same label, because no disagreement was possible.

    Reference:
        Krippendorff (2011). Computing Krippendorff's Alpha-Reliability. University of Pennsylvania.
        Hayes and Krippendorff (2007). Answering the Call for a Standard Reliability Measure for Coding Data.
    """
    table = as_ratings(ratings, order)
    _check_level(table, level)
    pairable = table.per_unit >= 2
    units = table.only(pairable)
    n_units, n_annotators = len(units.codes), units.annotators
    name = f"Krippendorff's alpha ({level})"
    if not n_units:
        return undefined(name, n_units, n_annotators, NO_PAIRS)
    distinct, pattern = patterns(np.sort(units.codes, axis=1))  # alpha does not depend on who gave which rating
    pseudo = np.sort(pseudo_codes(units.codes, len(table.values)), axis=1)
    counts = SparseTable.of_labels(np.concatenate([distinct, pseudo]), len(table.values))
    plan = Resampling(resamples, seed, groups).only(pairable)
    statistics, figures = _statistics(counts, table.values, level)
    drawn, others = statistics.split(len(distinct))
    (interval,) = estimate(drawn, pattern, figures, plan, others)
    if interval is None:
        return undefined(name, n_units, n_annotators, ONE_LABEL)
    reason = rare(units.codes) if level in ("nominal", "ordinal") else None
    return with_interval(name, without_interval(interval, reason), n_units, n_annotators)


def _check_level(ratings: Ratings, level: str) -> None:
    if level not in LEVELS:
        raise ConfigError(f"no level of measurement is named {level!r}.{did_you_mean(level, LEVELS)}")
    if level == "nominal":
        return
    if level == "ordinal":
        if not ratings.ordered:
            raise ConfigError("ordinal labels must be numbers, or need an order from lowest to highest")
        return
    if ratings.values.dtype.kind not in "biuf":
        example = shorten(ratings.values[0].item())
        raise ConfigError(f"the level {level!r} needs numbers. Got {example}.")
    if level == "ratio":
        if ratings.values.min(initial=0) < 0:
            raise ConfigError(f"the level 'ratio' needs non-negative numbers. Got {ratings.values.min().item()!r}.")
        if len(ratings.values) > MAX_RATIO_VALUES:
            raise ConfigError(
                f"the level 'ratio' takes up to {MAX_RATIO_VALUES:,} different numbers. "
                f"Got {len(ratings.values):,}. Round them, or use the level 'interval'."
            )


def _statistics(counts: SparseTable, values: NDArray[Any], level: Level) -> tuple[SparseTable, Figures]:
    """The additive statistics of each pattern, and alpha as a function of their totals."""
    row, low, high, coincidence = _coincidences(counts)

    def observed(distances: Vector) -> Vector:
        sums = np.bincount(row, weights=2 * coincidence * distances, minlength=counts.shape[0])
        return sums.astype(np.float64)  # bincount returns integers if there are no pairs

    if level == "nominal":
        return side_by_side([observed(np.ones(len(row))), counts]), _nominal
    if level == "ordinal":
        pairs, column = np.unique(low * len(values) + high, return_inverse=True)
        table = SparseTable.of_cells(row, column, coincidence, (counts.shape[0], len(pairs)))
        return side_by_side([table, counts]), _ordinal(pairs // len(values), pairs % len(values))
    numbers = np.asarray(values, dtype=np.float64)
    if level == "ratio":
        return side_by_side([observed(_ratio_distance(numbers[low], numbers[high])), counts]), _ratio(numbers)
    # Alpha is invariant to shift and scale; standardising keeps the precision of the sums of squares.
    middle = counts.totals(np.ones(counts.shape[0])) @ numbers / counts.values.sum()
    spread = np.abs(numbers - middle).max() or 1.0
    centred = (numbers - middle) / spread
    blocks = [
        observed((centred[low] - centred[high]) ** 2),
        counts.row_sums(),
        counts.times(centred),
        counts.times(centred**2),
    ]
    return side_by_side(blocks), _interval


def _coincidences(counts: SparseTable) -> tuple[Codes, Codes, Codes, Vector]:
    """(row, c, k, n_uc n_uk / (m_u - 1)) for every two labels c < k that occur in the same row."""
    row, entries = counts.rows, np.arange(len(counts.values))
    # Each entry is paired with the entries after it in its row.
    after = counts.starts[row + 1] - entries - 1
    left = np.repeat(entries, after)
    ends = np.cumsum(after)
    right = left + 1 + np.arange(len(left)) - np.repeat(ends - after, after)
    other_ratings = counts.row_sums() - 1
    coincidence = counts.values[left] * counts.values[right] / other_ratings[row[left]]
    return row[left], counts.columns[left], counts.columns[right], coincidence


def _alpha(observed: Vector, expected: Vector, n: Vector) -> Vector:
    """1 - (n - 1) sum o d2 / sum n_c n_k d2."""
    return (1 - ratio((n - 1) * observed, expected))[:, None]


def _nominal(totals: Vector) -> Vector:
    observed, labels = totals[:, 0], totals[:, 1:]
    n = labels.sum(axis=1)
    return _alpha(observed, n**2 - (labels**2).sum(axis=1), n)


def _interval(totals: Vector) -> Vector:
    observed, n, sums, squares = totals.T
    expected = 2 * (n * squares - sums**2)
    # In a resample with a single distinct value, this is a rounding error instead of 0.
    return _alpha(observed, np.where(expected > _ROUNDING * n * squares, expected, 0.0), n)


def _ordinal(low: Codes, high: Codes) -> Figures:
    def alpha(totals: Vector) -> Vector:
        pairs, labels = totals[:, : len(low)], totals[:, len(low) :]
        n = labels.sum(axis=1)
        ranks = np.cumsum(labels, axis=1) - labels / 2 - n[:, None] / 2
        observed = 2 * (pairs * (ranks[:, low] - ranks[:, high]) ** 2).sum(axis=1)
        sums, squares = (labels * ranks).sum(axis=1), (labels * ranks**2).sum(axis=1)
        expected = 2 * (n * squares - sums**2)
        return _alpha(observed, np.where(np.count_nonzero(labels, axis=1) > 1, expected, 0.0), n)

    return alpha


def _ratio_distance(left: Vector, right: Vector) -> Vector:
    total = left + right
    return np.divide(left - right, total, out=np.zeros(total.shape), where=total != 0) ** 2


def _ratio(numbers: Vector) -> Figures:
    distances = _ratio_distance(numbers[:, None], numbers[None, :])

    def alpha(totals: Vector) -> Vector:
        observed, labels = totals[:, 0], totals[:, 1:]
        expected = ((labels @ distances) * labels).sum(axis=1)
        return _alpha(observed, expected, labels.sum(axis=1))

    return alpha
