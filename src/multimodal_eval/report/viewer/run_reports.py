"""The report of a run, rendered again from its scores. A report.html in a run folder may be anybody's: it is not sent.

Texts of the run are escaped, as in every report. Should one of them get through, the policy still runs no script but
the report's own, loads nothing, and gives the page an origin of its own, from which the viewer cannot be read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from multimodal_eval.report.build import report_html
from multimodal_eval.report.render import policy
from multimodal_eval.report.viewer.runs import ViewedRun

__all__ = ["RunReports", "report_headers"]

KEPT = 4  # reports
MOST_SAMPLES = 200_000  # of a run whose report is rendered on request: about five seconds


def report_headers() -> dict[str, str]:
    """The policy of a report: its own scripts and styles only, in an origin of its own, apart from the viewer."""
    return {"content-security-policy": f"{policy()}; frame-ancestors 'none'; sandbox allow-scripts"}


class RunReports:
    """The latest reports."""

    def __init__(self, version: str, media_roots: Sequence[Path]) -> None:
        self._version, self._media_roots = version, media_roots
        self._pages: OrderedDict[object, str] = OrderedDict()
        self._lock = Lock()

    def of(self, run: ViewedRun) -> str:
        """The report of a finished run. Reports are rendered one at a time."""
        run.folder.refuse_links_out()
        with self._lock:
            page = self._pages.get(run.identity)
            if page is None:
                page = report_html([run.run], [run.name], version=self._version, media_roots=self._media_roots)
                self._pages[run.identity] = page
                while len(self._pages) > KEPT:
                    self._pages.popitem(last=False)
            self._pages.move_to_end(run.identity)
            return page
