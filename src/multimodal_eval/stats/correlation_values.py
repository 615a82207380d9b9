"""Pearson's and Spearman's correlation of long columns, without influence values: fast for a million rows.

`correlation` has the same coefficients with the influence values that intervals and tests need.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import sqrt

import numpy as np

from multimodal_eval.stats.intervals import Vector

__all__ = ["pearson_value", "spearman_value"]


def pearson_value(x: Vector, y: Vector) -> float | None:
    """r = cov(x, y) / (sd(x) sd(y)); None for fewer than two rows or a constant column."""
    if len(x) != len(y):
        raise ValueError(f"x and y must have the same length. Got {len(x)} and {len(y)} instead.")
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return None
    a, b = _centred(x), _centred(y)
    return max(-1.0, min(1.0, float(a @ b) / sqrt(float(a @ a) * float(b @ b))))


def spearman_value(x: Vector, y: Vector) -> float | None:
    """Pearson's r of the mid-ranks; the two columns are sorted at the same time."""
    with ThreadPoolExecutor(2) as threads:
        ranks_x, ranks_y = threads.map(mid_ranks, (x, y))
    return pearson_value(ranks_x, ranks_y)


def mid_ranks(values: Vector) -> Vector:
    """Ranks from 1; equal values share the mean of their ranks."""
    order = np.argsort(values)
    in_order = values[order]
    starts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
    ends = np.append(starts[1:], len(values))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat((starts + 1 + ends) / 2, ends - starts)
    return ranks


def _centred(values: Vector) -> Vector:
    """Minus the mean, and scaled so that no square overflows; r does not change."""
    scaled = values / np.max(np.abs(values))
    centred: Vector = scaled - scaled.mean()
    return centred
