"""Drawings that the server makes: forest plots, scatter plots and heat maps of slices, with their axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import Direction, metric_and_part
from multimodal_eval.core.records import RunInfo
from multimodal_eval.display.scales import round_step
from multimodal_eval.stats.correlation import pearson_value, spearman_value

__all__ = ["HeatCell", "HeatMap", "HeatMetric", "HeatRow", "heat_map"]


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position, in percent of the axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis from `low` to `high`."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The length in the units of the data."""
        return self.high - self.low

    def at(self, value: float) -> float:
        """The position of a value in percent; values outside are at the nearer end."""
        if self.width <= 0 or not isfinite(self.width):
            return 50.0
        return min(100.0, max(0.0, 100 * (value - self.low) / self.width))

    def ticks(self, most: int = 6) -> list[Tick]:
        """At most `most` ticks at round values within the axis."""
        if self.width <= 0 or not isfinite(self.width):
            return [Tick(50.0, f"{self.low:g}")]
        step = round_step(self.width / max(most - 1, 1))
        first, last = -floor(-self.low / step), floor(self.high / step)
        places = max(0, -floor(log10(step) + 1e-9)) + (1 if _has_half(step) else 0)
        return [Tick(self.at(n * step), _label(n * step, places)) for n in range(first, last + 1)][: most + 1]


def around(low: float, high: float, share: float = 0.04) -> Axis:
    """An axis with a margin at both ends. A single value gets an axis of its size around it."""
    margin = share * (high - low) if low < high else abs(low) * 0.1 or 0.5
    return Axis(low - margin, high + margin)


def _has_half(step: float) -> bool:
    """Whether a step such as 2.5 needs one more digit."""
    return abs(step / 10.0 ** floor(log10(step) + 1e-9) - 2.5) < 1e-6


def _label(value: float, places: int) -> str:
    if places > 6 or abs(value) >= 1e7:
        return f"{value:.3g}"
    return f"{value + 0.0:.{places}f}"


# The forest plot of a comparison: differences with their intervals around zero, so that right is better.
#
# Differences of metrics with bounds share one axis, in shares of the metric's range. Each metric without bounds has an
# axis of its own.


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


# A plot of two columns of scores: single points, or the density of many points in square cells.


MOST_POINTS = 2_000  # more are drawn as density
COLUMNS, ROWS = 64, 48  # cells
SIDE = 1_000  # units of a drawing of points
LEVELS = 6  # shades

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Level:
    """The cells of one shade as an SVG path, and the counts that it shows."""

    number: int
    path: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class ScatterPlot:
    """What the page draws. Paths are in the units of `view`, with the origin at the top left."""

    count: int
    x: Axis
    y: Axis
    view: tuple[int, int]
    points: str  # a path with one dot per sample, or nothing
    levels: list[Level]  # or nothing
    has_diagonal: bool
    pearson: float | None
    spearman: float | None


def scatter_plot(x: Vector, y: Vector, *, same_scale: bool) -> ScatterPlot | None:
    """The plot of finite values; None if there are none. On the same scale, both axes are equal, with a diagonal."""
    if not len(x):
        return None
    x_axis, y_axis = _axes(x, y, same_scale=same_scale)
    few = len(x) <= MOST_POINTS
    return ScatterPlot(
        len(x),
        x_axis,
        y_axis,
        (SIDE, SIDE) if few else (COLUMNS, ROWS),
        _dots(x, y, x_axis, y_axis) if few else "",
        [] if few else _levels(_cells(x, y, x_axis, y_axis)),
        same_scale,
        pearson_value(x, y),
        spearman_value(x, y),
    )


def _axes(x: Vector, y: Vector, *, same_scale: bool) -> tuple[Axis, Axis]:
    ends = [(float(values.min()), float(values.max())) for values in (x, y)]
    if same_scale:
        ends = [(min(low for low, _ in ends), max(high for _, high in ends))] * 2
    first, second = (around(low, high, 0.02) for low, high in ends)
    return first, second


def _dots(x: Vector, y: Vector, x_axis: Axis, y_axis: Axis) -> str:
    """A line of length 0 per point, which round line ends draw as a dot."""
    across = np.rint(SIDE * (x - x_axis.low) / x_axis.width).astype(int).tolist()
    down = np.rint(SIDE * (y_axis.high - y) / y_axis.width).astype(int).tolist()
    return "".join(f"M{column} {row}h0" for column, row in zip(across, down, strict=True))


def _cells(x: Vector, y: Vector, x_axis: Axis, y_axis: Axis) -> NDArray[np.int64]:
    """How many points each cell has; the first row is at the top."""
    across = np.minimum((x - x_axis.low) * (COLUMNS / x_axis.width), COLUMNS - 1).astype(np.int32)
    down = np.minimum((y_axis.high - y) * (ROWS / y_axis.width), ROWS - 1).astype(np.int32)
    return np.bincount(down * COLUMNS + across, minlength=ROWS * COLUMNS).reshape(ROWS, COLUMNS)


def _levels(cells: NDArray[np.int64]) -> list[Level]:
    """The cells by shade: each shade is an equal step of the cube root of the count, so that rare points are seen."""
    shades = np.ceil(LEVELS * np.cbrt(cells / cells.max()) - 1e-9).astype(int)
    levels = []
    for number in range(1, LEVELS + 1):
        counts = cells[shades == number]
        if len(counts):
            levels.append(Level(number, _path(shades == number), int(counts.min()), int(counts.max())))
    return levels


def _path(cells: NDArray[np.bool_]) -> str:
    """The cells as rectangles; neighbours in a row are one rectangle."""
    pieces = []
    for row in np.flatnonzero(cells.any(axis=1)).tolist():
        edges = np.flatnonzero(np.diff(np.concatenate(([False], cells[row], [False])).astype(np.int8))).tolist()
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            pieces.append(f"M{start} {row}h{end - start}v1h{start - end}z")
    return "".join(pieces)


# Slices as a heat map: a row per value of a column, a column per metric, shaded by the distance to the whole run.


STRONGEST = 3  # shades on each side


@dataclass(frozen=True, slots=True)
class HeatMetric:
    """A column of the map: a metric and its value over all samples."""

    name: str
    direction: Direction
    overall: float | None


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A metric of a slice. The shade is from -3 (worse than the whole run) to 3 (better), 0 within a standard error."""

    entry: Figure | None
    shade: int = 0


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A slice."""

    value: str
    count: int
    cells: list[HeatCell]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """All slices of a column."""

    column: str
    metrics: list[HeatMetric]
    rows: list[HeatRow]


def heat_map(
    column: str, slices: Mapping[str, Mapping[str, Figure]], counts: Mapping[str, int], overall: Mapping[str, Figure]
) -> HeatMap:
    """The map of a column's slices, which have entries by value and metric; `overall` are those of the whole run."""
    names = [name for name in overall if any(name in metrics for metrics in slices.values())]
    names += _others(slices.values(), names)
    metrics = [
        HeatMetric(name, overall[name].better, overall[name].value)
        if name in overall
        else HeatMetric(name, "higher", None)
        for name in names
    ]
    rows = [
        HeatRow(value, counts[value], [_cell(entries.get(metric.name), metric) for metric in metrics])
        for value, entries in slices.items()
    ]
    return HeatMap(column, metrics, rows)


def _others(slices: Iterable[Mapping[str, Figure]], known: list[str]) -> list[str]:
    return [name for name in dict.fromkeys(name for metrics in slices for name in metrics) if name not in known]


def _cell(entry: Figure | None, metric: HeatMetric) -> HeatCell:
    if entry is None or entry.value is None or metric.overall is None or not entry.stderr:
        return HeatCell(entry)
    distance = (entry.value - metric.overall) / entry.stderr
    better = -distance if metric.direction == "lower" else distance
    return HeatCell(entry, int(max(-STRONGEST, min(STRONGEST, better))))
