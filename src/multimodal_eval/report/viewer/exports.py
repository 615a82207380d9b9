"""Write tables as CSV, JSON, LaTeX or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec

from multimodal_eval.core.csv_cells import Cell, csv_lines
from multimodal_eval.core.display import p_value
from multimodal_eval.core.figure import Figure
from multimodal_eval.display import blocks
from multimodal_eval.display.latex import LatexRenderer
from multimodal_eval.display.markdown import MarkdownRenderer


@dataclass(frozen=True)
class Table:
    """Column headers and rows; the rows may be an iterator."""

    headers: Sequence[str]
    rows: Iterable[Sequence[Cell]]
    note: str = ""  # shown with the table
    p_values: Sequence[str] = ()  # headers of columns with p-values, which documents show as all displays do

    def shown(self) -> Iterator[list[Cell]]:
        """The rows for a document, with p-values as text."""
        columns = [index for index, header in enumerate(self.headers) if header in self.p_values]
        for row in self.rows:
            cells = list(row)
            for index in columns:
                cell = cells[index]
                cells[index] = p_value(cell) if isinstance(cell, float | int) else None
            yield cells


def as_csv(table: Table) -> Iterator[str]:
    """Comma-separated values. A text that a spreadsheet would run as a formula gets a leading apostrophe."""
    return csv_lines(chain([table.headers], table.rows))


def as_json(table: Table) -> Iterator[str]:
    """A list of objects."""
    yield "["
    separator = "\n"
    for row in table.rows:
        yield separator + msgspec.json.encode(dict(zip(table.headers, row, strict=True))).decode()
        separator = ",\n"
    yield "\n]\n"


def as_latex(table: Table) -> Iterator[str]:
    """A LaTeX tabular with booktabs rules."""
    yield LatexRenderer(is_float=False).table(_document(table)) + "\n"


def as_markdown(table: Table) -> Iterator[str]:
    """A GitHub Markdown table."""
    yield MarkdownRenderer().table(_document(table)) + "\n"


def _document(table: Table) -> blocks.Table:
    """The table for people, with rounded values."""
    rows = list(table.shown())
    columns = range(len(table.headers))
    left = next((column for column in columns if _is_numeric(table, rows, column)), len(table.headers))
    shown = [blocks.Row([_text(cell) for cell in row]) for row in rows]
    return blocks.Table(table.headers, shown, left, caption=table.note)


def _is_numeric(table: Table, rows: Sequence[Sequence[Cell]], column: int) -> bool:
    return table.headers[column] in table.p_values or any(isinstance(row[column], float | int) for row in rows)


def _text(cell: Cell) -> str:
    return "" if cell is None else f"{cell:.4f}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True)
class Format:
    """A file format: its writer, media type and row limit."""

    write: Callable[[Table], Iterator[str]]
    media_type: str
    most: int | None = None  # rows; a table in a document needs no more


FORMATS: dict[str, Format] = {
    "csv": Format(as_csv, "text/csv; charset=utf-8"),
    "json": Format(as_json, "application/json"),
    "tex": Format(as_latex, "text/plain; charset=utf-8", 1_000),
    "md": Format(as_markdown, "text/plain; charset=utf-8", 1_000),
}


def score_cells(entry: Figure) -> list[Cell]:
    """Value, standard error, interval, and the counts of scored and all samples of an entry in results.json."""
    counts = [entry.n_scored, entry.n_total]
    return [entry.value, entry.stderr, entry.low, entry.high, *counts]
