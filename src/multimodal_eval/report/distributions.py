"""The distribution of a metric: counts in a few bins and some quantiles, never the values themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from multimodal_eval.analysis.pairing import Vector

BINS = 20
QUANTILES = {"lowest": 0.0, "5%": 0.05, "25%": 0.25, "median": 0.5, "75%": 0.75, "95%": 0.95, "highest": 1.0}
LOGARITHMIC_RATIO = 20  # from this ratio of the extremes, a metric without an upper bound gets a logarithmic scale

Bounds = tuple[float | None, float | None]


@dataclass(frozen=True)
class Distribution:
    """The values of several runs in the same bins."""

    edges: list[float]
    logarithmic: bool
    counts: list[list[int]]  # per run
    quantiles: list[dict[str, float] | None]  # per run; None if no sample is scored


def distribution(values: Sequence[Vector], bounds: Bounds) -> Distribution | None:
    """Count the scored values of each run; None if no run has any."""
    scored = [run[~np.isnan(run)] for run in values]
    everything = np.concatenate(scored)
    if not len(everything):
        return None
    low, high = float(everything.min()), float(everything.max())
    logarithmic = is_logarithmic(low, high, bounds)
    if logarithmic:
        edges = np.geomspace(low, high, BINS + 1)
        edges[0], edges[-1] = low, high  # keep rounding from excluding the extremes
    else:
        edges = np.linspace(*limits(low, high, bounds), BINS + 1)
    return Distribution(
        edges.tolist(),
        logarithmic,
        [np.histogram(run, edges)[0].tolist() for run in scored],
        [_quantiles(run) for run in scored],
    )


def is_logarithmic(low: float, high: float, bounds: Bounds) -> bool:
    """Whether the values of a metric without an upper bound spread over orders of magnitude."""
    return bounds[1] is None and low > 0 and high / low >= LOGARITHMIC_RATIO


def limits(low: float, high: float, bounds: Bounds) -> tuple[float, float]:
    """The whole range of the metric if the values cover at least a third of it, otherwise the range of the values."""
    least, most = bounds
    if least is not None and most is not None and least <= low <= high <= most and (high - low) * 3 >= most - least > 0:
        return least, most
    if low == high:
        margin = max(abs(low), 1.0) / 20
        return low - margin, high + margin
    return low, high


def _quantiles(values: Vector) -> dict[str, float] | None:
    if not len(values):
        return None
    quantiles: list[Any] = np.quantile(values, list(QUANTILES.values())).tolist()
    return dict(zip(QUANTILES, quantiles, strict=True))
