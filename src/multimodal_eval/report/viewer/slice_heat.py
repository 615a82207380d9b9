"""Slices as a heat map: a row per value of a column, a column per metric, shaded by the distance to the whole run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from multimodal_eval.core.metric import Direction
from multimodal_eval.core.records import Entry

__all__ = ["HeatCell", "HeatMap", "HeatMetric", "HeatRow", "heat_map"]

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

    entry: Entry | None
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
    column: str, slices: Mapping[str, Mapping[str, Entry]], counts: Mapping[str, int], overall: Mapping[str, Entry]
) -> HeatMap:
    """The map of a column's slices, which have entries by value and metric; `overall` are those of the whole run."""
    names = [name for name in overall if any(name in metrics for metrics in slices.values())]
    names += _others(slices.values(), names)
    metrics = [
        HeatMetric(name, overall[name].direction, overall[name].value)
        if name in overall
        else HeatMetric(name, "higher", None)
        for name in names
    ]
    rows = [
        HeatRow(value, counts[value], [_cell(entries.get(metric.name), metric) for metric in metrics])
        for value, entries in slices.items()
    ]
    return HeatMap(column, metrics, rows)


def _others(slices: Iterable[Mapping[str, Entry]], known: list[str]) -> list[str]:
    return [name for name in dict.fromkeys(name for metrics in slices for name in metrics) if name not in known]


def _cell(entry: Entry | None, metric: HeatMetric) -> HeatCell:
    if entry is None or entry.value is None or metric.overall is None or not entry.stderr:
        return HeatCell(entry)
    distance = (entry.value - metric.overall) / entry.stderr
    better = -distance if metric.direction == "lower" else distance
    return HeatCell(entry, int(max(-STRONGEST, min(STRONGEST, better))))
