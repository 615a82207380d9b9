"""All charts of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from multimodal_eval.core.metric import Bounds
from multimodal_eval.core.records import Figure
from multimodal_eval.report.charts.dots import (
    DotChart,
    Scale,
    Tick,
    Value,
    ValueRow,
    difference_chart,
    leader,
    nice_scale,
    panel,
    series,
    tick_label,
)
from multimodal_eval.report.distributions import Distribution
from multimodal_eval.report.one_run import OneRun
from multimodal_eval.report.wording import estimate, label, labels

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.analysis.composite import PartWeight, Sensitivity

__all__ = [
    "Bar",
    "Charts",
    "Histogram",
    "Line",
    "SliceCharts",
    "charts_of",
    "histogram",
    "score_chart",
    "slice_charts",
    "weight_chart",
]


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
            Line(series(index), _outline(places, run, scale), _cumulated(places, counts))
            for index, (run, counts) in enumerate(zip(heights, bins.counts, strict=True))
        ],
        _ticks(bins),
        [Tick(tick.at, tick.label if is_single else f"{tick.label} %") for tick in scale.ticks],
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
            f"{bins.edges[number]:.4g} to {bins.edges[number + 1]:.4g}: {count:,} samples",
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


# The chart of all scores: every metric of every run with its interval, on the scale of the metric.


_SHARED: Bounds = (0, 1)  # metrics with this range are in the same panel


@dataclass(frozen=True)
class _Scores:
    """A metric, or a part of one that has parts only, in all runs."""

    name: str
    metric: str
    figures: list[Figure | None]

    @property
    def is_scored(self) -> bool:
        return any(figure is not None and figure.value is not None for figure in self.figures)


def score_chart(runs: Sequence[OneRun], metrics: Sequence[str], main: str) -> DotChart | None:
    """Every metric with a value in some run, the headline first; None if no metric has one.

    Metrics from 0 to 1 share a scale. Every other metric has a panel with a scale of its own.
    """
    ordered = [*(name for name in metrics if name == main), *(name for name in metrics if name != main)]
    scored = [each for name in ordered for each in _scores_of(runs, name) if each.is_scored]
    if not scored:
        return None
    shown = labels(each.name for each in scored)
    rows = [(runs[0].run.info.bounds_of(each.metric), _row(runs, each, shown[each.name], main)) for each in scored]
    shared = [row for bounds, row in rows if bounds == _SHARED]
    panels = [panel(shared, _SHARED)] if shared else []
    panels += [panel([row], _limits(bounds, row)) for bounds, row in rows if bounds != _SHARED]
    return DotChart(panels, ["Score [95 % interval]"])


def _scores_of(runs: Sequence[OneRun], name: str) -> Iterator[_Scores]:
    """The metric; if it has parts only, its parts."""
    entries = [run.entries[name] for run in runs]
    if any(entry.value is not None for entry in entries):
        yield _Scores(name, name, list(entries))
        return
    for part in entries[0].parts:
        yield _Scores(f"{name}.{part}", name, [entry.parts.get(part) for entry in entries])


def _row(runs: Sequence[OneRun], scores: _Scores, shown: str, main: str) -> ValueRow:
    values, texts = [], []
    for index, (run, figure) in enumerate(zip(runs, scores.figures, strict=True)):
        known = figure if figure is not None and figure.value is not None else None
        text = "–" if known is None else estimate(known.value, known.low, known.high)
        where = f"{shown}, {label(run.name)}" if len(runs) > 1 else shown
        ends = (None, None, None) if known is None else (known.value, known.low, known.high)
        values.append(Value(*ends, series(index), f"{where}: {text}"))
        texts.append(text)
    direction = runs[0].entries[scores.metric].direction
    return ValueRow(shown, values, [texts], direction == "lower", scores.metric == main, scores.name)


def _limits(bounds: Bounds, row: ValueRow) -> Bounds:
    """The whole range of the metric if the values cover much of it; else from its lower bound, if that is near."""
    low, high = bounds
    ends = [end for each in row.values for end in (each.value, each.low, each.high) if end is not None]
    most, least = max(ends), min(ends)
    if low is not None and high is not None and most - low >= (high - low) / 2:
        return low, high
    is_near = low is not None and least >= low and most - low <= 10 * max(most - least, abs(most - low) / 5)
    return (low if is_near else None), None


# Charts of the weights of a composite, and of slices.


@dataclass(frozen=True)
class SliceCharts:
    """The slices by one column: a chart for each metric that has a value in them."""

    column: str
    charts: dict[str, DotChart]  # by metric


def weight_chart(sensitivity: Sensitivity) -> DotChart | None:
    """The weight of each part (ring) and its share of the composite's variance (dot), one per run."""
    shown = labels(part.part for run in sensitivity.runs for part in run.parts)
    rows = []
    for name, short in shown.items():
        values = [
            Value(_percent(part.effective), None, None, series(index), _title(part, run.run), 100 * part.weight)
            for index, run in enumerate(sensitivity.runs)
            for part in run.parts
            if part.part == name
        ]
        rows.append(ValueRow(short, values, []))
    return DotChart([panel(rows, with_origin=True, unit=" %")], []) if rows else None


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _title(part: PartWeight, run: str) -> str:
    effective = "–" if part.effective is None else f"{100 * part.effective:.1f} %"
    return f"{label(part.part)}, {label(run)}: weight {100 * part.weight:.1f} %, effective weight {effective}"


def slice_charts(runs: Sequence[OneRun], metrics: Sequence[str]) -> list[SliceCharts]:
    """The slices by every column that all runs have."""
    columns = [slices.column for slices in runs[0].slices]
    shared = [column for column in columns if all(column in {s.column for s in run.slices} for run in runs)]
    return [SliceCharts(column, _charts(column, runs, metrics)) for column in shared]


def _charts(column: str, runs: Sequence[OneRun], metrics: Sequence[str]) -> dict[str, DotChart]:
    by_run = [next(slices for slices in run.slices if slices.column == column) for run in runs]
    shown = labels(value for slices in by_run for value in slices.values)
    charts = {}
    for metric in metrics:
        rows = []
        for value, short in shown.items():
            entries = [slices.values.get(value, {}).get(metric) for slices in by_run]
            values = [
                Value(
                    entry.value,
                    entry.low,
                    entry.high,
                    series(index),
                    f"{short}{', ' + label(runs[index].name) if len(runs) > 1 else ''}: "
                    f"{estimate(entry.value, entry.low, entry.high)}",
                )
                for index, entry in enumerate(entries)
                if entry is not None and entry.value is not None
            ]
            if values:
                rows.append(ValueRow(short, values, []))
        if rows:
            charts[metric] = DotChart([panel(rows)], [])
    return charts


@dataclass(frozen=True)
class Charts:
    """The charts; None for those that have nothing to show."""

    differences: DotChart | None  # of several runs
    baseline: str | None  # the run that the others are compared with in `differences`
    scores: DotChart | None
    spreads: dict[str, Histogram]  # by metric
    weights: DotChart | None
    slices: list[SliceCharts]


def charts_of(
    runs: Sequence[OneRun],
    metrics: Sequence[str],
    main: str,
    distributions: Mapping[str, Distribution],
    comparison: RunComparison | None,
    sensitivity: Sensitivity | None,
) -> Charts:
    """Draw the charts from the content of the report."""
    return Charts(
        None if comparison is None else difference_chart(comparison, main),
        None if comparison is None or not comparison.numbers else leader(comparison, main),
        score_chart(runs, metrics, main),
        {name: histogram(bins) for name, bins in distributions.items()},
        None if sensitivity is None else weight_chart(sensitivity),
        slice_charts(runs, metrics),
    )
