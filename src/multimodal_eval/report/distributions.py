"""The distribution of a metric: counts in a few bins and some quantiles, never the values themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from multimodal_eval.analysis.pairing import Vector
from multimodal_eval.display.scales import Scale, Tick, nice_scale, tick_label
from multimodal_eval.display.wording import counted

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


# The distribution of a metric as bars, outlines and cumulated shares, in percent of the drawing.


@dataclass(frozen=True)
class Bar:
    """The samples in one bin."""

    x: float
    width: float
    y: float
    height: float
    title: str


@dataclass(frozen=True)
class Line:
    """The distribution of one run as the data of an SVG path, with coordinates from 0 to 100."""

    tone: str
    outline: str  # of the bars
    cumulated: str  # the share of the samples up to each edge


@dataclass(frozen=True)
class Histogram:
    """The distribution of a metric in all runs. One run has bars, several have outlines of shares."""

    bars: list[Bar]
    lines: list[Line]
    ticks: list[Tick]
    heights: list[Tick]  # ticks of the vertical axis
    logarithmic: bool


def histogram(bins: Distribution) -> Histogram:
    """Draw the counts of all runs."""
    places = _places(bins)
    is_single = len(bins.counts) == 1
    totals = [max(1, sum(counts)) for counts in bins.counts]
    heights = [
        [count if is_single else 100 * count / total for count in counts]
        for counts, total in zip(bins.counts, totals, strict=True)
    ]
    scale = nice_scale([max(map(max, heights))], (0, None), is_count=True)
    return Histogram(
        _bars(bins, places, scale) if is_single else [],
        [
            Line(f"series-{index % 6 + 1}", _outline(places, run, scale), _cumulated(places, counts))
            for index, (run, counts) in enumerate(zip(heights, bins.counts, strict=True))
        ],
        _ticks(bins),
        [Tick(tick.at, tick.label if is_single else f"{tick.label}%") for tick in scale.ticks],
        bins.logarithmic,
    )


def _places(bins: Distribution) -> list[float]:
    """The places of the edges, which are equally far apart on their scale."""
    return [100 * number / (len(bins.edges) - 1) for number in range(len(bins.edges))]


def _bars(bins: Distribution, places: Sequence[float], scale: Scale) -> list[Bar]:
    return [
        Bar(
            round(places[number] + 0.2, 3),
            round(places[number + 1] - places[number] - 0.4, 3),
            round(100 - scale.at(count), 3),
            scale.at(count),
            f"{bins.edges[number]:.4g} to {bins.edges[number + 1]:.4g}: {counted(count, 'sample')}",
        )
        for number, count in enumerate(bins.counts[0])
        if count
    ]


def _outline(places: Sequence[float], heights: Sequence[float], scale: Scale) -> str:
    steps = [f"V{100 - scale.at(height):g}H{right:g}" for height, right in zip(heights, places[1:], strict=True)]
    return f"M{places[0]:g},100{''.join(steps)}V100"


def _cumulated(places: Sequence[float], counts: Sequence[int]) -> str:
    total, points, cumulated = max(1, sum(counts)), [f"M{places[0]:g},100"], 0
    for count, right in zip(counts, places[1:], strict=True):
        cumulated += count
        points.append(f"L{right:g},{100 - 100 * cumulated / total:.4g}")
    return "".join(points)


def _ticks(bins: Distribution) -> list[Tick]:
    """Round values on a linear scale; on a logarithmic one, every fifth edge."""
    low, high = bins.edges[0], bins.edges[-1]
    if not bins.logarithmic:
        scale, whole = nice_scale([low, high]), Scale(low, high, 1)
        step = (scale.high - scale.low) / scale.steps
        values = [scale.low + step * number for number in range(scale.steps + 1)]
        inside = [value for value in values if low - step / 1000 <= value <= high + step / 1000]
        return [Tick(whole.at(value), tick_label(0.0 if abs(value) < step / 1000 else value)) for value in inside]
    width = log(high / low)
    values = [value for value in _decades(low, high) if low <= value <= high]
    if len(values) < 2:
        values = [low, high]
    return [Tick(round(100 * log(value / low) / width, 3), tick_label(value)) for value in values]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 times them if the range is short."""
    first = 10.0 ** int(f"{low:e}".partition("e")[2])
    factors = (1, 2, 5) if high / low < 200 else (1,)
    values, power = [], first
    while power <= high:
        values += [factor * power for factor in factors]
        power *= 10
    every = max(1, len(values) // 6)
    return values[::every]
