"""Charts of values with intervals: one row per metric, slice or part of a composite, one dot per run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from multimodal_eval.report.charts.scale import Scale, Tick, nice_scale

__all__ = ["Dot", "DotChart", "DotRow", "Panel", "Value", "dot_of", "panel"]

_FIRST, _STEP = 12, 11  # pixels: the place of the first dot in a row, and the distance to the next one
SERIES = 6  # colours of runs


@dataclass(frozen=True)
class Value:
    """What a dot shows, in the unit of its scale."""

    value: float | None
    low: float | None
    high: float | None
    tone: str  # a class of the style sheet: the colour of a run, or of a verdict
    title: str
    ring: float | None = None  # a second value, drawn as a ring


@dataclass(frozen=True)
class Dot:
    """A value with its interval: places in percent of the width, and in pixels from the top."""

    at: float | None
    low: float | None
    high: float | None
    y: int
    tone: str
    title: str
    ring: float | None


@dataclass(frozen=True)
class DotRow:
    """One row with the dots of all runs."""

    label: str
    is_lower_better: bool
    is_main: bool
    dots: list[Dot]
    texts: list[list[str]]  # the columns beside the chart, each with one line per dot
    name: str = ""  # the metric, if the row has one

    @property
    def height(self) -> int:
        """Pixels."""
        return 2 * _FIRST + _STEP * (len(self.dots) - 1)


@dataclass(frozen=True)
class Panel:
    """Rows on the same scale."""

    rows: list[DotRow]
    ticks: list[Tick]
    steps: int
    origin: float | None  # the place of 0, if it is drawn
    unit: str = ""


@dataclass(frozen=True)
class DotChart:
    """A chart with one panel per scale. `heads` are the headings of the texts."""

    panels: list[Panel]
    heads: list[str]

    @property
    def rows(self) -> list[DotRow]:
        """The rows of all panels."""
        return [row for each in self.panels for row in each.rows]


def series(index: int) -> str:
    """The class of a run's colour."""
    return f"series-{index % SERIES + 1}"


def dot_of(value: Value, scale: Scale, place: int) -> Dot:
    """The dot of a value; `place` counts the dots of a row."""
    known = value.value is not None and value.low is not None and value.high is not None
    return Dot(
        None if value.value is None else scale.at(value.value),
        scale.at(value.low) if known and value.low is not None else None,
        scale.at(value.high) if known and value.high is not None else None,
        _FIRST + _STEP * place,
        value.tone,
        value.title,
        None if value.ring is None else scale.at(value.ring),
    )


@dataclass(frozen=True)
class ValueRow:
    """A row before its scale is known."""

    label: str
    values: Sequence[Value]
    texts: list[list[str]]
    is_lower_better: bool = False
    is_main: bool = False
    name: str = ""


def panel(
    rows: Iterable[ValueRow],
    limits: tuple[float | None, float | None] = (None, None),
    *,
    with_origin: bool = False,
    unit: str = "",
) -> Panel:
    """The rows on one scale, which includes 0 if this is drawn."""
    listed = list(rows)
    ends = [end for row in listed for each in row.values for end in (each.value, each.low, each.high, each.ring)]
    scale = nice_scale([*ends, 0.0] if with_origin else ends, limits)
    return Panel(
        [
            DotRow(
                row.label,
                row.is_lower_better,
                row.is_main,
                [dot_of(value, scale, place) for place, value in enumerate(row.values)],
                row.texts,
                row.name,
            )
            for row in listed
        ],
        scale.ticks,
        scale.steps,
        scale.at(0.0) if with_origin else None,
        unit,
    )
