"""A grid of scores as texts: cells, headers and the caption, in the style of LaTeX or Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from multimodal_eval.core.options import OptionValues
from multimodal_eval.core.records import Figure
from multimodal_eval.interop.export.score_grid import GridCell, GridRow, Mark, ScoreGrid

__all__ = ["GridStyle", "GridText", "caption", "grid_text"]


class GridStyle(Protocol):
    """How a language writes the parts of a table."""

    missing: str
    plus_minus: str
    lower: str  # the arrow of a metric whose lower values are better

    def text(self, text: str) -> str:
        """A name or a sentence, escaped."""
        ...

    def value(self, digits: str, *, is_bold: bool, mark: Mark) -> str:
        """A number with its marks."""
        ...

    def spread(self, text: str) -> str:
        """The uncertainty after a value."""
        ...

    def mark(self, mark: Mark) -> str:
        """A mark alone, for the caption."""
        ...


@dataclass(frozen=True)
class GridText:
    """Headers and rows, all escaped; the first column has names."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grid_text(grid: ScoreGrid, style: GridStyle, options: OptionValues) -> GridText:
    """The table, with runs or metrics as columns."""
    runs = [style.text(name) for name in grid.runs]
    metrics = [style.text(row.metric) + (f" {style.lower}" if row.direction == "lower" else "") for row in grid.rows]
    cells = [[_cell(cell, row, style, options) for cell in row.cells] for row in grid.rows]
    if options["columns"] == "runs":
        return GridText(("metric", *runs), tuple((name, *row) for name, row in zip(metrics, cells, strict=True)))
    turned = zip(runs, zip(*cells, strict=True), strict=True)
    return GridText(("run", *metrics), tuple((name, *column) for name, column in turned))


def _cell(cell: GridCell, row: GridRow, style: GridStyle, options: OptionValues) -> str:
    figure, digits = cell.figure, options["digits"]
    if digits is None:
        digits = 3 if row.factor == 1 else 1
    if figure is None or figure.value is None:
        return style.missing
    value = style.value(rounded(figure.value * row.factor, digits), is_bold=cell.is_best, mark=cell.mark)
    spread = _spread(figure, row.factor, style, options["uncertainty"], digits)
    return f"{value} {style.spread(spread)}" if spread else value


def _spread(figure: Figure, factor: float, style: GridStyle, uncertainty: str, digits: int) -> str:
    if uncertainty == "stderr" and figure.stderr is not None:
        return f"{style.plus_minus} {rounded(figure.stderr * factor, digits)}"
    if uncertainty == "interval" and figure.low is not None and figure.high is not None:
        return f"[{rounded(figure.low * factor, digits)}, {rounded(figure.high * factor, digits)}]"
    return ""


def rounded(value: float, digits: int) -> str:
    """The number with so many decimals; no zero has a sign."""
    return f"{value:z.{digits}f}"


def caption(grid: ScoreGrid, style: GridStyle, options: OptionValues) -> str:
    """What the numbers and marks mean, with the test and its level."""
    return " ".join(_sentences(grid, style, options))


def _sentences(grid: ScoreGrid, style: GridStyle, options: OptionValues) -> Iterator[str]:
    text = style.text
    if grid.comparison is not None:
        yield text(f"Scores of {len(grid.runs)} runs on the same {grid.comparison.samples:,} samples.")
    if options["percent"] and any(row.factor != 1 for row in grid.rows):
        scaled = [row.metric for row in grid.rows if row.factor != 1]
        what = "All scores" if len(scaled) == len(grid.rows) else ", ".join(scaled)
        yield text(f"{what}: in percent.")
    figures = [cell.figure for row in grid.rows for cell in row.cells if cell.figure is not None]
    if options["uncertainty"] == "stderr" and any(figure.stderr is not None for figure in figures):
        yield f"{style.plus_minus}{text(': standard error.')}"
    if options["uncertainty"] == "interval" and any(figure.low is not None for figure in figures):
        yield text("Brackets: 95 % confidence interval.")
    if any(row.direction == "lower" for row in grid.rows):
        yield f"{style.lower}{text(': lower is better.')}"
    yield from _marks(grid, style, options)


def _marks(grid: ScoreGrid, style: GridStyle, options: OptionValues) -> Iterator[str]:
    text = style.text
    if options["marks"] == "best" and len(grid.runs) > 1:
        yield text("Bold: the best value; differences are not tested.")
    if grid.comparison is None or not grid.comparison.numbers:
        return
    yield text("Bold: the best value and all values without a significant difference from it.")
    if grid.baseline is not None:
        better, worse = style.mark("better"), style.mark("worse")
        yield better + text(f": significantly better than {grid.runs[grid.baseline]};")
        yield worse + text(": significantly worse.")
    yield text(_test(grid, options))


def _test(grid: ScoreGrid, options: OptionValues) -> str:
    assert grid.comparison is not None
    units = _units([metric.clusters for metric in grid.comparison.numbers])
    holm = ", Holm-corrected over the pairs of runs" if len(grid.runs) > 2 else ""
    return (
        f"Significance: paired approximate randomization of {units}, {options['rounds']:,} rounds, "
        f"p < {options['alpha']:g}{holm}."
    )


def _units(clusters: Sequence[int | None]) -> str:
    if all(each is None for each in clusters):
        return "samples"
    return "groups" if all(each is not None for each in clusters) else "samples or groups"
