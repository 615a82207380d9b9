"""Write the site of a leaderboard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from multimodal_eval import __version__
from multimodal_eval.analysis.leaderboard import Leaderboard
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.report.build import report_html
from multimodal_eval.report.site import downloads
from multimodal_eval.report.site.content import SiteContent, Submission, site_content
from multimodal_eval.report.site.folder import SiteFolder
from multimodal_eval.report.site.pages import Pages
from multimodal_eval.report.site.site_report import with_link_back

__all__ = ["TITLE", "write_site"]

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
            f"{below}/results.json": partial(downloads.results_json, site, submission),
            f"{below}/results.csv": partial(downloads.results_csv, submission),
            f"{below}/index.html": partial(_submission_page, pages, submission),
        }
    return files | {
        "leaderboard.json": partial(downloads.leaderboard_json, site),
        "leaderboard.csv": partial(downloads.leaderboard_csv, site),
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
