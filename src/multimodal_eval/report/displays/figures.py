"""Tables of scores with intervals, each with a dot on the scale of its metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from multimodal_eval.core.display import DASH, number
from multimodal_eval.core.metric import Bounds
from multimodal_eval.report.charts.dots import Value, ValueRow, panel, series
from multimodal_eval.report.displays.blocks import Cell, Drawing, Row, Table
from multimodal_eval.report.displays.drawings import axis, dots

__all__ = ["ShownFigure", "figure_table", "interval", "percent"]

UNIT: Bounds = (0, 1)
NOTHING = Drawing(Markup(""))
INTERVAL = "95 % interval"


@dataclass(frozen=True)
class ShownFigure:
    """A score with a name, and further cells of its row."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    more: Sequence[str] = ()
    bounds: Bounds = (None, None)
    is_strong: bool = False
    tone: str = ""


def interval(low: float | None, high: float | None, sign: str = "") -> str:
    """The ends with four decimals."""
    return DASH if low is None or high is None else f"{low:{sign}.4f} … {high:{sign}.4f}"


def percent(share: float | None) -> str:
    """A share with one decimal."""
    return DASH if share is None else f"{share:.1%}"


def figure_table(
    figures: Sequence[ShownFigure], head: str, more: Sequence[str] = (), *, title: str = "", sign: str = ""
) -> Table:
    """Scores below each other. Those from 0 to 1 share a scale; other scores have a dot on a scale of their own."""
    shared = [figure for figure in figures if figure.bounds == UNIT]
    others = [figure for figure in figures if figure.bounds != UNIT]
    drawn: dict[int, Drawing] = {}
    rows: list[Row] = []
    if shared:
        scale = panel([_as_row(figure) for figure in shared], UNIT)
        drawn |= {id(figure): dots(row, scale) for figure, row in zip(shared, scale.rows, strict=True)}
    if others and not shared:  # on one scale, since they are the same score by several methods
        scale = panel([_as_row(figure) for figure in others], with_origin=bool(sign))
        drawn |= {id(figure): dots(row, scale) for figure, row in zip(others, scale.rows, strict=True)}
    for figure in figures:
        value = DASH if figure.value is None else f"{figure.value:{sign}.4f}" if sign else number(figure.value)
        cells: list[Cell] = [figure.name, drawn.get(id(figure), NOTHING), value]
        rows.append(Row([*cells, interval(figure.low, figure.high, sign), *figure.more], figure.is_strong))
    if drawn:
        rows.append(Row(["", axis(scale), *[""] * (2 + len(more))], is_axis=True))
    return Table([head, "", "value", INTERVAL, *more], rows, title=title)


def _as_row(figure: ShownFigure) -> ValueRow:
    value = Value(figure.value, figure.low, figure.high, figure.tone or series(0), figure.name)
    return ValueRow(figure.name, [value], [])
