"""The report of one or more runs: its content, as an HTML file that needs nothing else, and as Markdown."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from markupsafe import Markup

from multimodal_eval import __version__
from multimodal_eval.analysis.pairing import require_same_statistics, scored_rows
from multimodal_eval.core.csv_cells import csv_lines
from multimodal_eval.core.display import printed
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.records import COMPOSITE, shared_headline, to_json
from multimodal_eval.core.visible import visible
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, below
from multimodal_eval.display.html import HtmlRenderer
from multimodal_eval.display.page import PageRenderer
from multimodal_eval.display.renderer import blocks_of
from multimodal_eval.display.wording import Verdict
from multimodal_eval.evaluation.cards import card_text
from multimodal_eval.report.distributions import Distribution, Histogram, distribution, histogram
from multimodal_eval.report.one_run import OneRun, one_run, without_samples
from multimodal_eval.report.samples import EXPLANATIONS, PER_GROUP, TITLES, Chosen, Shown, choose, shown_samples
from multimodal_eval.report.sections import Section, details_of, results_of
from multimodal_eval.report.templating import templates
from multimodal_eval.report.verdict import verdicts_of

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.analysis.composite import Sensitivity
    from multimodal_eval.analysis.suite_table import SuiteCell, SuiteTable
    from multimodal_eval.analysis.why import Why
    from multimodal_eval.contests.shared_task.judging import Outcome
    from multimodal_eval.report.site.folder import SiteFolder

__all__ = [
    "Block",
    "Inline",
    "Theme",
    "asset",
    "blocks",
    "icon",
    "inlines",
    "policy",
    "render",
    "result_html",
    "submission_page",
    "suite_html",
    "write_suite_site",
]


# Parse metric cards into blocks for a template. Supports only the Markdown that the cards use.

_HEADING = re.compile(r"(#{1,6}) +(.*)")
_ITEM = re.compile(r"( *)[-*] +(.*)")
_FENCE = re.compile(r"```|\$\$")
_RULE = re.compile(r"\|?[ :|-]+\|?")
# What the site executes, which a report does not need: marks, the example, lines of commands.
_EXAMPLES = re.compile(
    r"^(?:<!--.*?-->|For example:|```(?:python|text)\n.*?^```| {4}mmeval [^\n]*)$", re.MULTILINE | re.DOTALL
)
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)")


@dataclass(frozen=True, slots=True)
class Inline:
    """A piece of a line; `kind` is `text`, `code` or `strong`."""

    kind: str
    text: str


@dataclass(slots=True)
class Block:
    """A heading (its depth in `level`), a paragraph, a list item (its indentation), a table or preformatted text."""

    kind: str
    inlines: list[Inline] = field(default_factory=list)
    level: int = 0
    text: str = ""
    rows: list[list[list[Inline]]] = field(default_factory=list)


def blocks(source: str) -> list[Block]:
    """The blocks of a card, in order, without its examples. A link becomes its text and its URL."""
    return list(_blocks(_EXAMPLES.sub("", source).splitlines()))


def inlines(line: str) -> list[Inline]:
    """Split a line at its code, strong text and links."""
    pieces: list[Inline] = []
    end = 0
    for match in _INLINE.finditer(line):
        if match.start() > end:
            pieces.append(Inline("text", line[end : match.start()]))
        code, strong, label, url = match.groups()
        if code is not None:
            pieces.append(Inline("code", code))
        elif strong is not None:
            pieces.append(Inline("strong", strong))
        else:
            pieces.append(Inline("text", label if "://" not in url else f"{label} ({url})"))
        end = match.end()
    if end < len(line):
        pieces.append(Inline("text", line[end:]))
    return pieces


def _blocks(lines: list[str]) -> Iterator[Block]:
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if not line.strip():
            continue
        if fence := _FENCE.match(line.strip()):
            inner = []
            while index < len(lines) and not lines[index].strip().startswith(fence[0]):
                inner.append(lines[index])
                index += 1
            index += 1
            yield Block("preformatted", text="\n".join(inner))
        elif heading := _HEADING.fullmatch(line):
            yield Block("heading", inlines(heading[2]), level=len(heading[1]))
        elif item := _ITEM.fullmatch(line):
            yield Block("item", inlines(item[2]), level=len(item[1]) // 2)
        elif line.lstrip().startswith("|"):
            rows = [line]
            while index < len(lines) and lines[index].lstrip().startswith("|"):
                rows.append(lines[index])
                index += 1
            yield Block("table", rows=[_cells(row) for row in rows if not _RULE.fullmatch(row.strip())])
        else:
            paragraph = [line.strip()]
            while index < len(lines) and _continues(lines[index]):
                paragraph.append(lines[index].strip())
                index += 1
            yield Block("paragraph", inlines(" ".join(paragraph)))


def _continues(line: str) -> bool:
    text = line.strip()
    return bool(text) and not (
        _HEADING.fullmatch(line) or _ITEM.fullmatch(line) or _FENCE.match(text) or text.startswith("|")
    )


def _cells(row: str) -> list[list[Inline]]:
    return [inlines(cell.strip()) for cell in row.strip().strip("|").split("|")]


@dataclass(frozen=True)
class Group:
    """Samples that were chosen for one reason."""

    kind: str
    title: str
    explanation: str
    samples: list[Shown]
    elsewhere: list[tuple[str, str]]  # id and group title of samples that also belong here


@dataclass(frozen=True)
class Content:
    """A whole report."""

    title: str
    verdicts: list[Verdict]
    results: list[Section]  # before the samples
    details: list[Section]  # after the samples
    runs: list[OneRun]
    main: str
    metrics: list[str]
    distributions: dict[str, Distribution]
    comparison: RunComparison | None
    sensitivity: Sensitivity | None
    groups: list[Group]
    cards: dict[str, list[Block] | None]  # None if the metric's plug-in is not installed
    spreads: dict[str, Histogram]

    @property
    def reads_letters(self) -> bool:
        """Whether the answers are to multiple-choice questions."""
        return any(answer.reading for group in self.groups for sample in group.samples for answer in sample.answers)


def content_of(
    runs: Sequence[Run],
    names: Sequence[str],
    *,
    comparison: RunComparison | None = None,
    sensitivity: Sensitivity | None = None,
    per_group: int = PER_GROUP,
    fetch: bool = False,
    media_roots: Sequence[Path] = (),
    with_samples: bool = True,
) -> Content:
    """Collect the content; `comparison` and `sensitivity` are the results of the commands with these names.

    Without `with_samples`, nothing of a single sample is in it: no answers, no references, no examples.
    """
    require_same_statistics(runs, names)  # the report has their stored intervals
    scored = scored_rows(runs, names)
    run_contents = [one_run(rows) if with_samples else without_samples(one_run(rows)) for rows in scored]
    shared = [name for name in runs[0].entries if all(name in run.entries for run in runs)]
    main = shared_headline([(run.info, run.outcome) for run in runs])
    chosen = choose(scored, main, per_group) if with_samples else []
    shown = shown_samples(scored, chosen, fetch=fetch, media_roots=media_roots)
    distributions = {
        name: bins
        for name in shared
        if (bins := distribution([rows.values[name] for rows in scored], runs[0].info.bounds_of(name))) is not None
    }
    metrics = dict.fromkeys(
        run.info.config.variants.get(name, name) for run in runs for name in run.entries if name != COMPOSITE
    )
    return Content(
        _title(runs, names),
        verdicts_of(run_contents, main, comparison, sensitivity),
        list(results_of(run_contents, shared, main, comparison)),
        list(details_of(run_contents, shared, main, sensitivity, _why(runs, names) if with_samples else None)),
        run_contents,
        main,
        shared,
        distributions,
        comparison,
        sensitivity,
        _groups(chosen, shown, main, len(runs) > 1),
        {name: _card(name) for name in metrics},
        {name: histogram(bins) for name, bins in distributions.items()},
    )


def _why(runs: Sequence[Run], names: Sequence[str]) -> Why | None:
    """The parts of the difference between two runs; None if there is none."""
    if len(runs) != 2:
        return None
    from multimodal_eval.run.why import why

    with suppress(MultimodalEvalError):
        return why(*runs, names=names)
    return None


def _title(runs: Sequence[Run], names: Sequence[str]) -> str:
    task = runs[0].outcome.task
    return f"{task + ': ' if task else ''}{' and '.join(names) if len(names) < 3 else f'{len(names)} runs'}"


def _groups(chosen: Sequence[Chosen], shown: Sequence[list[Shown]], main: str, several: bool) -> list[Group]:
    mean = ", averaged over the runs" if several else ""
    shown_in = {
        row: (sample.id, TITLES[group.kind])
        for group, samples in zip(chosen, shown, strict=True)
        for row, sample in zip(group.rows, samples, strict=True)
    }
    return [
        Group(
            group.kind,
            TITLES[group.kind],
            EXPLANATIONS[group.kind].format(main=printed(main), mean=mean),
            samples,
            [shown_in[row] for row in group.elsewhere],
        )
        for group, samples in zip(chosen, shown, strict=True)
    ]


def _card(name: str) -> list[Block] | None:
    try:
        return blocks(card_text(name))
    except MultimodalEvalError:
        return None


_HERE = Path(__file__).parent
_SCRIPTS = ("page.js", "report.js")
_STYLES = ("tokens.css", "style.css", "report.css")
_PAPER = ("paper.css", "paper_tables.css")

Theme = Literal["screen", "paper"]


def render(content: Content, version: str, theme: Theme = "screen") -> str:
    """The page; `version` is the version of the program. The page for paper has no controls and no script."""
    environment = templates(_HERE / "templates")
    is_paper = theme == "paper"
    page = PageRenderer(unfolds=is_paper)
    environment.filters["blocks"] = page.joined
    environment.filters["printed"] = printed
    return environment.get_template("report.html.j2").render(
        content=content,
        version=version,
        paper=is_paper,
        policy=policy(theme),
        style=Markup(_style(theme)),
        icon=icon(),
        scripts=list(map(Markup, _scripts(theme))),
    )


@cache
def asset(name: str) -> str:
    """The text of a file in the assets folder."""
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def icon() -> str:
    """The logo as a `data:` address, for the tab of the browser."""
    return "data:image/svg+xml;base64," + b64encode(asset("logo.svg").encode()).decode()


@cache
def _style(theme: Theme) -> str:
    """The style sheets, without comments and indents."""
    sheets = "\n".join(map(asset, (*_STYLES, *_PAPER) if theme == "paper" else _STYLES))
    return re.sub(r"\n\s+", "\n", re.sub(r"/\*.*?\*/", "", sheets, flags=re.DOTALL)).strip()


def _scripts(theme: Theme) -> list[str]:
    return [] if theme == "paper" else ["\n".join(map(asset, _SCRIPTS))]


def policy(theme: Theme = "screen") -> str:
    """The content security policy: only our own scripts and styles may run, and nothing may be loaded."""
    hashes = " ".join(map(_hash, _scripts(theme))) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(_style(theme))}; img-src data:; media-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


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


# The page that a participant of a shared task sees: the report of a submission, or its mistakes.

_REFUSAL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'">
<title>{title}</title>
</head>
<body>
<h1>{title}</h1>
<ul>
{items}
</ul>
</body>
</html>
"""


def submission_page(outcome: Outcome) -> str:
    """The page. References are on it only if the organiser shows samples."""
    from multimodal_eval.contests.shared_task.judging import Refused

    if isinstance(outcome, Refused):
        items = "\n".join(f"<li>{escape(visible(line.strip()))}</li>" for line in outcome.lines)
        return _REFUSAL.format(title=escape(outcome.title), items=items)
    shows_samples = outcome.rules.details == "samples"
    return report_html([outcome.run], [outcome.rules.title], version=__version__, with_samples=shows_samples)


# A suite as one page: the heat map of models x tasks, what the tasks say together, and how it was tested.

TITLE = "Models × tasks"
# The styles of the cells are in their elements. Nothing else may run or be loaded.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def suite_html(table: SuiteTable, title: str = TITLE, downloads: Sequence[str] = ()) -> str:
    """The page, in one file. `downloads` are the names of files beside it."""
    from multimodal_eval.display.of_suite import suite_table_blocks

    return _page(title, HtmlRenderer().joined(list(suite_table_blocks(table))), downloads)


def result_html(result: object, title: str) -> str:
    """A page with a result of the analysis, in one file."""
    return _page(title, PageRenderer().joined(list(blocks_of(result))))


def _page(title: str, body: Markup, downloads: Sequence[str] = ()) -> str:
    environment = templates(Path(__file__).parent / "templates")
    return environment.get_template("suite.html.j2").render(
        title=title,
        version=__version__,
        policy=_POLICY,
        style=Markup("\n".join(map(asset, ("tokens.css", "style.css", "report.css")))),
        icon=icon(),
        body=body,
        downloads=downloads,
    )


def write_suite_site(folder: SiteFolder, table: SuiteTable, title: str) -> None:
    """The page and its table as CSV and JSON, for any file host. No path of this machine is in them."""
    published = replace(table, rows=tuple(replace(row, cells=tuple(map(_published, row.cells))) for row in table.rows))
    names = ("leaderboard.csv", "leaderboard.json")
    records = published.records()
    rows = [list(records[0]), *(list(record.values()) for record in records)] if records else []
    folder.write(
        {
            "index.html": lambda: suite_html(published, title, names).encode("utf-8", "replace"),
            "leaderboard.csv": lambda: "".join(csv_lines(rows)).encode("utf-8", "replace"),
            "leaderboard.json": lambda: to_json(published.to_dict()),
        }
    )


def _published(cell: SuiteCell) -> SuiteCell:
    """A cell without the folder of its run."""
    if cell.run is None:
        return cell
    remark = None if cell.remark is None else cell.remark.replace(cell.run, "the run")
    return replace(cell, run=None, remark=remark)
