"""Charts as SVG, whose lines have the colour of the text around them. Coordinates are numbers of this package."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import Chart, Drawing
from multimodal_eval.display.figure_tables import in_words
from multimodal_eval.display.plain_text import visible
from multimodal_eval.display.scales import Scale, nice_scale

__all__ = [
    "BACKGROUNDS",
    "COLOURS",
    "LINE",
    "RAISED",
    "STYLE",
    "WIDTH",
    "axis",
    "bar",
    "chart",
    "colour",
    "curve",
    "dots",
    "scale_of",
    "sides",
    "step_scale",
    "steps_of",
]

# A notebook does not tell its theme, so each colour is readable on white and on nearly black. Texts keep the colour of
# the notebook. Colours mark drawings and signs, never alone: a word says the same. tests/display checks the contrasts.
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
WIDTH, _MARGIN, _HEIGHT = 160, 14, 24
STYLE = "display:block;max-width:none"  # of a drawing in a notebook; pages have a class for it
_SIDE, _LEFT, _BOTTOM = 220, 40, 34  # of a curve
_UNIT = (0.0, 1.0)


def colour(tone: str) -> str:
    """The colour of a tone or of a run."""
    return COLOURS.get(tone, COLOURS["unknown"])


def scale_of(figures: Sequence[Figure], *, with_origin: bool = False) -> Scale:
    """One scale for all figures: their common bounds, if they have any, else round limits around them."""
    ends = [end for figure in figures for end in (figure.value, figure.low, figure.high)]
    bounds = {figure.bounds for figure in figures}
    limits = _UNIT if bounds == {_UNIT} else (None, None)
    return nice_scale([*ends, 0.0] if with_origin else ends, limits)


def _x(at: float, width: int) -> float:
    """A place in percent, in pixels."""
    return round(_MARGIN + (width - 2 * _MARGIN) * at / 100, 1)


def _svg(width: int, height: int, label: str, parts: Sequence[Markup]) -> Drawing:
    return Drawing(
        Markup(
            '<svg width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}" style="{4}">{3}</svg>'
        ).format(width, height, f"chart: {visible(label)}", Markup("").join(parts), STYLE)
    )


def _line(x1: float, y1: float, x2: float, y2: float, *, faint: bool = True, dashed: bool = False) -> Markup:
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="currentColor" stroke-opacity="{}"{}/>').format(
        x1, y1, x2, y2, 0.25 if faint else 0.8, Markup(' stroke-dasharray="3 3"') if dashed else ""
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", turned: float | None = None) -> Markup:
    how = Markup("") if turned is None else Markup(' transform="rotate(-90 {} {})"').format(x, turned)
    return Markup(
        '<text x="{}" y="{}" text-anchor="{}" font-size="10" fill="currentColor" fill-opacity="0.8"{}>{}</text>'
    ).format(x, y, anchor, how, text)


def _mark(x1: float, y1: float, x2: float, y2: float, tone: str) -> Markup:
    marked = Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="2.5"/>')
    return marked.format(x1, y1, x2, y2, colour(tone))


def dots(
    figures: Sequence[Figure],
    scale: Scale,
    tones: Sequence[str],
    *,
    with_origin: bool = False,
    with_grid: bool = True,
    width: int = WIDTH,
    label: str = "",
) -> Drawing:
    """Figures of one row below each other, each a dot with its interval. The label says what they show."""
    height = _HEIGHT + 11 * (len(figures) - 1)
    ticks = scale.ticks if with_grid else []
    parts = [_line(_x(tick.at, width), 0, _x(tick.at, width), height) for tick in ticks]
    if with_origin:
        origin = _x(scale.at(0.0), width)
        parts.append(_line(origin, 0, origin, height, faint=False))
    for place, (figure, tone) in enumerate(zip(figures, tones, strict=True)):
        y = _HEIGHT // 2 + 11 * place
        if figure.low is not None and figure.high is not None:
            ends = _x(scale.at(figure.low), width), _x(scale.at(figure.high), width)
            parts.append(_mark(ends[0], y, ends[1], y, tone))
        if figure.value is not None:
            circle = Markup('<circle cx="{}" cy="{}" r="4.5" fill="{}"/>')
            parts.append(circle.format(_x(scale.at(figure.value), width), y, colour(tone)))
    return _svg(width, height, label or "; ".join(map(in_words, figures)), parts)


def axis(scale: Scale, width: int = WIDTH) -> Drawing:
    """The ticks below the rows. Of many ticks, only every second has a label."""
    every = 2 if len(scale.ticks) > 6 else 1
    ticks = [_line(_x(tick.at, width), 0, _x(tick.at, width), 4, faint=False) for tick in scale.ticks]
    labels = [_text(_x(tick.at, width), 14, tick.label) for tick in scale.ticks[::every]]
    return _svg(width, 18, "scale", [*ticks, *labels])


def sides(left: str, right: str, scale: Scale, width: int = WIDTH) -> Drawing:
    """What is on both sides of zero, below rows whose unit says nothing to people."""
    origin = _x(scale.at(0.0), width)
    words = [_text(0, 14, left, "start"), _text(width, 14, right, "end")]
    return _svg(width, 18, f"left: {left}, right: {right}", [_line(origin, 0, origin, 4, faint=False), *words])


def bar(share: float, tone: str = "series-1", label: str = "") -> Drawing:
    """A share of the whole as a bar."""
    width = round(100 * min(max(share, 0.0), 1.0), 1)
    whole = Markup('<rect x="2" y="3" width="100" height="8" fill="currentColor" fill-opacity="0.12"/>')
    part = Markup('<rect x="2" y="3" width="{}" height="8" fill="{}"/>').format(width, colour(tone))
    return _svg(104, 14, label or f"{share:.0%}", [whole, part])


def steps_of(figures: Sequence[Figure], starts: Sequence[float]) -> list[tuple[float, float]]:
    """The start and the end of each bar of a waterfall."""
    return [(start, start + (figure.value or 0.0)) for figure, start in zip(figures, starts, strict=True)]


def step_scale(steps: Sequence[tuple[float, float]]) -> Scale:
    """The scale of a waterfall: it has the ends of all steps, and not the zero below the first and the last."""
    return nice_scale([*(end for _, end in steps), *(start for start, _ in steps[1:-1])])


def _step(start: float, end: float, scale: Scale, label: str) -> Drawing:
    """A bar from where the last step ended, and in the colour of its sign."""
    low, high = sorted(_x(scale.at(value), WIDTH) for value in (start, end))
    tone = "series-1" if start == 0.0 else "good" if end >= start else "bad"
    shape = Markup('<rect x="{}" y="6" width="{}" height="12" fill="{}"/>')
    return _svg(WIDTH, _HEIGHT, label, [shape.format(low, max(high - low, 1.0), colour(tone))])


def curve(figures: Sequence[Figure], at: Sequence[float], across: str, up: str) -> Drawing:
    """Figures (vertical) over their places (horizontal) on the same scale, beside the diagonal."""
    ends = [end for figure in figures for end in (figure.value, figure.low, figure.high)]
    scale = nice_scale([*ends, *at])
    parts = [_line(_across(0), _up(0), _across(100), _up(100), dashed=True, faint=False)]
    for tick in scale.ticks:
        parts += [
            _line(_across(tick.at), _up(0), _across(tick.at), _up(100)),
            _line(_across(0), _up(tick.at), _across(100), _up(tick.at)),
            _text(_across(tick.at), _up(0) + 13, tick.label),
            _text(_across(0) - 4, _up(tick.at) + 3, tick.label, "end"),
        ]
    parts.append(_text(_across(50), _up(0) + 28, across))
    parts.append(_text(10, _up(50) + 3, up, turned=_up(50)))
    for figure, place in zip(figures, at, strict=True):
        x = _across(scale.at(place))
        if figure.low is not None and figure.high is not None:
            parts.append(_mark(x, _up(scale.at(figure.low)), x, _up(scale.at(figure.high)), "series-1"))
        if figure.value is not None:
            circle = Markup('<circle cx="{}" cy="{}" r="5" fill="{}"/>')
            parts.append(circle.format(x, _up(scale.at(figure.value)), colour("series-1")))
    words = "; ".join(in_words(figure, f"at {place:.4g}") for figure, place in zip(figures, at, strict=True))
    return _svg(_LEFT + _SIDE + 20, _SIDE + _BOTTOM + 10, f"{up} by {across}: {words}", parts)


def _across(at: float) -> float:
    return round(_LEFT + _SIDE * at / 100, 1)


def _up(at: float) -> float:
    return round(10 + _SIDE * (1 - at / 100), 1)


def chart(block: Chart) -> list[Drawing]:
    """One drawing per figure and one of the axis; of a curve, one of each series."""
    figures = [figure for series in block.series for figure in series.figures]
    if block.kind == "curve":
        return [curve(series.figures, series.at, block.unit, series.name) for series in block.series]
    tones = [f"series-{index % 6 + 1}" for index, series in enumerate(block.series) for _ in series.figures]
    if block.kind == "waterfall":
        starts = [start for series in block.series for start in series.at]
        steps = steps_of(figures, starts)
        scale = step_scale(steps)
        return [*(_step(*step, scale, in_words(f)) for step, f in zip(steps, figures, strict=True)), axis(scale)]
    if block.kind == "bars":
        drawn = [bar(f.value or 0.0, tone, in_words(f)) for f, tone in zip(figures, tones, strict=True)]
        return [*drawn, Drawing(Markup(""))]
    scale = scale_of(figures, with_origin=block.with_origin)
    drawn = [dots([f], scale, [tone], with_origin=block.with_origin) for f, tone in zip(figures, tones, strict=True)]
    return [*drawn, axis(scale)]
