"""A plot of two columns of scores: single points, or the density of many points in square cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.report.viewer.axis import Axis, around
from multimodal_eval.stats.correlation_values import pearson_value, spearman_value

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
