"""The tables that the viewer hands out as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.viewer.exports import FORMATS, Cell, Table, number_cells
from multimodal_eval.report.viewer.run_list import RunList
from multimodal_eval.report.viewer.runs import NoSuchRunError

_NUMBER_HEADS = ("value", "stderr", "low", "high", "n_scored", "n_total")


def download(request: Request, name: str, table: Callable[[int | None], Table]) -> Response:
    """A table as a download in the format that the address ends with."""
    form = FORMATS.get(request.path_params["format"])
    if form is None:
        raise NoSuchRunError(f"tables are written as {', '.join(FORMATS)}")
    full = f"{name.replace('/', '-')}.{request.path_params['format']}"
    disposition = f"attachment; filename*=UTF-8''{quote(full, safe='')}"
    pieces = _blocks(form.write(table(form.most)))
    begun = chain([next(pieces)], pieces)  # what fails at once is an error, and no file
    return StreamingResponse(begun, media_type=form.media_type, headers={"content-disposition": disposition})


def _blocks(pieces: Iterator[str]) -> Iterator[str]:
    """Some lines at a time: each piece that leaves has its price."""
    block: list[str] = []
    for piece in pieces:
        block.append(piece)
        if len(block) == 500:
            yield "".join(block)
            block = []
    yield "".join(block)


def runs_table(found: RunList) -> Table:
    """The list of runs."""
    heads = ["run", "task", "state", "created", "samples", "number", "value", "low", "high"]
    rows = [
        [row.name, row.task, row.state, row.created, row.samples, row.number, row.value, row.low, row.high]
        for row in found.rows
    ]
    return Table(heads, rows)


def numbers_table(run: Run) -> Table:
    """The metrics of a run and their parts."""
    rows: list[list[Cell]] = []
    for name, entry in run.entries.items():
        rows.append([name, *number_cells(entry), entry.signature])
        rows += [[f"{name}.{part}", *number_cells(own), None] for part, own in entry.parts.items()]
    return Table(["number", *_NUMBER_HEADS, "signature"], rows)


def slices_table(run: Run) -> Table:
    """The metrics of each slice."""
    rows = [
        [column, value, name, *number_cells(entry)]
        for column, slices in run.outcome.slices.items()
        for value, own in slices.items()
        for name, entry in own.metrics.items()
    ]
    return Table(["column", "value", "number", *_NUMBER_HEADS], rows)


def comparison_table(found: RunComparison, names: Sequence[str]) -> Table:
    """The differences between runs, one row per metric and pair."""
    shown = dict(zip(found.runs, names, strict=True))
    heads = [
        "number",
        "first",
        "second",
        "first value",
        "second value",
        "difference",
        "low",
        "high",
        "p",
        "p (Holm)",
        "verdict",
    ]
    rows = []
    for number in found.numbers:
        values = {system.name: system.value for system in number.systems}
        for pair in number.pairs:
            sides = (pair.first, pair.second)
            rows.append(
                [
                    number.name,
                    *(shown[side] for side in sides),
                    *(values[side] for side in sides),
                    pair.difference,
                    pair.low,
                    pair.high,
                    pair.p_value,
                    pair.p_holm,
                    pair.verdict,
                ]
            )
    return Table(heads, rows)
