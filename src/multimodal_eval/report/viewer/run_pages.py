"""The list of runs, the page of a run, its slices, its progress and its report."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from multimodal_eval.analysis.composite import composite_parts
from multimodal_eval.analysis.crosswalk import crosswalk_if_any
from multimodal_eval.analysis.run_slices import slices_of
from multimodal_eval.core.errors import RunFolderError, UnknownNameError
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.display.blocks import Block, Finding, Text
from multimodal_eval.display.of_comparison import crosswalk_blocks
from multimodal_eval.display.of_generation import generation_blocks
from multimodal_eval.display.of_run import composite_table
from multimodal_eval.display.page import ViewerRenderer
from multimodal_eval.display.run_findings import warnings_of
from multimodal_eval.report.build import policy, report_html
from multimodal_eval.report.sections import judge_section
from multimodal_eval.report.viewer.drawings import HeatMap, heat_map
from multimodal_eval.report.viewer.exports import download, runs_table, scores_table, slices_table
from multimodal_eval.report.viewer.histograms import Histograms
from multimodal_eval.report.viewer.pages import refuse_repeated
from multimodal_eval.report.viewer.run_list import COLUMNS, PAGE, SCORE, STATES, RunList, RunNotes, Summaries, listed
from multimodal_eval.report.viewer.runs import RunsFolder, ViewedRun

__all__ = ["RunPages", "RunReports", "SliceCache", "report_headers", "stored_maps"]


# The slices of runs as heat maps: those that a run stores, and those by every column with few values.


KEPT_SLICES = 16  # runs


def stored_maps(run: ViewedRun) -> list[HeatMap]:
    """The slices that the run was asked for."""
    entries = run.run.entries
    return [
        heat_map(
            column,
            {value: each.metrics for value, each in slices.items()},
            {value: each.n for value, each in slices.items()},
            entries,
        )
        for column, slices in run.run.outcome.slices.items()
    ]


class SliceCache:
    """The slices of the latest runs, by all columns with few values."""

    def __init__(self) -> None:
        self._maps: OrderedDict[object, list[HeatMap]] = OrderedDict()
        self._lock = Lock()

    def known(self, run: ViewedRun) -> list[HeatMap] | None:
        """The slices of a run, if they have been computed."""
        return self._maps.get(run.identity)

    def of(self, run: ViewedRun) -> list[HeatMap]:
        """The slices of a run. They are computed one run at a time."""
        with self._lock:
            maps = self._maps.get(run.identity)
            if maps is None:
                entries = run.run.entries
                maps = [heat_map(each.column, each.values, each.counts, entries) for each in slices_of(run.run)]
                self._maps[run.identity] = maps
                while len(self._maps) > KEPT_SLICES:
                    self._maps.popitem(last=False)
            return maps


# The report of a run, rendered again from its scores. A report.html in a run folder may be anybody's: it is not sent.
#
# Texts of the run are escaped, as in every report. Should one of them get through, the policy still runs no script but
# the report's own, loads nothing, and gives the page an origin of its own, from which the viewer cannot be read.


KEPT_REPORTS = 4  # reports
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
                while len(self._pages) > KEPT_REPORTS:
                    self._pages.popitem(last=False)
            self._pages.move_to_end(run.identity)
            return page


AT_ONCE = 20_000  # samples of a run whose page has its histograms; the page of a larger run requests them
MOST_SLICED = 100_000  # samples of a run that is sliced by columns that were not asked for: about a second
MOST_SPREADS = 40  # metrics of one request


@dataclass(frozen=True)
class RunPages:
    """The request handlers for whole runs."""

    folder: RunsFolder
    histograms: Histograms
    templates: Environment
    summaries: Summaries
    reports: RunReports
    notes: RunNotes
    slices: SliceCache = field(default_factory=SliceCache)

    def _page(self, template: str, **content: Any) -> Response:
        return HTMLResponse(self.templates.get_template(template).render(folder=self.folder, **content))

    def _run(self, request: Request) -> ViewedRun:
        return self.folder.open(request.path_params["name"])

    def _done(self, request: Request) -> ViewedRun:
        run = self._run(request)
        if not run.is_done:
            raise RunFolderError(f"the run {run.name} is not finished")
        return run

    # the list

    def runs(self, request: Request) -> Response:
        """All runs of the folder as a matrix of runs and metrics."""
        listing = self._listing(request)
        return self._page(
            "runs.html",
            listing=listing,
            states=STATES,
            columns=COLUMNS,
            score=SCORE,
            size=PAGE,
            address=urlencode(listing.page(listing.offset)),
            known=self.histograms.known,
        )

    def runs_export(self, request: Request) -> Response:
        """The list as a file."""
        listing = self._listing(request, whole=True)
        return download(request, "runs", lambda most: runs_table(listing))

    def _listing(self, request: Request, *, whole: bool = False) -> RunList:
        runs = [replace(run, tags=self.notes.of(run.name).tags) for run in self.summaries.all()]
        return listed(runs, refuse_repeated(request, "metric"), whole=whole)

    def spread(self, request: Request) -> Response:
        """Small histograms of the scores of a run, for its row in the list."""
        run = self._done(request)
        names = [value for name, value in refuse_repeated(request, "metric") if name == "metric"]
        charts = self.histograms.of(run, names[:MOST_SPREADS])
        return self._page("spread.html", run=run, names=list(charts), charts_of=charts)

    # one run

    def run(self, request: Request) -> Response:
        """Scores, histograms, slices, warnings and signatures of a finished run, or the progress of a run."""
        run = self._run(request)
        if not run.is_done:
            return self._page("progress.html", run=run, progress=run.progress(), generation=_generation(run))
        lint = run.folder.read_lint()  # the run is not linted here, which would read all of it
        slices = self.slices.known(run)
        return self._page(
            "run.html",
            run=run,
            results=run.run.outcome,
            composite=_composite(run),
            crosswalk=_crosswalk(run),
            generation=_generation(run),
            judges=RunRenderer(run).joined(list(_judges(run))),
            warnings=RunRenderer(run).joined(
                warnings_of(run.run, () if lint is None else lint.findings, explained=True)
            ),
            charts=self.histograms.of(run, _drawn(run)) if run.committed <= AT_ONCE else None,
            maps=stored_maps(run) if slices is None else slices,
            more_slices=slices is None and run.committed <= MOST_SLICED,
            has_report=run.committed <= MOST_SAMPLES,
            fields=FIELDS,
        )

    def histogram_page(self, request: Request) -> Response:
        """The histograms of all metrics of a run. Counting a large run takes a moment, so its page requests them."""
        run = self._done(request)
        return self._page("histograms.html", run=run, charts=self.histograms.of(run, _drawn(run)))

    def slice_page(self, request: Request) -> Response:
        """The slices of a run by the columns that it was asked for, and by others with few values."""
        run = self._done(request)
        if run.committed > MOST_SLICED:
            raise RunFolderError(
                f"the run {run.name} has more than {MOST_SLICED:,} samples. Slice it when it is scored: --by COLUMN"
            )
        return self._page("slices.html", run=run, results=run.run.outcome, maps=self.slices.of(run), fields=FIELDS)

    def run_export(self, request: Request) -> Response:
        """The scores, or the slices, as a file."""
        run = self._run(request)
        table = dict(refuse_repeated(request)).get("table", "numbers")
        tables = {"numbers": scores_table, "slices": slices_table}
        if table not in tables:
            raise UnknownNameError("table", table[:100], tables)
        return download(request, f"{run.name}-{table}", lambda most: tables[table](run.run))

    def report(self, request: Request) -> Response:
        """The report of a run, rendered again from its scores, under the policy of a report."""
        run = self._done(request)
        if run.committed > MOST_SAMPLES:
            raise RunFolderError(
                f"the run {run.name} has more than {MOST_SAMPLES:,} samples. Write its report with: "
                f"mmeval report {run.folder.path} -o report.html"
            )
        return HTMLResponse(self.reports.of(run).encode("utf-8", "replace"), headers=report_headers())

    def progress(self, request: Request) -> Response:
        """The progress of a run, for a page that polls it. When the run is done, the page reloads."""
        run = self._run(request)
        if run.is_done:
            return Response(status_code=204, headers={"HX-Refresh": "true"})
        return self._page("progress_bar.html", run=run, progress=run.progress())


def _drawn(run: ViewedRun) -> list[str]:
    """The metrics with scores of samples, in the order of the table."""
    return [name for name in run.run.entries if name in run.score_names]


# What the page shows of results that have blocks.


class RunRenderer(ViewerRenderer):
    """Blocks on the page of a run, on which an example is a link to its sample."""

    def __init__(self, run: ViewedRun) -> None:
        super().__init__()
        self.run = run

    def example(self, block: Finding, text: str) -> Markup:
        """The id of a sample as a link to it."""
        address = f"/sample/{quote(self.run.name)}?{urlencode({'id': text})}"
        return Markup('<a href="{}">{}</a>').format(address, super().example(block, text))


def _composite(run: ViewedRun) -> Markup | None:
    parts = composite_parts(run.run)
    if parts is None:
        return None
    explained = Text(f"{parts.explanation}. Its parts, as they enter each sample's composite:")
    return ViewerRenderer().joined([explained, composite_table({"": parts})])


def _crosswalk(run: ViewedRun) -> Markup | None:
    crosswalk = crosswalk_if_any(run.run)
    return None if crosswalk is None else ViewerRenderer().joined(list(crosswalk_blocks(crosswalk)))


def _generation(run: ViewedRun) -> Markup | None:
    summary = run.generation
    return None if summary is None else ViewerRenderer().joined(list(generation_blocks({run.name: summary})))


def _judges(run: ViewedRun) -> Iterator[Block]:
    for judge in run.judges:
        yield Text(judge.metric, tone="strong")
        yield from judge_section(judge)
