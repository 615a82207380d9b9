"""The pages of a site as HTML. Each is one file with its own style and script, under the policy of the report."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict

from jinja2 import Environment
from markupsafe import Markup

from multimodal_eval.analysis.failures import failures_in_words, rule_in_words
from multimodal_eval.analysis.leaderboard import Difference
from multimodal_eval.core.display import p_comparison
from multimodal_eval.core.records import to_json
from multimodal_eval.report.build import asset, icon
from multimodal_eval.report.site.content import WIDTH, Scale, SiteContent, Submission, Whisker, scale_of
from multimodal_eval.report.templating import templates

__all__ = [
    "DifferenceLine",
    "Methods",
    "MetricMethods",
    "Pages",
    "Places",
    "SubmissionLines",
    "methods_of",
    "submission_lines",
    "tied_places",
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
            entries[0].direction,
            list(dict.fromkeys(signatures)),
            entries[0].method,
            min(entry.n_scored for entry in entries),
            max(entry.n_total for entry in entries),
        )


# Where submissions are among the others, by each metric.


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
    return sorted(values, reverse=bool(entries) and entries[0].direction == "higher")


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
    is_certain: bool
    whisker: Whisker


class SubmissionLines(TypedDict):
    """What the template of a submission needs beside the submission."""

    differences: list[DifferenceLine]
    scale: Scale
    zero: float


def submission_lines(site: SiteContent, submission: Submission) -> SubmissionLines:
    """The differences to the first and to the neighbours, on one scale around zero."""
    differences = submission.row.differences
    ends = [end for each in differences for end in (each.value, each.low, each.high)]
    scale = scale_of(ends, include=0.0)
    return {
        "differences": [_line(site, submission, each, scale) for each in differences],
        "scale": scale,
        "zero": scale.place(0.0),
    }


def _line(site: SiteContent, submission: Submission, difference: Difference, scale: Scale) -> DifferenceLine:
    other = site.find(difference.other)
    verdict = _verdict(site, submission, difference)
    return DifferenceLine(
        difference,
        other,
        "" if other is None else _role(site, submission, other),
        verdict,
        verdict in ("better", "worse"),
        scale.whisker(difference.value, difference.low, difference.high),
    )


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
_SHOWN_TIES = 5  # names in the first sentence


class Pages:
    """Renders the pages of one site; `version` is the version of the program."""

    def __init__(self, site: SiteContent, version: str) -> None:
        self._site, self._places = site, Places(site)
        self._environment: Environment = templates(_HERE / "templates")
        self._environment.filters |= {
            "tied_places": tied_places,
            "shade": self._places.shade,
            "p_comparison": p_comparison,
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
            "width": WIDTH,
        }

    def index(self) -> str:
        """The ranking."""
        return self._page("index", "", shown=_SHOWN_TIES)

    def methods(self) -> str:
        """How the ranking was made."""
        return self._page("methods", "", **methods_of(self._site))

    def submission(self, submission: Submission) -> str:
        """One submission: its place, its differences, its scores."""
        lines = submission_lines(self._site, submission)
        return self._page("submission", "../../", submission=submission, places=self._places.of(submission), **lines)

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
