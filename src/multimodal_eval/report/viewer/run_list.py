"""The list of runs: a summary of each run, with search, filters and sorting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from multimodal_eval.core.errors import MultimodalEvalError, RunFolderError, UnknownNameError, described
from multimodal_eval.core.headline import headline_of
from multimodal_eval.report.viewer.runs import Progress, RunsFolder, ViewedRun

STATES = ("done", "scoring", "judging", "generated", "generating", "reading", "damaged")


@dataclass(frozen=True)
class ListedRun:
    """One row of the list."""

    name: str
    state: str
    task: str | None = None
    created: str = ""
    samples: int | None = None
    metric: str | None = None  # the headline metric
    value: float | None = None
    low: float | None = None
    high: float | None = None
    metrics: tuple[str, ...] = ()
    progress: Progress | None = None
    fault: str | None = None


# The sort keys; runs without a value come last.
_KEYS: dict[str, Callable[[ListedRun], Any]] = {
    "name": lambda run: run.name,
    "task": lambda run: run.task,
    "state": lambda run: run.state,
    "created": lambda run: run.created or None,
    "samples": lambda run: run.samples,
    "value": lambda run: run.value,
}


@dataclass(frozen=True)
class RunList:
    """The shown runs and the query parameters."""

    rows: list[ListedRun]
    total: int
    tasks: list[str]
    text: str
    task: str
    state: str
    sort: str
    descending: bool

    @property
    def has_running(self) -> bool:
        """Whether a run of the list is in progress."""
        return any(row.progress is not None for row in self.rows)

    def parameters(self, sort: str | None = None) -> list[tuple[str, str]]:
        """The query parameters of the list, sorted by `sort` if given. The same `sort` again reverses the order."""
        descending = self.descending if sort is None else sort == self.sort and not self.descending
        named = {"q": self.text, "task": self.task, "state": self.state, "sort": sort or self.sort}
        return [(name, value) for name, value in named.items() if value] + ([("desc", "1")] if descending else [])


def listed(folder: RunsFolder, parameters: Mapping[str, str]) -> RunList:
    """The runs of the folder that match the query parameters."""
    sort = parameters.get("sort", "") or "name"
    if sort not in _KEYS:
        raise UnknownNameError("column", sort[:100], _KEYS)
    runs = [_line(folder, name) for name in folder.names()]
    text, task, state = (parameters.get(name, "") for name in ("q", "task", "state"))
    words = text.casefold().split()
    matching = [
        run
        for run in runs
        if (not task or run.task == task)
        and (not state or run.state == state)
        and all(word in " ".join((run.name, run.task or "", *run.metrics)).casefold() for word in words)
    ]
    descending = parameters.get("desc") == "1"
    known = [run for run in matching if _KEYS[sort](run) is not None]
    rows = sorted(known, key=_KEYS[sort], reverse=descending) + [run for run in matching if _KEYS[sort](run) is None]
    tasks = sorted({run.task for run in runs if run.task})
    return RunList(rows, len(runs), tasks, text, task, state, sort, descending)


def _line(folder: RunsFolder, name: str) -> ListedRun:
    try:
        run = folder.open(name)
        return _of(run)
    except Exception as fault:  # noqa: BLE001 - whatever is wrong with one run, the others are listed
        reason = str(fault) if isinstance(fault, MultimodalEvalError) else described(fault)
        return ListedRun(name, "damaged", fault=reason)


def _of(run: ViewedRun) -> ListedRun:
    common: dict[str, Any] = {"task": run.info.task, "created": run.info.created}
    samples = sum(run.sizes) if run.sizes else None
    if not run.is_done:
        metrics = tuple(run.info.metrics)
        progress = None if run.state == "generated" else run.progress()
        return ListedRun(run.name, run.state, **common, samples=samples, metrics=metrics, progress=progress)
    results = run.folder.read_results()
    entries = results.entries
    metric = headline_of(run.info, results)
    if metric is None:
        raise RunFolderError("results.json has no metrics")
    entry = entries[metric]
    return ListedRun(
        run.name,
        run.state,
        **common,
        samples=samples,
        metric=metric,
        value=entry.value,
        low=entry.low,
        high=entry.high,
        metrics=tuple(entries),
    )
