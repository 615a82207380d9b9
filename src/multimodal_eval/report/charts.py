"""What the page's script draws: few numbers a chart, no sample's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import msgspec

from multimodal_eval.analysis.compare import Pair, RunComparison
from multimodal_eval.analysis.sensitivity import Sensitivity
from multimodal_eval.core.records import Figure
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.distributions import Distribution
from multimodal_eval.report.one_run import OneRun
from multimodal_eval.report.plain_text import visible

_LABEL = 40  # characters of a name in a chart


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value with its interval, beside its label; of one run (`series`) or of a comparison (`verdict`)."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    series: int | msgspec.UnsetType = msgspec.UNSET
    verdict: str | msgspec.UnsetType = msgspec.UNSET


class Intervals(msgspec.Struct, frozen=True, tag="intervals", tag_field="kind"):
    """Values of several runs, all in one range."""

    domain: tuple[float, float]
    runs: list[str]
    rows: list[Mark]


class Histogram(msgspec.Struct, frozen=True, tag="histogram", tag_field="kind"):
    """How the values of a number are spread."""

    label: str
    runs: list[str]
    edges: list[float]
    logarithmic: bool
    counts: list[list[int]]


class Forest(msgspec.Struct, frozen=True, tag="forest", tag_field="kind"):
    """Differences around zero."""

    rows: list[Mark]


class WeightMark(msgspec.Struct, frozen=True):
    """A part of a composite: what it is given, and what it does."""

    label: str
    weight: float
    effective: float | None
    series: int


class Weights(msgspec.Struct, frozen=True, tag="weights", tag_field="kind"):
    """The parts of a composite."""

    rows: list[WeightMark]
    runs: list[str]


class NumberMarks(msgspec.Struct, frozen=True):
    """One number of every value of a column."""

    number: str
    rows: list[Mark]


class SliceChart(msgspec.Struct, frozen=True, tag="slices", tag_field="kind"):
    """The values of a column, a number at a time."""

    runs: list[str]
    numbers: list[NumberMarks]


Chart = Intervals | Histogram | Forest | Weights | SliceChart


def _label(text: str) -> str:
    """A name beside a chart: no invisible characters, and not too long. Long names often differ at their ends."""
    shown = visible(text)
    return shown if len(shown) <= _LABEL else f"{shown[: _LABEL - 16]}…{shown[-15:]}"


def _labels(texts: Iterable[str]) -> dict[str, str]:
    """Names beside one chart, which draws what has one label in one place: no two names get the same."""
    found: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        label = _label(text)
        taken = set(found.values())
        again = (f"{label} ({number})" for number in count(2))
        found[text] = label if label not in taken else next(own for own in again if own not in taken)
    return found


def _arrow(direction: str) -> str:
    return " ↓" if direction == "lower" else ""


def charts_of(
    runs: Sequence[OneRun],
    numbers: Sequence[str],
    spread: Mapping[str, Distribution],
    comparison: RunComparison | None,
    sensitivity: Sensitivity | None,
) -> dict[str, Chart]:
    """Every chart by the name of its place in the page."""
    names = list(_labels(run.name for run in runs).values())
    labels = _labels(numbers)
    charts: dict[str, Chart] = {}
    overview = [
        _mark(labels[name] + _arrow(run.entries[name].direction), run.entries[name], place)
        for name in numbers
        for place, run in enumerate(runs)
        if run.run.info.bounds_of(name) == (0, 1) and run.entries[name].value is not None
    ]
    if overview:
        charts["overview"] = Intervals((0, 1), names, overview)
    for place, (name, bins) in enumerate(spread.items()):
        charts[f"spread-{place}"] = Histogram(_label(name), names, bins.edges, bins.logarithmic, bins.counts)
    if comparison is not None:
        charts |= _forests(runs[0].run, comparison)
    if sensitivity is not None:
        charts["weights"] = _weights(sensitivity)
    columns = [own for own in runs[0].slices if all(own.column in {s.column for s in run.slices} for run in runs)]
    for place, column in enumerate(columns):
        charts[f"slices-{place}"] = _slice_chart(column.column, runs, numbers, names)
    return charts


def _mark(label: str, figure: Figure, series: int) -> Mark:
    return Mark(label=label, value=figure.value, low=figure.low, high=figure.high, series=series)


def _forests(run: Run, comparison: RunComparison) -> dict[str, Chart]:
    """Differences in shares of the number's range, all in one; a number without a range by itself."""
    several = len(comparison.runs) > 2
    shared: list[Mark] = []
    charts: dict[str, Chart] = {}
    names = _labels(comparison.runs)
    labels = _labels(number.name for number in comparison.numbers)
    for place, number in enumerate(comparison.numbers):
        low, high = run.info.bounds_of(number.name.partition(".")[0])
        width = high - low if low is not None and high is not None else None
        label = labels[number.name] + _arrow(number.direction)
        rows = [
            _difference(
                f"{label}: {names[pair.second]} − {names[pair.first]}" if several else label,
                pair,
                (-1 if number.direction == "lower" else 1) / (width or 1.0),
            )
            for pair in number.pairs
        ]
        if width is not None:
            shared += rows
        else:
            charts[f"forest-{place}"] = Forest(rows)
    return {"forest": Forest(shared), **charts} if shared else charts


def _difference(label: str, pair: Pair, scale: float) -> Mark:
    """A difference in units of its chart; a negative scale turns it round, so that right is better."""
    ends = [None if end is None else scale * end for end in (pair.low, pair.high)]
    low, high = ends if scale > 0 else ends[::-1]
    return Mark(label=label, value=scale * pair.difference, low=low, high=high, verdict=pair.verdict)


def _weights(sensitivity: Sensitivity) -> Weights:
    labels = _labels(part.part for run in sensitivity.runs for part in run.parts)
    rows = [
        WeightMark(labels[part.part], part.weight, part.effective, place)
        for place, run in enumerate(sensitivity.runs)
        for part in run.parts
    ]
    return Weights(rows, [_label(run.run) for run in sensitivity.runs])


def _slice_chart(column: str, runs: Sequence[OneRun], numbers: Sequence[str], names: Sequence[str]) -> SliceChart:
    """The values of a column, for each number that they have."""
    by_number: dict[str, list[Mark]] = {}
    sliced = [next(found for found in run.slices if found.column == column) for run in runs]
    labels = _labels(value for own in sliced for value in own.values)
    for number in numbers:
        for place, own in enumerate(sliced):
            for value, entries in own.values.items():
                entry = entries.get(number)
                if entry is not None and entry.value is not None:
                    by_number.setdefault(number, []).append(_mark(labels[value], entry, place))
    arrows = {name: _arrow(entry.direction) for name, entry in runs[0].entries.items()}
    return SliceChart(list(names), [NumberMarks(_label(name) + arrows[name], rows) for name, rows in by_number.items()])
