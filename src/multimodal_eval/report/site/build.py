"""Write the site of a leaderboard: its pages, and the results as CSV and JSON with all digits.

Each page is one file with its own style and script, under the policy of the report.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from multimodal_eval import __version__
from multimodal_eval.analysis.failures import failures_in_words, rule_in_words
from multimodal_eval.analysis.leaderboard import Difference, Leaderboard
from multimodal_eval.core.csv_cells import Cell
from multimodal_eval.core.display import DASH, printed
from multimodal_eval.core.figure import Direction, Figure
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import to_json
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.display.blocks import FigureRow, Figures
from multimodal_eval.display.drawings import axis, dots, scale_of
from multimodal_eval.display.figure_tables import coverage
from multimodal_eval.display.of_rankings import leaderboard_verdict, standing_figure
from multimodal_eval.display.page import PageRenderer
from multimodal_eval.report.build import asset, icon, report_html
from multimodal_eval.report.site.content import SiteContent, Submission, site_content
from multimodal_eval.report.site.folder import SiteFolder
from multimodal_eval.report.templating import templates
from multimodal_eval.report.viewer.exports import Table, as_csv

__all__ = [
    "TITLE",
    "DifferenceLine",
    "Methods",
    "MetricMethods",
    "Pages",
    "Places",
    "SubmissionLines",
    "leaderboard_csv",
    "leaderboard_json",
    "methods_of",
    "results_csv",
    "results_json",
    "submission_lines",
    "tied_places",
    "with_link_back",
    "write_site",
]

# What the page about methods shows: signatures, versions, settings.


@dataclass(frozen=True)
class MetricMethods:
    """How a metric was computed. Several signatures are those of different submissions."""

    name: str
    direction: str
    signatures: list[str]
    method: str
    least_scored: int
    total: int


class Methods(TypedDict):
    """What the template needs beside the site."""

    metrics: list[MetricMethods]
    all_versions: list[str]
    seeds: list[int]
    configs: list[str]
    notes: list[str]
    pairs: int
    alpha: float


def methods_of(site: SiteContent) -> Methods:
    """The methods. What all submissions share is listed once."""
    runs = [submission.run for submission in site.submissions]
    count = len(runs)
    return {
        "metrics": list(_metrics(site)),
        "all_versions": list(dict.fromkeys(_versions(run.info.versions) for run in runs)),
        "seeds": list(dict.fromkeys(run.info.seed for run in runs)),
        "configs": list(dict.fromkeys(to_json(run.info.config).decode() for run in runs)),
        "notes": list(dict.fromkeys(note for run in runs for note in run.outcome.notes)),
        "pairs": count * (count - 1) // 2,
        "alpha": round(1 - site.board.level, 12),
    }


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _metrics(site: SiteContent) -> Iterator[MetricMethods]:
    runs = [submission.run for submission in site.submissions]
    for name in dict.fromkeys(name for run in runs for name in run.entries):
        entries = [run.entries[name] for run in runs if name in run.entries]
        signatures = [run.info.signatures[name].text for run in runs if name in run.info.signatures]
        yield MetricMethods(
            name,
            entries[0].better,
            list(dict.fromkeys(signatures)),
            entries[0].method,
            min(entry.coverage.scored for entry in entries),
            max(entry.coverage.total for entry in entries),
        )


# The rank of each submission by every metric.


SHADES = 3


class Places:
    """The order of the submissions by every metric."""

    def __init__(self, site: SiteContent) -> None:
        names = {name for submission in site.submissions for name in submission.entries}
        self._sorted = {name: _best_first(site, name) for name in names}

    def of(self, submission: Submission) -> dict[str, int | None]:
        """The place by each metric, with equal places for equal values; None without a value."""
        return {
            name: None if entry.value is None else self._sorted[name].index(entry.value) + 1
            for name, entry in submission.entries.items()
        }

    def shade(self, value: float | None, metric: str) -> int:
        """How dark the cell of a value is: 0 for the worst values of the column, up to 3 for the best."""
        ordered = self._sorted[metric]
        best, worst = (ordered[0], ordered[-1]) if ordered else (0.0, 0.0)
        if value is None or best == worst:
            return 0
        return min(SHADES, int((SHADES + 1) * (value - worst) / (best - worst)))


def _best_first(site: SiteContent, metric: str) -> list[float]:
    entries = [entry for submission in site.submissions if (entry := submission.entries.get(metric)) is not None]
    values = [entry.value for entry in entries if entry.value is not None]
    return sorted(values, reverse=bool(entries) and entries[0].better == "higher")


def tied_places(submission: Submission, site: SiteContent) -> str:
    """The places of the submissions that are tied with this one: 2–5, 7."""
    others = (site.find(name) for name in submission.row.tied_with or ())
    return ", ".join(_ranges(sorted({other.row.place for other in others if other is not None})))


def _ranges(places: Iterable[int]) -> Iterable[str]:
    start = end = None
    for place in (*places, None):
        if place is not None and end is not None and place == end + 1:
            end = place
            continue
        if start is not None:
            yield str(start) if start == end else f"{start}, {end}" if end == start + 1 else f"{start}–{end}"
        start = end = place


# The differences that the page of a submission shows.


@dataclass(frozen=True)
class DifferenceLine:
    """A difference to another submission, and what it proves."""

    difference: Difference
    other: Submission | None
    role: str
    verdict: str
    drawn: Markup


class SubmissionLines(TypedDict):
    """What the template of a submission needs beside the submission."""

    differences: list[DifferenceLine]
    axis: Markup


def submission_lines(site: SiteContent, submission: Submission) -> SubmissionLines:
    """The differences to the first and to the neighbours, on one scale around zero."""
    differences = submission.row.differences
    better: Direction = "lower" if site.board.direction == "lower" else "higher"
    figures = [Figure(each.value, None, each.low, each.high, "", direction=better) for each in differences]
    verdicts = [_verdict(site, submission, each) for each in differences]
    drawn, axis_ = drawings_of(figures, [each in ("better", "worse") for each in verdicts], with_origin=True)
    lines = []
    for difference, verdict, drawing in zip(differences, verdicts, drawn, strict=True):
        other = site.find(difference.other)
        role = "" if other is None else _role(site, submission, other)
        lines.append(DifferenceLine(difference, other, role, verdict, drawing))
    return {"differences": lines, "axis": axis_}


def drawings_of(
    figures: Sequence[Figure], marked: Sequence[bool], *, with_origin: bool = False
) -> tuple[list[Markup], Markup]:
    """A drawing of each figure, in colour if it is marked, and the axis of their scale."""
    scale, page = scale_of(figures, with_origin=with_origin), PageRenderer()
    tones = ["series-1" if each else "unknown" for each in marked]
    drawn = [
        page.drawing(dots([figure], scale, [tone], with_origin=with_origin, width=_WIDTH))
        for figure, tone in zip(figures, tones, strict=True)
    ]
    return drawn, page.drawing(axis(scale, _WIDTH))


def _role(site: SiteContent, submission: Submission, other: Submission) -> str:
    place = f"place {other.row.place}"
    if other is site.submissions[0]:
        return f"the first, {place}" if other.row.place == submission.row.place else "the first"
    above = site.order[other.name] < site.order[submission.name]
    return f"{place}, the next {'above' if above else 'below'}"


def _verdict(site: SiteContent, submission: Submission, difference: Difference) -> str:
    tied_with = submission.row.tied_with
    if tied_with is None:
        return "not tested"
    if difference.other in tied_with:
        return "tied"
    return "better" if (difference.value > 0) == (site.board.direction == "higher") else "worse"


_HERE = Path(__file__).parent
_WIDTH = 180  # of a drawing


class Pages:
    """Renders the pages of one site; `version` is the version of the program."""

    def __init__(self, site: SiteContent, version: str) -> None:
        self._site, self._places = site, Places(site)
        self._environment: Environment = templates(_HERE / "templates")
        self._environment.filters |= {
            "tied_places": tied_places,
            "shade": self._places.shade,
            "printed": printed,
            "coverage": coverage,
            "failures": failures_in_words,
            "rule": rule_in_words,
        }
        self._environment.globals |= {
            "site": site,
            "version": version,
            "policy": _policy(),
            "style": Markup(_style()),
            "script": Markup(_script()),
            "icon": icon(),
        }

    def index(self) -> str:
        """The ranking."""
        board = self._site.board
        figures = [standing_figure(row, board) for row in board.standings]
        drawn, axis_ = drawings_of(figures, [submission.leads for submission in self._site.submissions])
        return self._page("index", "", verdict=leaderboard_verdict(board), drawn=drawn, axis=axis_)

    def methods(self) -> str:
        """How the ranking was made."""
        return self._page("methods", "", **methods_of(self._site))

    def submission(self, submission: Submission) -> str:
        """One submission: its place, its differences, its scores."""
        lines = submission_lines(self._site, submission)
        places = self._places.of(submission)
        rows = [
            FigureRow(
                msgspec.structs.replace(entry, name=name),
                after=[DASH if places[name] is None else str(places[name])],
                is_main=name == self._site.board.number,
            )
            for name, entry in submission.entries.items()
        ]
        scores = PageRenderer().figures(Figures(rows, after=("place by it",)))
        return self._page("submission", "../../", submission=submission, scores=scores, **lines)

    def _page(self, here: str, root: str, **values: Any) -> str:
        return self._environment.get_template(f"{here}.html.j2").render(here=here, root=root, **values)


@cache
def _site_asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    return "\n".join((asset("tokens.css"), asset("style.css"), _site_asset("site.css")))


def _script() -> str:
    return "\n".join((asset("page.js"), _site_asset("site.js")))


def _policy() -> str:
    """Only our script and style may run, and nothing may be loaded but images in the page itself."""
    return (
        f"default-src 'none'; script-src {_hash_source(_script())}; style-src {_hash_source(_style())}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash_source(text: str) -> str:
    """The source expression that allows exactly this script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


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
    others = [f"{name}{ending}" for name in names for ending in ("", "_low", "_high", "_n_scored")]
    ranked = ["stderr", "low", "high", "n_scored", "n_total", "tied_with", "behind", "p", "failed"]
    headers = ["place", "submission", site.board.number, *ranked, *labelled]
    rows = [
        [
            *_ranked(submission, site.board),
            *(_figure(submission.row.calibrated) if labelled else ()),
            *(cell for name in names for cell in _interval(submission.entries.get(name))),
        ]
        for submission in site.submissions
    ]
    return "".join(as_csv(Table([*headers, *others], rows))).encode("utf-8", "replace")


def _ranked(submission: Submission, board: Leaderboard) -> list[Cell]:
    row, counts = submission.row, (board.samples - board.left_out, board.samples)
    tied = None if row.tied_with is None else "; ".join(row.tied_with)
    failed = sum(row.failures.values())
    ranked = [row.place, row.name, row.value, row.stderr, row.low, row.high, *counts]
    return [*ranked, tied, row.behind, row.p_value, failed]


def _figure(figure: Figure | None) -> list[Cell]:
    return [None] * len(_FIGURE) if figure is None else [getattr(figure, name) for name in _FIGURE]


def _interval(figure: Figure | None) -> list[Cell]:
    return [None] * 4 if figure is None else [figure.value, figure.low, figure.high, figure.n_scored]


def results_json(site: SiteContent, submission: Submission) -> bytes:
    """The place of a submission, its differences, its metrics and its files."""
    row = asdict(submission.row)
    del row["numbers"], row["calibrated"], row["counted"], row["figures"]
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
        yield _row(name, entry, entry, entry.n_scored, entry.n_total, entry.signed)
        if (calibrated := entry.calibrated) is not None:
            yield _row(f"{name} (calibrated)", entry, calibrated, calibrated.labels, None, calibrated.signed)
        for part, figure in entry.parts.items():
            yield _row(f"{name}.{part}", entry, figure, None, None, None)


def _row(
    name: str, entry: Figure, figure: Figure, scored: int | None, total: int | None, signature: str | None
) -> list[Cell]:
    return [name, entry.better, *_figure(figure), scored, total, figure.method, signature]


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
