"""Charts of the weights of a composite, and of slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multimodal_eval.report.charts.dots import DotChart, Value, ValueRow, panel, series
from multimodal_eval.report.charts.labels import label, labels
from multimodal_eval.report.figures import estimate
from multimodal_eval.report.one_run import OneRun

if TYPE_CHECKING:
    from multimodal_eval.analysis.composite import PartWeight, Sensitivity

__all__ = ["SliceCharts", "slice_charts", "weight_chart"]


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
