"""The list of runs as a matrix: runs of the same task in one table, with a column per chosen metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.report.viewer.metric_columns import MetricColumn, columns_of
from multimodal_eval.report.viewer.run_summaries import Listed, ListedRun
from multimodal_eval.report.viewer.sample_query import whole_number

__all__ = ["COLUMNS", "SCORE", "STATES", "RunGroup", "RunList", "listed"]

STATES = ("done", "scoring", "judging", "generated", "generating", "reading", "damaged")
PAGE = 100  # runs
BY_DEFAULT = 4  # metrics of each task
SCORE = "score."  # before the name of a metric in `sort`

# The sort keys of the columns that every table has; runs without a value come last.
_KEYS: dict[str, Callable[[ListedRun], Any]] = {
    "name": lambda run: run.name,
    "state": lambda run: run.state,
    "samples": lambda run: run.samples,
    "created": lambda run: run.created or None,
}
COLUMNS = {"name": "run", "state": "state", "samples": "samples", "created": "started"}  # as they are shown


@dataclass(frozen=True)
class RunGroup:
    """The runs of one task: those of the current page, the columns, and how many runs match."""

    task: str | None
    rows: Listed
    columns: list[MetricColumn]
    total: int


@dataclass(frozen=True)
class RunList:
    """The shown runs and the query parameters."""

    groups: list[RunGroup]
    total: int  # runs of the folder
    matching: int
    offset: int
    tasks: list[str]
    metrics: list[str]  # of any run
    shown: list[str]  # the chosen metrics, or those by default
    is_default: bool
    text: str
    task: str
    state: str
    sort: str
    descending: bool
    tag: str = ""
    tags: tuple[str, ...] = ()  # of any run

    @property
    def rows(self) -> Listed:
        """The runs of the page."""
        return [run for group in self.groups for run in group.rows]

    @property
    def score_orders(self) -> list[tuple[str, str]]:
        """The shown metrics as values and labels of the control that sorts."""
        names = dict.fromkeys(column.name for group in self.groups for column in group.columns)
        return [(SCORE + name, name) for name in names]

    @property
    def has_running(self) -> bool:
        """Whether a run of the page is in progress."""
        return any(run.progress is not None and run.progress.is_moving for run in self.rows)

    def parameters(self, sort: str | None = None, offset: int = 0) -> list[tuple[str, str]]:
        """The query parameters of the list, sorted by `sort` if given. The same `sort` again reverses the order."""
        descending = self.descending if sort is None else sort == self.sort and not self.descending
        named = {"q": self.text, "task": self.task, "state": self.state, "tag": self.tag, "sort": sort or self.sort}
        pairs = [(name, value) for name, value in named.items() if value] + ([("desc", "1")] if descending else [])
        pairs += [] if self.is_default else [("metric", name) for name in self.shown]
        return pairs + ([("offset", str(offset))] if offset else [])

    def page(self, offset: int) -> list[tuple[str, str]]:
        """The query parameters of another page."""
        return self.parameters(offset=offset)


def listed(runs: Listed, parameters: Sequence[tuple[str, str]], *, whole: bool = False) -> RunList:
    """The runs that match the query parameters: those of a page, or all. Only `metric` may occur several times."""
    values = dict(parameters)
    sort = values.get("sort", "") or "name"
    metrics = list(dict.fromkeys(name for run in runs for name in run.metrics))
    _refuse_unknown(sort, metrics)
    chosen = list(dict.fromkeys(value for name, value in parameters if name == "metric" and value))
    default = _default_metrics(runs)
    shown = chosen or default
    descending = values.get("desc") == "1"
    matching = [run for run in runs if _matches(run, values)]
    groups = [_group(task, group, shown, sort, descending) for task, group in _by_task(matching)]
    offset = whole_number(values, "offset")
    return RunList(
        groups if whole else _cut(groups, offset),
        len(runs),
        len(matching),
        offset,
        sorted({run.task for run in runs if run.task}),
        sorted(metrics, key=str.casefold),
        shown,
        set(shown) == set(default),
        values.get("q", ""),
        values.get("task", ""),
        values.get("state", ""),
        sort,
        descending,
        values.get("tag", ""),
        tuple(sorted({tag for run in runs for tag in run.tags}, key=str.casefold)),
    )


def _refuse_unknown(sort: str, metrics: Sequence[str]) -> None:
    if sort not in _KEYS and not (sort.startswith(SCORE) and sort.removeprefix(SCORE) in metrics):
        raise UnknownNameError("column", sort[:100], [*_KEYS, *(SCORE + name for name in metrics)])


def _matches(run: ListedRun, values: Mapping[str, str]) -> bool:
    task, state, words = values.get("task"), values.get("state"), values.get("q", "").casefold().split()
    searched = " ".join((run.name, run.task or "", *run.metrics, *run.tags)).casefold() if words else ""
    return (
        (not task or run.task == task)
        and (not state or run.state == state)
        and (not values.get("tag") or values["tag"] in run.tags)
        and all(word in searched for word in words)
    )


def _by_task(runs: Listed) -> list[tuple[str | None, Listed]]:
    """The runs of each task; those without a task, and those that cannot be read, come last."""

    def key(run: ListedRun) -> tuple[bool, str]:
        return run.task is None, run.task or ""

    return [(rows[0].task, rows) for rows in (list(group) for _, group in groupby(sorted(runs, key=key), key))]


def _default_metrics(runs: Listed) -> list[str]:
    """The headlines of each task's runs, then the metrics that most of them have."""
    chosen: dict[str, None] = {}
    for _, group in _by_task(runs):
        chosen |= dict.fromkeys(_frequent(group))
    return list(chosen)


def _frequent(group: Listed) -> list[str]:
    headlines = Counter(run.headline for run in group if run.headline is not None)
    metrics = Counter(name for run in group for name in run.metrics)
    names = dict.fromkeys([name for name, _ in headlines.most_common()] + [name for name, _ in metrics.most_common()])
    return list(names)[: max(BY_DEFAULT, len(headlines))]


def _group(task: str | None, runs: Listed, shown: Sequence[str], sort: str, descending: bool) -> RunGroup:
    known = {name for run in runs for name in run.metrics}
    names = [name for name in shown if name in known] or _frequent(runs)
    return RunGroup(task, _sorted(runs, sort, descending), columns_of(runs, names), len(runs))


def _sorted(runs: Listed, sort: str, descending: bool) -> Listed:
    """The runs in order; those without a value come last, by name."""
    value: Callable[[ListedRun], Any] = _KEYS.get(sort) or _score_key(sort.removeprefix(SCORE))
    known = [run for run in runs if value(run) is not None]
    unknown = [run for run in runs if value(run) is None]
    return sorted(known, key=value, reverse=descending) + unknown


def _score_key(metric: str) -> Callable[[ListedRun], float | None]:
    def value(run: ListedRun) -> float | None:
        score = run.scores.get(metric)
        return None if score is None else score.value

    return value


def _cut(groups: Sequence[RunGroup], offset: int) -> list[RunGroup]:
    """The runs of a page, which may start or end within a group."""
    cut = []
    for group in groups:
        rows = group.rows[max(offset, 0) : max(offset + PAGE, 0)]
        offset -= len(group.rows)
        if rows:
            cut.append(RunGroup(group.task, rows, group.columns, group.total))
    return cut
