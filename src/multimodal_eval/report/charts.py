"""The data of the charts: a few aggregated values per chart, no values of single samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.records import Figure
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.distributions import Distribution
from multimodal_eval.report.one_run import OneRun
from multimodal_eval.report.plain_text import visible

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import Pair, RunComparison
    from multimodal_eval.analysis.sensitivity import Sensitivity

_LABEL_LENGTH = 40  # characters


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A labelled value with its interval, for one run (`series`) or one comparison (`verdict`)."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    series: int | msgspec.UnsetType = msgspec.UNSET
    verdict: str | msgspec.UnsetType = msgspec.UNSET


class Intervals(msgspec.Struct, frozen=True, tag="intervals", tag_field="kind"):
    """Values of several runs on one scale."""

    domain: tuple[float, float]
    runs: list[str]
    rows: list[Mark]


class Histogram(msgspec.Struct, frozen=True, tag="histogram", tag_field="kind"):
    """The distribution of a metric."""

    label: str
    runs: list[str]
    edges: list[float]
    logarithmic: bool
    counts: list[list[int]]


class Forest(msgspec.Struct, frozen=True, tag="forest", tag_field="kind"):
    """Differences around zero."""

    rows: list[Mark]


class WeightMark(msgspec.Struct, frozen=True):
    """A part of a composite with its weight and its effective weight."""

    label: str
    weight: float
    effective: float | None
    series: int


class Weights(msgspec.Struct, frozen=True, tag="weights", tag_field="kind"):
    """The parts of a composite."""

    rows: list[WeightMark]
    runs: list[str]


class MetricMarks(msgspec.Struct, frozen=True):
    """One metric for every value of a column."""

    metric: str
    rows: list[Mark]


class SliceChart(msgspec.Struct, frozen=True, tag="slices", tag_field="kind"):
    """The slices of a column, one metric at a time."""

    runs: list[str]
    metrics: list[MetricMarks]


Chart = Intervals | Histogram | Forest | Weights | SliceChart


def _label(text: str) -> str:
    """Shorten a name for a chart and show its invisible characters. Long names often differ at their ends."""
    shown = visible(text)
    return shown if len(shown) <= _LABEL_LENGTH else f"{shown[: _LABEL_LENGTH - 16]}…{shown[-15:]}"


def _labels(texts: Iterable[str]) -> dict[str, str]:
    """Unique labels for the names in one chart: the chart draws equal labels in the same row."""
    labels: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        label = _label(text)
        taken = set(labels.values())
        numbered = (f"{label} ({number})" for number in count(2))
        labels[text] = label if label not in taken else next(name for name in numbered if name not in taken)
    return labels


def _arrow(direction: str) -> str:
    return " ↓" if direction == "lower" else ""


def charts_of(
    runs: Sequence[OneRun],
    metrics: Sequence[str],
    distributions: Mapping[str, Distribution],
    comparison: RunComparison | None,
    sensitivity: Sensitivity | None,
) -> dict[str, Chart]:
    """All charts, by the name of their element in the page."""
    names = list(_labels(run.name for run in runs).values())
    labels = _labels(metrics)
    charts: dict[str, Chart] = {}
    overview = [
        _mark(labels[name] + _arrow(run.entries[name].direction), run.entries[name], index)
        for name in metrics
        for index, run in enumerate(runs)
        if run.run.info.bounds_of(name) == (0, 1) and run.entries[name].value is not None
    ]
    if overview:
        charts["overview"] = Intervals((0, 1), names, overview)
    for index, (name, bins) in enumerate(distributions.items()):
        charts[f"spread-{index}"] = Histogram(_label(name), names, bins.edges, bins.logarithmic, bins.counts)
    if comparison is not None:
        charts |= _forests(runs[0].run, comparison)
    if sensitivity is not None:
        charts["weights"] = _weights(sensitivity)
    columns = [slices.column for slices in runs[0].slices]
    shared = [column for column in columns if all(column in {s.column for s in run.slices} for run in runs)]
    for index, column in enumerate(shared):
        charts[f"slices-{index}"] = _slice_chart(column, runs, metrics, names)
    return charts


def _mark(label: str, figure: Figure, series: int) -> Mark:
    return Mark(label=label, value=figure.value, low=figure.low, high=figure.high, series=series)


def _forests(run: Run, comparison: RunComparison) -> dict[str, Chart]:
    """One chart of the differences as shares of the metric's range; a metric without a range gets a separate chart."""
    several = len(comparison.runs) > 2
    shared: list[Mark] = []
    charts: dict[str, Chart] = {}
    names = _labels(comparison.runs)
    labels = _labels(metric.name for metric in comparison.numbers)
    for index, metric in enumerate(comparison.numbers):
        low, high = run.info.bounds_of(metric_and_part(metric.name, run.info.bounds)[0])
        width = high - low if low is not None and high is not None else None
        label = labels[metric.name] + _arrow(metric.direction)
        rows = [
            _difference(
                f"{label}: {names[pair.second]} − {names[pair.first]}" if several else label,
                pair,
                (-1 if metric.direction == "lower" else 1) / (width or 1.0),
            )
            for pair in metric.pairs
        ]
        if width is not None:
            shared += rows
        else:
            charts[f"forest-{index}"] = Forest(rows)
    return {"forest": Forest(shared), **charts} if shared else charts


def _difference(label: str, pair: Pair, scale: float) -> Mark:
    """A difference in the units of its chart. A negative scale flips it, so that right is better."""
    ends = [None if end is None else scale * end for end in (pair.low, pair.high)]
    low, high = ends if scale > 0 else ends[::-1]
    return Mark(label=label, value=scale * pair.difference, low=low, high=high, verdict=pair.verdict)


def _weights(sensitivity: Sensitivity) -> Weights:
    labels = _labels(part.part for run in sensitivity.runs for part in run.parts)
    rows = [
        WeightMark(labels[part.part], part.weight, part.effective, index)
        for index, run in enumerate(sensitivity.runs)
        for part in run.parts
    ]
    return Weights(rows, [_label(run.run) for run in sensitivity.runs])


def _slice_chart(column: str, runs: Sequence[OneRun], metrics: Sequence[str], names: Sequence[str]) -> SliceChart:
    """The slices of a column, for each metric that has a value in them."""
    marks: dict[str, list[Mark]] = {}
    slices_by_run = [next(slices for slices in run.slices if slices.column == column) for run in runs]
    labels = _labels(value for slices in slices_by_run for value in slices.values)
    for metric in metrics:
        for index, slices in enumerate(slices_by_run):
            for value, entries in slices.values.items():
                entry = entries.get(metric)
                if entry is not None and entry.value is not None:
                    marks.setdefault(metric, []).append(_mark(labels[value], entry, index))
    arrows = {name: _arrow(entry.direction) for name, entry in runs[0].entries.items()}
    return SliceChart(list(names), [MetricMarks(_label(name) + arrows[name], rows) for name, rows in marks.items()])
