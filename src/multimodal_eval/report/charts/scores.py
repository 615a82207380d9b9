"""The chart of all scores: every metric of every run with its interval, on the scale of the metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from multimodal_eval.core.metric import Bounds
from multimodal_eval.core.records import Figure
from multimodal_eval.report.charts.dots import DotChart, Value, ValueRow, panel, series
from multimodal_eval.report.charts.labels import label, labels
from multimodal_eval.report.figures import estimate
from multimodal_eval.report.one_run import OneRun

__all__ = ["score_chart"]

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
