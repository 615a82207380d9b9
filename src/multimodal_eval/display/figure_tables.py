"""Figures as a table of texts, in one way for terminal, HTML, LaTeX and Markdown.

Value, interval and counts of a figure are always there, its direction and method beside it or in the caption.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from multimodal_eval.core.display import DASH, printed
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import (
    DIGITS,
    Cell,
    Chart,
    Drawing,
    FigureRow,
    Figures,
    Grid,
    GridCell,
    Lines,
    Row,
    Table,
    Tone,
)

__all__ = [
    "INTERVAL",
    "ShownRow",
    "as_figures",
    "between",
    "coverage",
    "failures_as",
    "figure_table",
    "grid_caption",
    "grid_lines",
    "grid_table",
    "in_words",
    "number",
    "shown_rows",
    "strengths",
]

INTERVAL, STDERR, KIND = "95% interval", "std. error", "kind"
LOWER, MAIN = "↓", "★"
METRIC = "metric"  # the head of the names that get marks, if a table has other names, too
_MARKS = {"good": "▲", "bad": "▼"}
_KINDS = {
    "mean": "mean: of the samples",
    "corpus": "corpus: one score of all samples together",
    "weighted mean": "weighted mean: of the strata",
}


def number(value: float | None, sign: str = "", digits: int = DIGITS) -> str:
    """Four decimals; a difference has a sign."""
    return DASH if value is None else f"{value:{sign}.{digits}f}"


def between(figure: Figure, sign: str = "", digits: int = DIGITS) -> str:
    """`0.3120 … 0.4071`. Identical runs have no interval, and are called so."""
    if figure.low is None or figure.high is None:
        reason = figure.method.removeprefix("no interval: ")
        return reason if reason.startswith("identical") else DASH
    return f"{figure.low:{sign}.{digits}f} … {figure.high:{sign}.{digits}f}"


def coverage(figure: Figure) -> str:
    """`237 / 400`, or how many labels correct a figure; empty if the figure has no counts."""
    if figure.labels is not None:
        return f"{figure.labels:,} label{'' if figure.labels == 1 else 's'}"
    if figure.n_total is None:
        return "" if figure.n_scored is None else f"{figure.n_scored:,}"
    counted = f" + {figure.failed:,}" if figure.without_failures is not None else ""
    return f"{figure.n_scored or 0:,}{counted} / {figure.n_total:,}"


def in_words(figure: Figure, name: str = "", sign: str = "") -> str:
    """Everything about a figure in one line, for a title or a label: the same content as a row of its table."""
    shown = printed(name or figure.name or "")
    words = [f"{number(figure.value, sign)} [{between(figure, sign)}]"]
    if counts := coverage(figure):
        words.append(f"{counts} scored" if figure.labels is None else counts)
    words.append(f"{figure.better} is better")
    words.append(figure.method)
    return f"{shown}: {', '.join(words)}" if shown else ", ".join(words)


@dataclass(frozen=True)
class ShownRow:
    """A figure with the texts beside it."""

    figure: Figure
    names: Sequence[str]
    before: Sequence[str]
    after: Sequence[str]
    is_strong: bool = False
    is_quiet: bool = False
    tone: Tone = ""
    series: int = 1


def shown_rows(figures: Figures) -> Iterator[ShownRow]:
    """The rows: the baseline, then each figure with its calibrated value and its parts below it."""
    listed = list(figures.rows)
    if figures.baseline is not None:
        listed.insert(0, FigureRow(figures.baseline, remark=" (baseline)"))
    left = len(figures.heads)
    for row in listed:
        figure = row.figure
        names = [*(row.names or [figure.name or ""])]
        names = [*[""] * (left - len(names)), *names]
        place = list(figures.heads).index(METRIC) if METRIC in figures.heads else left - 1
        if names[place]:
            marks = (f" {LOWER}" if figure.direction == "lower" else "") + (f" {MAIN}" * row.is_main)
            is_metric = METRIC in figures.heads or not row.names
            names[place] = (printed(names[place]) if is_metric else names[place]) + marks
        names[-1] += row.remark
        before = [*row.before, *[""] * (len(figures.before) - len(row.before))]
        after = [*row.after, *[""] * (len(figures.after) - len(row.after))]
        is_strong = row.is_strong or row.is_main
        yield ShownRow(figure, names, before, after, is_strong, tone=row.tone, series=row.series)
        blank, none = [""] * (left - 1), ([""] * len(figures.before), [""] * len(figures.after))
        if (corrected := figure.calibrated) is not None:
            words = "  calibrated" if corrected.value is not None else "  not calibrated: too few labels"
            yield ShownRow(_corrected(corrected, figure), [*blank, words], *none, is_strong, series=row.series)
        if (convention := failures_in_words(figure)) is not None:
            yield ShownRow(other_convention(figure), [*blank, f"  {convention}"], *none, is_quiet=True)
        for part, each in figure.parts.items() if figures.with_parts else ():
            yield ShownRow(each, [*blank, f"  {_part(part)}"], *none, is_quiet=True, series=row.series)


def _part(part: str) -> str:
    """`BLEU-1`, or `.hits` for a part that has no name of its own."""
    shown = printed(part)
    return f".{part}" if shown == part else shown


def other_convention(figure: Figure) -> Figure:
    """The score by the other convention for failed answers; without a value if there is none."""
    other = figure.with_failures or figure.without_failures
    if other is None:
        return Figure(None, None, None, None, "")
    return msgspec.structs.replace(other, kind=figure.kind, direction=figure.direction, level=figure.level)


def failures_in_words(figure: Figure) -> str | None:
    """`28 as wrong; 0.615 … 0.755`: the other convention, and which scores are possible. The caption explains it."""
    words = []
    if figure.with_failures is not None:
        words.append(f"{figure.failed:,} as {'blank' if figure.kind == 'corpus' else 'wrong'}")
    elif figure.without_failures is not None:
        words.append(f"{figure.failed:,} left out")
    if figure.lowest is not None:
        words.append(f"{number(figure.lowest, digits=3)} … {number(figure.highest, digits=3)}")
    return "; ".join(words) or None


def _conventions(shown: Sequence[Figure]) -> Iterator[str]:
    """What the row with the other convention shows."""
    counted = {figure.kind == "corpus" for figure in shown if figure.with_failures is not None}
    if False in counted:
        yield "as wrong: failed answers count as the worst value"
    if True in counted:
        yield "as blank: failed answers count as blank ones"
    if kinds := {figure.kind for figure in shown if figure.without_failures is not None}:
        yield f"+: failed answers, which count {failures_as(kinds)}; left out: the score without them"
    if any(figure.lowest is not None for figure in shown):
        yield "…: lowest and highest possible score"


def failures_as(kinds: Collection[str | None]) -> str:
    """What failed answers count as in scores of these kinds."""
    if "corpus" not in kinds:
        return "as the worst value"
    return "as blank answers" if len(kinds) == 1 else "as the worst value, in corpus scores as blank answers"


def _corrected(figure: Figure, whole: Figure) -> Figure:
    """The calibrated figure, which is of the kind of the one that it corrects."""
    kind, bounds, level = figure.kind or whole.kind, figure.bounds or whole.bounds, figure.level or whole.level
    return msgspec.structs.replace(figure, kind=kind, bounds=bounds, level=level, direction=whole.direction)


def figure_table(figures: Figures, drawn: Sequence[Cell] = ()) -> Table:
    """The figures as texts. `drawn` are drawings, one per row and one of the axis, in a column of their own."""
    rows = list(shown_rows(figures))
    shown = [row.figure for row in rows]
    sign, digits = "+" if figures.is_difference else "", figures.digits
    levels = {figure.level for figure in shown if figure.level is not None}
    has_kind = any(figure.kind is not None for figure in shown)
    has_error = any(figure.stderr is not None for figure in shown) and not figures.is_difference
    has_counts = len(counts_of(rows)) > 1
    has_marks = any(row.tone in _MARKS for row in rows)
    heads = [*figures.heads, *([""] if drawn else []), *figures.before, figures.value]
    heads += [*([KIND] if has_kind else []), *([STDERR] if has_error else [])]
    interval = f"{100 * levels.pop():g}% interval" if len(levels) == 1 else INTERVAL
    heads += [figures.interval or interval, *([figures.counts] if has_counts else [])]
    heads += [*figures.after, *([""] if has_marks else [])]
    listed = []
    for place, row in enumerate(rows):
        figure = row.figure
        cells: list[Cell] = [*row.names, *([drawn[place]] if drawn else []), *row.before]
        cells.append(number(figure.value, sign, digits))
        cells += [figure.kind or DASH] if has_kind else []
        cells += [number(figure.stderr, digits=digits)] if has_error else []
        cells += [between(figure, sign, digits), *([coverage(figure)] if has_counts else []), *row.after]
        cells += [_MARKS.get(row.tone, "")] if has_marks else []
        listed.append(Row(cells, row.is_strong, is_quiet=row.is_quiet, tone=row.tone if has_marks else ""))
    if drawn:
        left = len(figures.heads)
        blanks = [""] * (len(heads) - left - 1)
        listed.append(Row([*[""] * left, drawn[len(rows)], *blanks], is_axis=True))
    caption = "; ".join(_caption(figures, rows))
    return Table(heads, listed, len(figures.heads), figures.title, caption, (STDERR, KIND))


def counts_of(rows: Sequence[ShownRow]) -> set[str]:
    """The different counts of samples and labels, if there are any. If all are equal, the caption says it.

    A part, whose count is not known, is below its metric.
    """
    counts = {coverage(row.figure) for row in rows if coverage(row.figure) or not row.is_quiet}
    return set() if counts == {""} else counts


def _caption(figures: Figures, rows: Sequence[ShownRow]) -> Iterator[str]:
    """What the marks mean, which direction is better, what the kinds are, and how the intervals are computed."""
    shown = [row.figure for row in rows]
    if len(counts := counts_of(rows)) == 1:
        (same,) = counts
        yield same if "label" in same else f"{same} {figures.counts}"
    directions = {figure.direction for figure in shown} - {None}
    if directions == {"higher"}:
        yield "higher is better"
    elif directions:
        yield f"{LOWER} lower is better" + (", else higher" if "higher" in directions else "")
    if any(row.is_main for row in figures.rows):
        yield f"{MAIN} headline"
    if any(row.tone in _MARKS for row in rows):
        yield "▲ better, ▼ worse, beyond chance"
    for kind in dict.fromkeys(figure.kind for figure in shown):
        if kind is not None:
            yield _KINDS[kind]
    yield from _conventions(shown)
    yield from _methods(shown)
    if figures.caption:
        yield figures.caption


def _methods(shown: Sequence[Figure]) -> Iterator[str]:
    """How the intervals are computed, and from how many samples: `95% t interval (24 samples; 20 samples)`."""
    details: dict[str, dict[str, None]] = {}
    for figure in shown:
        if figure.method:
            method, _, detail = figure.method.partition(", ")
            details.setdefault(method, {})[detail] = None
    for method, known in details.items():
        if len(known) == 1:
            yield ", ".join(filter(None, [method, *known]))
        else:
            yield f"{method} ({'; '.join(filter(None, known))})"


def as_figures(chart: Chart) -> Figures:
    """The figures of a chart, for outputs that do not draw."""
    several = len(chart.series) > 1
    if chart.kind == "curve" and not several:
        (series,) = chart.series
        points = [FigureRow(f, (place,)) for f, (place,) in zip(series.figures, _places(series.at, 0), strict=True)]
        return Figures(points, (chart.unit,), value=series.name, title=chart.title, counts=chart.counts)
    rows = [
        FigureRow(figure, (series.name, figure.name or "") if several else (figure.name or series.name,), places)
        for series in chart.series
        for figure, places in zip(
            series.figures, _places(series.at if chart.kind != "waterfall" else (), len(series.figures)), strict=True
        )
    ]
    has_places = any(series.at for series in chart.series) and chart.kind != "waterfall"
    heads = ("series", "of") if several else ("of",)
    return Figures(
        rows, heads, ("at",) if has_places else (), title=chart.title, caption=chart.unit, counts=chart.counts
    )


def _places(at: Sequence[float], count: int) -> list[list[str]]:
    return [[f"{place:.4g}"] for place in at] if at else [[] for _ in range(count)]


def without_drawings(table: Table) -> Table:
    """The table for outputs that have only text."""
    rows = [row for row in table.rows if not row.is_axis]
    drawn = {column for row in rows for column, cell in enumerate(row.cells) if isinstance(cell, Drawing)}
    if not drawn and len(rows) == len(table.rows):
        return table
    kept = [column for column in range(len(table.heads)) if column not in drawn]
    left = sum(column < table.left for column in kept)
    listed = [replace(row, cells=[row.cells[column] for column in kept]) for row in rows]
    return replace(table, heads=[table.heads[column] for column in kept], rows=listed, left=left)


def grid_table(block: Grid) -> Table:
    """The lines of each cell; those below the heads are the first rows."""
    depth = max(map(len, block.below), default=0)
    below = [Lines(list(each)) if each else "" for each in block.below] if depth else []
    listed = [Row(["", *below], is_quiet=True)] if depth else []
    for row in block.rows:
        cells: list[Cell] = [Lines(grid_lines(cell, block), is_strong=cell.is_strong) for cell in row.cells]
        listed.append(Row([row.name, *cells]))
    return Table([block.corner, *block.heads], listed, 1, block.title, grid_caption(block))


def grid_lines(cell: GridCell, block: Grid) -> list[str]:
    """The value with its mark; below it the interval or standard error, the counts if it is not complete, and more."""
    figure = cell.figure
    mark = f" {cell.mark}" if cell.mark else ""
    if figure is None:
        return [f"{cell.text}{mark}", *([cell.more] if cell.more else [])]
    sign = "+" if block.is_difference else ""
    lines = [f"{_scaled(figure.value, block, sign)}{mark}"]
    if block.errors == "interval" and figure.value is not None:
        has_ends = figure.low is not None and figure.high is not None
        lines.append(f"{_scaled(figure.low, block, sign)} … {_scaled(figure.high, block, sign)}" if has_ends else DASH)
    elif block.errors == "stderr" and figure.value is not None:
        lines.append(f"± {_scaled(figure.stderr, block)}")
    if figure.n_total is not None and figure.n_scored is not None and figure.n_scored < figure.n_total:
        lines.append(f"{figure.n_scored:,} / {figure.n_total:,}")
    return [*lines, *([cell.more] if cell.more else [])]


def _scaled(value: float | None, block: Grid, sign: str = "") -> str:
    return DASH if value is None else f"{value * block.scale:{sign}.{block.digits}f}"


def grid_caption(block: Grid) -> str:
    """What is below the values, which direction is better, how the intervals are computed, and the caption."""
    return "; ".join(_grid_notes(block))


def _grid_notes(block: Grid) -> Iterator[str]:
    if block.errors != "none" and block.figures:
        yield "below: 95% interval" if block.errors == "interval" else "±: standard error"
    directions = {figure.direction for figure in block.figures} - {None}
    if directions == {"higher"}:
        yield "higher is better"
    elif directions:
        yield f"{LOWER} lower is better" + (", else higher" if "higher" in directions else "")
    if methods := dict.fromkeys(figure.method.partition(", ")[0] for figure in block.figures if figure.method):
        yield ", ".join(methods)
    if block.caption:
        yield block.caption


def strengths(block: Grid) -> list[list[float | None]]:
    """How good each value is in its column: 0 for the worst, 1 for the best; None without a value."""
    columns = [[row.cells[place].figure for row in block.rows] for place in range(len(block.heads))]
    shades = [_strengths_of(column) for column in columns]
    return [[shade[place] for shade in shades] for place in range(len(block.rows))]


def _strengths_of(figures: list[Figure | None]) -> list[float | None]:
    values = [None if figure is None else figure.value for figure in figures]
    known = [value for value in values if value is not None]
    if not known or min(known) == max(known):
        return [None for _ in values]
    low, high = min(known), max(known)
    is_lower = any(figure is not None and figure.direction == "lower" for figure in figures)
    shares = [None if value is None else (value - low) / (high - low) for value in values]
    return [None if share is None else 1 - share if is_lower else share for share in shares]
