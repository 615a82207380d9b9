"""The list of runs: what is known of each, which of them are shown, in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from multimodal_eval.analysis.numbers import headline
from multimodal_eval.core.errors import MultimodalEvalError, RunFolderError, UnknownNameError
from multimodal_eval.report.viewer.runs import Progress, RunsFolder, ViewedRun

STATES = ("done", "scoring", "reading", "unreadable")


@dataclass(frozen=True)
class ListedRun:
    """One line of the list."""

    name: str
    state: str
    task: str | None = None
    created: str = ""
    samples: int | None = None
    number: str | None = None  # the headline's name
    value: float | None = None
    low: float | None = None
    high: float | None = None
    metrics: tuple[str, ...] = ()
    progress: Progress | None = None
    fault: str | None = None


# What the list can be sorted by: where nothing is known, last.
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
    """The runs that are shown, and what was asked for."""

    rows: list[ListedRun]
    total: int
    tasks: list[str]
    text: str
    task: str
    state: str
    sort: str
    falling: bool

    @property
    def is_moving(self) -> bool:
        """Whether a run of the list goes on."""
        return any(row.progress is not None for row in self.rows)

    def parameters(self, sort: str | None = None) -> list[tuple[str, str]]:
        """As they stand in an address, also that of the list in another order; once more turns it round."""
        falling = self.falling if sort is None else sort == self.sort and not self.falling
        named = {"q": self.text, "task": self.task, "state": self.state, "sort": sort or self.sort}
        return [(name, value) for name, value in named.items() if value] + ([("desc", "1")] if falling else [])


def listed(folder: RunsFolder, given: Mapping[str, str]) -> RunList:
    """The runs of the folder that fit."""
    sort = given.get("sort", "") or "name"
    if sort not in _KEYS:
        raise UnknownNameError("column", sort[:100], _KEYS)
    every = [_line(folder, name) for name in folder.names()]
    text, task, state = (given.get(name, "") for name in ("q", "task", "state"))
    words = text.casefold().split()
    fitting = [
        run
        for run in every
        if (not task or run.task == task)
        and (not state or run.state == state)
        and all(word in " ".join((run.name, run.task or "", *run.metrics)).casefold() for word in words)
    ]
    falling = given.get("desc") == "1"
    known = [run for run in fitting if _KEYS[sort](run) is not None]
    rows = sorted(known, key=_KEYS[sort], reverse=falling) + [run for run in fitting if _KEYS[sort](run) is None]
    tasks = sorted({run.task for run in every if run.task})
    return RunList(rows, len(every), tasks, text, task, state, sort, falling)


def _line(folder: RunsFolder, name: str) -> ListedRun:
    try:
        run = folder.open(name)
        return _of(run)
    except (MultimodalEvalError, OSError, KeyError, TypeError, msgspec.MsgspecError) as fault:
        return ListedRun(name, "unreadable", fault=str(fault))


def _of(run: ViewedRun) -> ListedRun:
    common: dict[str, Any] = {"task": run.info.task, "created": run.info.created}
    samples = sum(run.sizes) if run.sizes else None
    if not run.is_done:
        metrics = tuple(run.info.metrics)
        return ListedRun(run.name, run.state, **common, samples=samples, metrics=metrics, progress=run.progress())
    entries = run.folder.read_results().entries
    if not entries:
        raise RunFolderError("results.json has no number")
    number = headline(entries)
    found = entries[number]
    return ListedRun(
        run.name,
        run.state,
        **common,
        samples=samples,
        number=number,
        value=found.value,
        low=found.low,
        high=found.high,
        metrics=tuple(entries),
    )
