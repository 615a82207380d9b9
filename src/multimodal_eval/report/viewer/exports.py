"""Write tables as CSV, JSON, LaTeX or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.analysis.composite import composite_parts
from multimodal_eval.core.csv_cells import Cell, csv_lines
from multimodal_eval.core.display import number, p_value
from multimodal_eval.core.figure import Figure
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display import blocks
from multimodal_eval.display.latex import LatexRenderer
from multimodal_eval.display.markdown import MarkdownRenderer
from multimodal_eval.report.viewer.run_list import ListedRun, RunList
from multimodal_eval.report.viewer.runs import NoSuchRunError


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


# The tables that the viewer offers for download.

_SCORE_HEADERS = ("score", "stderr", "low", "high", "n_scored", "n_total")


def download(request: Request, name: str, table: Callable[[int | None], Table]) -> Response:
    """A table as a download, in the format at the end of the URL."""
    suffix = request.path_params["format"]
    if suffix not in FORMATS:
        raise NoSuchRunError(f"tables can be saved as {', '.join(FORMATS)}")
    file_format = FORMATS[suffix]
    file_name = f"{name.replace('/', '-')}.{suffix}"
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(file_name, safe='')}"}
    blocks = _blocks(file_format.write(table(file_format.most)))
    started = chain([next(blocks)], blocks)  # an error in the first block becomes an error page instead of a file
    return StreamingResponse(started, media_type=file_format.media_type, headers=headers)


def _blocks(pieces: Iterator[str]) -> Iterator[str]:
    """Join the pieces into blocks of 500, since sending many small pieces is slow."""
    block: list[str] = []
    for piece in pieces:
        block.append(piece)
        if len(block) == 500:
            yield "".join(block)
            block = []
    yield "".join(block)


def runs_table(listing: RunList) -> Table:
    """The list of runs: the headline of each run, then every shown metric with its interval."""
    metrics = list(dict.fromkeys(column.name for group in listing.groups for column in group.columns))
    headers = ["run", "task", "state", "created", "samples", "headline", "score", "low", "high", "n_scored"]
    headers += [
        header for name in metrics for header in (name, *(f"{name} {end}" for end in ("low", "high", "n_scored")))
    ]
    rows = [
        [
            *(run.name, run.task, run.state, run.created, run.samples, run.headline),
            *(cell for name in (run.headline, *metrics) for cell in _listed_cells(run, name)),
        ]
        for run in listing.rows
    ]
    return Table(headers, rows)


def _listed_cells(run: ListedRun, metric: str | None) -> list[Cell]:
    score = None if metric is None else run.scores.get(metric)
    return [None] * 4 if score is None else [score.value, score.low, score.high, score.n_scored]


def scores_table(run: Run) -> Table:
    """The scores of a run, with the parts of its metrics."""
    rows: list[list[Cell]] = []
    for name, entry in run.entries.items():
        rows.append([name, run.kind_of(name), *score_cells(entry), entry.signed])
        rows += [
            [f"{name}.{part}", run.kind_of(f"{name}.{part}"), *score_cells(figure), None]
            for part, figure in entry.parts.items()
        ]
    return Table(["metric", "kind", *_SCORE_HEADERS, "signature"], rows, _composite_note(run))


def _composite_note(run: Run) -> str:
    """What the composite is, with its parts as they enter it."""
    composite = composite_parts(run)
    if composite is None:
        return ""
    parts = " + ".join(f"{part.weight:g} {part.enters_as} (mean {number(part.mean)})" for part in composite.parts)
    return f"{composite.explanation}: {parts}"


def slices_table(run: Run) -> Table:
    """The scores of each slice."""
    rows = [
        [column, value, name, *score_cells(entry)]
        for column, slices in run.outcome.slices.items()
        for value, slice_ in slices.items()
        for name, entry in slice_.metrics.items()
    ]
    return Table(["column", "value", "metric", *_SCORE_HEADERS], rows)


def comparison_table(comparison: RunComparison, names: Sequence[str]) -> Table:
    """The differences between runs, one row per metric and pair."""
    shown = dict(zip(comparison.runs, names, strict=True))
    headers = [
        "metric",
        "first",
        "second",
        "first value",
        "second value",
        "difference",
        "low",
        "high",
        "p",
        "p (metrics)",
        "verdict",
        "n_scored",
        "n_total",
    ]
    rows = []
    for metric in comparison.numbers:
        values = {system.name: system.value for system in metric.systems}
        for pair in metric.pairs:
            sides = (pair.first, pair.second)
            rows.append(
                [
                    metric.name,
                    *(shown[side] for side in sides),
                    *(values[side] for side in sides),
                    pair.difference,
                    pair.low,
                    pair.high,
                    pair.p_value,
                    pair.p_metrics,
                    pair.verdict,
                    metric.samples,
                    metric.samples + metric.left_out,
                ]
            )
    return Table(headers, rows, p_values=("p", "p (metrics)"))
