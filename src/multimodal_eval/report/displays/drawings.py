"""Tables of scores with intervals, and small SVG drawings whose lines have the colour of the notebook's text.

Coordinates are numbers of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from multimodal_eval.core.display import DASH, number
from multimodal_eval.core.judge_records import CurvePoint
from multimodal_eval.core.metric import Bounds
from multimodal_eval.report.charts.dots import Dot, DotRow, Panel, Scale, Value, ValueRow, nice_scale, panel, series
from multimodal_eval.report.displays.blocks import Cell, Drawing, Row, Table

__all__ = [
    "BACKGROUNDS",
    "COLOURS",
    "LINE",
    "RAISED",
    "ShownFigure",
    "axis",
    "bar",
    "colour",
    "curve",
    "dots",
    "figure_table",
    "interval",
    "percent",
]


# Colours of displays. A notebook does not tell its theme, so each colour is readable on white and on nearly black.
#
# Texts keep the colour of the notebook. Colours mark drawings and signs, never alone: a word says the same.
# tests/report/displays/test_displays.py checks the contrasts.


COLOURS = {
    "good": "#12897d",
    "bad": "#d2581f",
    "warning": "#a8760f",
    "unknown": "#7b8591",
    "series-1": "#2f7fd0",
    "series-2": "#d2581f",
    "series-3": "#12897d",
    "series-4": "#b0569b",
    "series-5": "#8f7620",
    "series-6": "#7b8591",
}
LINE = "rgba(128,128,128,0.35)"
RAISED = "rgba(128,128,128,0.09)"
# JupyterLab, VS Code, GitHub and the site, light and dark.
BACKGROUNDS = ("#ffffff", "#f8f9fb", "#111111", "#1e1e1e", "#0d1117", "#131416")


def colour(tone: str) -> str:
    """The colour of a tone or of a run."""
    return COLOURS.get(tone, COLOURS["unknown"])


_WIDTH, _MARGIN, _HEIGHT = 160, 14, 20
_SIDE, _LEFT, _BOTTOM = 220, 40, 34  # of the curve


def _x(at: float) -> float:
    """A place in percent, in pixels."""
    return round(_MARGIN + (_WIDTH - 2 * _MARGIN) * at / 100, 1)


def _svg(width: int, height: int, label: str, parts: Sequence[Markup]) -> Drawing:
    return Drawing(
        Markup(
            '<svg width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}" '
            'style="display:block;max-width:none">{3}</svg>'
        ).format(width, height, label, Markup("").join(parts))
    )


def _line(x1: float, y1: float, x2: float, y2: float, *, faint: bool = True, dashed: bool = False) -> Markup:
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="currentColor" stroke-opacity="{}"{}/>').format(
        x1, y1, x2, y2, 0.25 if faint else 0.8, Markup(' stroke-dasharray="3 3"') if dashed else ""
    )


def _text(x: float, y: float, text: str, anchor: str = "middle") -> Markup:
    return Markup(
        '<text x="{}" y="{}" text-anchor="{}" font-size="10" fill="currentColor" fill-opacity="0.8">{}</text>'
    ).format(x, y, anchor, text)


def dots(row: DotRow, panel: Panel) -> Drawing:
    """The dots of a row with their intervals, on the scale of the panel."""
    grid = [_line(_x(tick.at), 0, _x(tick.at), row.height) for tick in panel.ticks]
    if panel.origin is not None:
        grid.append(_line(_x(panel.origin), 0, _x(panel.origin), row.height, faint=False))
    label = "; ".join(dot.title for dot in row.dots)
    return _svg(_WIDTH, row.height, label, [*grid, *(mark for dot in row.dots for mark in _marks(dot))])


def _marks(dot: Dot) -> list[Markup]:
    marks = []
    if dot.low is not None and dot.high is not None:
        ends = (_x(dot.low), dot.y, _x(dot.high), dot.y, colour(dot.tone))
        marks.append(Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="2.5"/>').format(*ends))
    if dot.ring is not None:
        ring = Markup('<circle cx="{}" cy="{}" r="4" fill="none" stroke="{}" stroke-width="1.5"/>')
        marks.append(ring.format(_x(dot.ring), dot.y, colour(dot.tone)))
    if dot.at is not None:
        marks.append(Markup('<circle cx="{}" cy="{}" r="4.5" fill="{}"/>').format(_x(dot.at), dot.y, colour(dot.tone)))
    return marks


def axis(panel: Panel) -> Drawing:
    """The ticks below a panel. Of many ticks, only every second has a label."""
    every = 2 if len(panel.ticks) > 6 else 1
    ticks = [_line(_x(tick.at), 0, _x(tick.at), 4, faint=False) for tick in panel.ticks]
    labels = [_text(_x(tick.at), 14, tick.label) for tick in panel.ticks[::every]]
    return _svg(_WIDTH, 18, "scale", [*ticks, *labels])


def bar(share: float, tone: str = "series-1") -> Drawing:
    """A share of the whole as a bar."""
    width = round(100 * min(max(share, 0.0), 1.0), 1)
    return _svg(
        104,
        _HEIGHT - 6,
        f"{share:.0%}",
        [
            Markup('<rect x="2" y="3" width="100" height="8" fill="currentColor" fill-opacity="0.12"/>'),
            Markup('<rect x="2" y="3" width="{}" height="8" fill="{}"/>').format(width, colour(tone)),
        ],
    )


def curve(points: Sequence[CurvePoint]) -> Drawing:
    """What people say (vertical) of samples with about the same score (horizontal), beside the diagonal."""
    ends = [end for point in points for end in (point.judge, point.human, point.low, point.high)]
    scale = nice_scale(ends)
    parts = [*_curve_axes(scale), *(mark for point in points for mark in _point(point, scale))]
    width, height = _LEFT + _SIDE + 20, _SIDE + _BOTTOM + 10
    return _svg(width, height, "mean label of people by the score of the judge", parts)


def _across(at: float) -> float:
    return round(_LEFT + _SIDE * at / 100, 1)


def _up(at: float) -> float:
    return round(10 + _SIDE * (1 - at / 100), 1)


def _curve_axes(scale: Scale) -> list[Markup]:
    parts = [_line(_across(0), _up(0), _across(100), _up(100), dashed=True, faint=False)]
    for tick in scale.ticks:
        parts += [
            _line(_across(tick.at), _up(0), _across(tick.at), _up(100)),
            _line(_across(0), _up(tick.at), _across(100), _up(tick.at)),
            _text(_across(tick.at), _up(0) + 13, tick.label),
            _text(_across(0) - 4, _up(tick.at) + 3, tick.label, "end"),
        ]
    parts.append(_text(_across(50), _up(0) + 28, "score of the judge"))
    turned = Markup('<g transform="rotate(-90 10 {0})">{1}</g>')
    return [*parts, turned.format(_up(50), _text(10, _up(50) + 3, "mean label of people"))]


def _point(point: CurvePoint, scale: Scale) -> list[Markup]:
    x, y, tone = _across(scale.at(point.judge)), _up(scale.at(point.human)), colour("series-1")
    low, high = _up(scale.at(point.low)), _up(scale.at(point.high))
    return [
        Markup('<line x1="{0}" y1="{1}" x2="{0}" y2="{2}" stroke="{3}" stroke-width="2.5"/>').format(
            x, low, high, tone
        ),
        Markup('<circle cx="{}" cy="{}" r="5" fill="{}"/>').format(x, y, tone),
    ]


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
