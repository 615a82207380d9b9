"""Grids as tables of texts, in one way for all outputs."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.core.display import DASH
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import Cell, Grid, GridCell, Lines, Row, Table
from multimodal_eval.display.figure_tables import LOWER

__all__ = ["grid_caption", "grid_lines", "grid_table", "strengths"]


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
    return "; ".join(_caption(block))


def _caption(block: Grid) -> Iterator[str]:
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
