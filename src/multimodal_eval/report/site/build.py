"""Write the site of a leaderboard: its pages, and the results as CSV and JSON with all digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import msgspec

from multimodal_eval import __version__
from multimodal_eval.analysis.leaderboard import Leaderboard
from multimodal_eval.core.csv_cells import Cell
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import Entry, Figure, to_json
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.report.build import report_html
from multimodal_eval.report.site.content import SiteContent, Submission, site_content
from multimodal_eval.report.site.folder import SiteFolder
from multimodal_eval.report.site.pages import Pages
from multimodal_eval.report.viewer.exports import Table, as_csv

__all__ = [
    "TITLE",
    "leaderboard_csv",
    "leaderboard_json",
    "results_csv",
    "results_json",
    "with_link_back",
    "write_site",
]


_SECTIONS = '<nav aria-label="Sections">'
_BACK = '<a href="index.html">← Submission</a>'


def with_link_back(page: str) -> str:
    """The report with a link to the page of its submission. Otherwise it stays one file that loads nothing."""
    return page.replace(_SECTIONS, f"{_SECTIONS}\n{_BACK}", 1)


_FIGURE = ("value", "stderr", "low", "high")


def leaderboard_json(site: SiteContent) -> bytes:
    """The leaderboard as `mmeval leaderboard` stores it; reasons are those that everyone may read."""
    return to_json(site.board.to_dict())


def leaderboard_csv(site: SiteContent) -> bytes:
    """One row per submission: the ranked score, then every other metric with its interval."""
    names = [column.name for column in site.columns]
    labelled = [f"calibrated_{field}" for field in _FIGURE] if site.has_labels else []
    others = [f"{name}{ending}" for name in names for ending in ("", "_low", "_high")]
    ranked = ["stderr", "low", "high", "tied_with", "behind", "p", "failed"]
    headers = ["place", "submission", site.board.number, *ranked, *labelled]
    rows = [
        [
            *_ranked(submission),
            *(_figure(submission.row.calibrated) if labelled else ()),
            *(cell for name in names for cell in _interval(submission.entries.get(name))),
        ]
        for submission in site.submissions
    ]
    return "".join(as_csv(Table([*headers, *others], rows))).encode("utf-8", "replace")


def _ranked(submission: Submission) -> list[Cell]:
    row = submission.row
    tied = None if row.tied_with is None else "; ".join(row.tied_with)
    failed = sum(row.failures.values())
    return [row.place, row.name, row.value, row.stderr, row.low, row.high, tied, row.behind, row.p_value, failed]


def _figure(figure: Figure | None) -> list[Cell]:
    return [None] * len(_FIGURE) if figure is None else [getattr(figure, name) for name in _FIGURE]


def _interval(figure: Figure | None) -> list[Cell]:
    return [None, None, None] if figure is None else [figure.value, figure.low, figure.high]


def results_json(site: SiteContent, submission: Submission) -> bytes:
    """The place of a submission, its differences, its metrics and its files."""
    row = asdict(submission.row)
    del row["numbers"], row["calibrated"], row["counted"]
    content = {
        "ranked_by": site.board.number,
        **row,
        "metrics": msgspec.to_builtins(submission.entries),
        "files": msgspec.to_builtins(submission.files),
    }
    return to_json(content)


def results_csv(submission: Submission) -> bytes:
    """One row per metric, and per part of a metric."""
    headers = ["metric", "direction", *_FIGURE, "n_scored", "n_total", "method", "signature"]
    return "".join(as_csv(Table(headers, list(_result_rows(submission))))).encode("utf-8", "replace")


def _result_rows(submission: Submission) -> Iterator[list[Cell]]:
    for name, entry in submission.entries.items():
        yield _row(name, entry, entry, entry.n_scored, entry.n_total, entry.signature)
        if (calibrated := entry.calibrated) is not None:
            yield _row(f"{name} (calibrated)", entry, calibrated, calibrated.labels, None, calibrated.signature)
        for part, figure in entry.parts.items():
            yield _row(f"{name}.{part}", entry, figure, None, None, None)


def _row(
    name: str, entry: Entry, figure: Figure, scored: int | None, total: int | None, signature: str | None
) -> list[Cell]:
    return [name, entry.direction, *_figure(figure), scored, total, figure.method, signature]


TITLE = "Leaderboard"


def write_site(
    folder: SiteFolder | Path,
    runs: Location,
    board: Leaderboard,
    *,
    title: str = TITLE,
    with_samples: bool = False,
    progress: Progress = silent,
) -> None:
    """Write the site of a leaderboard whose runs are below a folder.

    Nothing of a single sample is in it, unless `with_samples`: then reports show samples with their references.
    """
    site_folder = folder if isinstance(folder, SiteFolder) else SiteFolder(folder)
    site = site_content(runs, board, title, with_samples=with_samples)
    site_folder.write(_files(site), progress)


def _files(site: SiteContent) -> dict[str, Callable[[], bytes]]:
    """The files of the site, with the first page at the end."""
    pages = Pages(site, __version__)
    files: dict[str, Callable[[], bytes]] = {}
    for submission in site.submissions:
        below = f"submissions/{submission.slug}"
        files |= {
            f"{below}/report.html": partial(_report, submission, with_samples=site.with_samples),
            f"{below}/results.json": partial(results_json, site, submission),
            f"{below}/results.csv": partial(results_csv, submission),
            f"{below}/index.html": partial(_submission_page, pages, submission),
        }
    return files | {
        "leaderboard.json": partial(leaderboard_json, site),
        "leaderboard.csv": partial(leaderboard_csv, site),
        "methods.html": lambda: _bytes(pages.methods()),
        "index.html": lambda: _bytes(pages.index()),
    }


def _submission_page(pages: Pages, submission: Submission) -> bytes:
    return _bytes(pages.submission(submission))


def _report(submission: Submission, *, with_samples: bool) -> bytes:
    page = report_html([submission.run], [submission.name], version=__version__, with_samples=with_samples)
    return _bytes(with_link_back(page))


def _bytes(page: str) -> bytes:
    return page.encode("utf-8", "replace")
