"""What the page's script draws: few numbers a chart, no sample's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from typing import Any

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.analysis.sensitivity import Sensitivity
from multimodal_eval.core.records import Figure
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.distributions import Distribution
from multimodal_eval.report.one_run import OneRun
from multimodal_eval.report.plain_text import visible

_LABEL = 40  # characters of a name in a chart


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
) -> dict[str, dict[str, Any]]:
    """Every chart by the name of its place in the page."""
    names = list(_labels(run.name for run in runs).values())
    labels = _labels(numbers)
    charts: dict[str, dict[str, Any]] = {}
    overview = [
        {"label": labels[name] + _arrow(run.entries[name].direction), "series": place, **_brief(run.entries[name])}
        for name in numbers
        for place, run in enumerate(runs)
        if run.run.info.bounds_of(name) == (0, 1) and run.entries[name].value is not None
    ]
    if overview:
        charts["overview"] = {"kind": "intervals", "domain": [0, 1], "runs": names, "rows": overview}
    for place, (name, own) in enumerate(spread.items()):
        charts[f"spread-{place}"] = {
            "kind": "histogram",
            "label": _label(name),
            "runs": names,
            **{key: value for key, value in asdict(own).items() if key != "quantiles"},
        }
    if comparison is not None:
        charts |= _forests(runs[0].run, comparison)
    if sensitivity is not None:
        charts |= _weights(sensitivity)
    columns = [own for own in runs[0].slices if all(own.column in {s.column for s in run.slices} for run in runs)]
    for place, column in enumerate(columns):
        charts[f"slices-{place}"] = _slice_chart(column.column, runs, numbers, names)
    return charts


def _brief(figure: Figure) -> dict[str, float | None]:
    return {"value": figure.value, "low": figure.low, "high": figure.high}


def _forests(run: Run, comparison: RunComparison) -> dict[str, dict[str, Any]]:
    """Differences in shares of the number's range, all in one; a number without a range by itself."""
    several = len(comparison.runs) > 2
    shared: list[dict[str, Any]] = []
    charts: dict[str, dict[str, Any]] = {}
    names = _labels(comparison.runs)
    labels = _labels(number.name for number in comparison.numbers)
    for place, number in enumerate(comparison.numbers):
        low, high = run.info.bounds_of(number.name.partition(".")[0])
        bounded = low is not None and high is not None
        width = high - low if low is not None and high is not None else 1.0
        sign = -1 if number.direction == "lower" else 1  # to the right is better
        rows = []
        for pair in number.pairs:
            ends = [None if end is None else sign * end / width for end in (pair.low, pair.high)]
            label = labels[number.name] + _arrow(number.direction)
            if several:
                label += f": {names[pair.second]} − {names[pair.first]}"
            rows.append(
                {
                    "label": label,
                    "value": sign * pair.difference / width,
                    "low": ends[0] if sign > 0 else ends[1],
                    "high": ends[1] if sign > 0 else ends[0],
                    "verdict": pair.verdict,
                }
            )
        if bounded:
            shared += rows
        else:
            charts[f"forest-{place}"] = {"kind": "forest", "rows": rows}
    return {"forest": {"kind": "forest", "rows": shared}, **charts} if shared else charts


def _weights(sensitivity: Sensitivity) -> dict[str, dict[str, Any]]:
    labels = _labels(part.part for run in sensitivity.runs for part in run.parts)
    rows = [
        {"label": labels[part.part], "weight": part.weight, "effective": part.effective, "series": place}
        for place, run in enumerate(sensitivity.runs)
        for part in run.parts
    ]
    names = [_label(run.run) for run in sensitivity.runs]
    return {"weights": {"kind": "weights", "rows": rows, "runs": names}}


def _slice_chart(column: str, runs: Sequence[OneRun], numbers: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """The values of a column, for each number that they have."""
    by_number: dict[str, list[dict[str, Any]]] = {}
    sliced = [next(found for found in run.slices if found.column == column) for run in runs]
    labels = _labels(value for own in sliced for value in own.values)
    for number in numbers:
        for place, own in enumerate(sliced):
            for value, entries in own.values.items():
                entry = entries.get(number)
                if entry is not None and entry.value is not None:
                    row = {"label": labels[value], "series": place, **_brief(entry)}
                    by_number.setdefault(number, []).append(row)
    arrows = {name: _arrow(entry.direction) for name, entry in runs[0].entries.items()}
    charts = [{"number": _label(name) + arrows[name], "rows": rows} for name, rows in by_number.items()]
    return {"kind": "slices", "runs": list(names), "numbers": charts}
