"""The forest plot of a comparison: differences with their intervals around zero, so that right is better.

Differences of metrics with bounds share one axis, in shares of the metric's range. Each metric without bounds has an
axis of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.records import RunInfo
from multimodal_eval.report.viewer.axis import Axis, Tick, around


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One difference with its positions on the axis, in percent."""

    metric: MetricComparison
    pair: Pair
    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Forest:
    """Differences on one axis."""

    rows: list[ForestRow]
    zero: float
    ticks: list[Tick]
    is_share: bool  # of the range of each metric


def forests_of(comparison: RunComparison, info: RunInfo) -> list[Forest]:
    """The forests of all metrics, that of the metrics with bounds first; the headline leads."""
    metrics = sorted(comparison.numbers, key=lambda metric: metric.name != comparison.headline)
    bounded = [(metric, width) for metric in metrics if (width := _width(metric, info)) is not None]
    unbounded = [metric for metric in metrics if _width(metric, info) is None]
    forests = [_forest(bounded, is_share=True)] if bounded else []
    return forests + [_forest([(metric, 1.0)], is_share=False) for metric in unbounded]


def _width(metric: MetricComparison, info: RunInfo) -> float | None:
    low, high = info.bounds_of(metric_and_part(metric.name, info.bounds)[0])
    return high - low if low is not None and high is not None and high > low else None


def _forest(metrics: Sequence[tuple[MetricComparison, float]], *, is_share: bool) -> Forest:
    scaled = [
        (metric, pair, (-1 if metric.direction == "lower" else 1) / width)
        for metric, width in metrics
        for pair in metric.pairs
    ]
    axis = _axis(pair_ends for _, pair, scale in scaled for pair_ends in _ends(pair, scale))
    rows = []
    for metric, pair, scale in scaled:
        value, *interval = _ends(pair, scale)
        low, high = sorted(axis.at(end) for end in interval) if interval else (None, None)
        rows.append(ForestRow(metric, pair, axis.at(value), low, high))
    return Forest(rows, axis.at(0.0), axis.ticks(5), is_share)


def _ends(pair: Pair, scale: float) -> list[float]:
    """The difference, and the ends of its interval if it has one."""
    return [scale * value for value in (pair.difference, pair.low, pair.high) if value is not None]


def _axis(values: Iterable[float]) -> Axis:
    """An axis that contains all values and zero."""
    known = [0.0, *values]
    return around(min(known), max(known))
