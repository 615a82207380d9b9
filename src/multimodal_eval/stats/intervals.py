"""Standard errors and intervals from influence values, clustered where samples belong together.

Reference:
    Miller (2024). Adding Error Bars to Evals. arXiv:2411.00640, section 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its uncertainty; `stderr`, `low` and `high` are None where there is no telling."""

    value: float
    stderr: float | None
    low: float | None
    high: float | None
    method: str


def standard_error(influence: NDArray[np.float64], clusters: NDArray[np.int64] | None = None) -> float | None:
    """SE = (1/n) sqrt( C/(C-1) * sum over clusters c of (sum over i in c of psi_i)^2 ).

    Without `clusters` each sample is its own: for a mean this is the usual s / sqrt(n).
    `clusters` are integer codes. None where there is but one cluster.
    """
    sums = influence if clusters is None else np.bincount(clusters, weights=influence)
    if clusters is not None:
        sums = sums[np.bincount(clusters) > 0]
    count = len(sums)
    if count < 2:
        return None
    return sqrt(fsum(sums * sums) * count / (count - 1)) / len(influence)


def t_interval(estimate: Estimate, clusters: NDArray[np.int64] | None = None, level: float = LEVEL) -> Interval:
    """estimate ± t * SE, with t of C - 1 degrees of freedom for C clusters."""
    from scipy.special import stdtrit

    error = standard_error(estimate.influence, clusters)
    count = len(estimate.influence) if clusters is None else len(np.unique(clusters))
    unit = "samples" if clusters is None else "clusters"
    if error is None:
        return Interval(estimate.value, None, None, None, f"no interval: {count} {unit[:-1]}")
    half = float(stdtrit(count - 1, (1 + level) / 2)) * error
    method = f"{level:.0%} t interval, {count} {unit}"
    return Interval(estimate.value, error, estimate.value - half, estimate.value + half, method)
