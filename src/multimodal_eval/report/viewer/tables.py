"""The tables that the viewer offers for download."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.analysis.composite import composite_parts
from multimodal_eval.core.csv_cells import Cell
from multimodal_eval.core.display import number
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.viewer.exports import FORMATS, Table, score_cells
from multimodal_eval.report.viewer.run_list import ListedRun, RunList
from multimodal_eval.report.viewer.runs import NoSuchRunError

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
    headers = ["run", "task", "state", "created", "samples", "headline", "score", "low", "high"]
    headers += [header for name in metrics for header in (name, f"{name} low", f"{name} high")]
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
    return [None] * 3 if score is None else [score.value, score.low, score.high]


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
                ]
            )
    return Table(headers, rows, p_values=("p", "p (metrics)"))
