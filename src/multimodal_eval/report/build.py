"""Build the report of one or more runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, below
from multimodal_eval.report.choice import PER_GROUP
from multimodal_eval.report.content import content_of
from multimodal_eval.report.render import Theme, render

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.analysis.composite import Sensitivity

FILE = "report.html"
PAPER_FILE = "report-paper.html"


def report_html(
    runs: Sequence[Run],
    names: Sequence[str],
    *,
    version: str,
    comparison: RunComparison | None = None,
    sensitivity: Sensitivity | None = None,
    per_group: int = PER_GROUP,
    fetch: bool = False,
    media_roots: Sequence[Path] = (),
    with_samples: bool = True,
    theme: Theme = "screen",
) -> str:
    """The report of one run, or of several runs over the same samples, as one self-contained page.

    `names` are the displayed names of the runs, and `version` is the version of the program.
    `comparison` and `sensitivity` are the results of the commands with these names. Each group shows up to
    `per_group` samples, at most 200 in total. `fetch` allows fetching images from URLs if the run allowed it.
    Media are read below `media_roots`; without them as the run asks if the user has made it, else in its folder only.
    Without `with_samples`, the page has nothing of a single sample, for people who must not see the references.
    The theme `paper` is for print: without controls, with numbered tables and figures.
    """
    content = content_of(
        runs,
        names,
        comparison=comparison,
        sensitivity=sensitivity,
        per_group=per_group,
        fetch=fetch,
        media_roots=media_roots,
        with_samples=with_samples,
    )
    return render(content, version, theme)


def write_into(run: Run, page: str, theme: Theme = "screen") -> Location:
    """Write the report into the run folder. One for paper does not replace the other."""
    name = file_name(theme)
    run.folder.storage.write(name, lambda path: write_page(path, page))
    return below(run.location, name)


def file_name(theme: Theme) -> str:
    """The name of the file, unless the user chooses one."""
    return PAPER_FILE if theme == "paper" else FILE


def write_page(path: Path, page: str) -> None:
    """Write the page as UTF-8, with the same bytes on every system."""
    path.write_bytes(page.encode("utf-8", "replace"))
