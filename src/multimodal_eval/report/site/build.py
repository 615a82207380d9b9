"""Write the site of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from multimodal_eval import __version__
from multimodal_eval.analysis.leaderboard import Leaderboard
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.report.build import report_html
from multimodal_eval.report.render import asset
from multimodal_eval.report.site import downloads
from multimodal_eval.report.site.content import SiteContent, Submission, site_content
from multimodal_eval.report.site.folder import SiteFolder
from multimodal_eval.report.site.pages import Pages
from multimodal_eval.report.site.site_report import LIBRARIES, as_page_of_the_site

__all__ = ["TITLE", "write_site"]

TITLE = "Leaderboard"
_LICENCES = ("d3.LICENSE.txt", "plot.LICENSE.txt")
_OF_SUBMISSION = ("index.html", "report.html", "results.json", "results.csv")
_OF_SITE = ("methods.html", "leaderboard.json", "leaderboard.csv", "index.html")


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
    names = [
        *(f"assets/{name}" for name in (*LIBRARIES, *_LICENCES)),
        *(f"submissions/{submission.slug}/{name}" for submission in site.submissions for name in _OF_SUBMISSION),
        *_OF_SITE,
    ]
    site_folder.write(_files(site, progress), names)


def _files(site: SiteContent, progress: Progress) -> Iterator[tuple[str, bytes]]:
    """The files of the site, with the first page at the end."""
    pages = Pages(site, __version__)
    for name in (*LIBRARIES, *_LICENCES):
        yield f"assets/{name}", asset(name).encode()
    for number, submission in enumerate(site.submissions, 1):
        below = partial("submissions/{}/{}".format, submission.slug)
        yield below("report.html"), _bytes(_report(submission, with_samples=site.with_samples))
        yield below("results.json"), downloads.results_json(site, submission)
        yield below("results.csv"), downloads.results_csv(submission)
        yield below("index.html"), _bytes(pages.submission(submission))
        progress("writing the site", number, len(site.submissions))
    yield "methods.html", _bytes(pages.methods())
    yield "leaderboard.json", downloads.leaderboard_json(site)
    yield "leaderboard.csv", downloads.leaderboard_csv(site)
    yield "index.html", _bytes(pages.index())


def _report(submission: Submission, *, with_samples: bool) -> str:
    page = report_html([submission.run], [submission.name], version=__version__, with_samples=with_samples)
    return as_page_of_the_site(page, "../../assets/")


def _bytes(page: str) -> bytes:
    return page.encode("utf-8", "replace")
