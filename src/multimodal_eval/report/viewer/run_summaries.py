"""What the list of runs shows about each run. Finished runs are kept in memory until their files change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from multimodal_eval.core.errors import MultimodalEvalError, RunFolderError, described
from multimodal_eval.core.headline import headline_of
from multimodal_eval.core.metric import Bounds, Direction
from multimodal_eval.data.runs.part_files import id_range
from multimodal_eval.report.viewer.run_progress import Progress
from multimodal_eval.report.viewer.runs import RunsFolder, ViewedRun

__all__ = ["Listed", "ListedRun", "ListedScore", "Summaries"]

# The sizes of the parts, and the least and greatest id of the first one, and of the last one if there are several.
SampleSet = tuple[tuple[int, ...] | tuple[str, str], ...]
_FileKey = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ListedScore:
    """A metric of a run."""

    value: float | None
    low: float | None
    high: float | None
    direction: Direction
    signature: str | None
    bounds: Bounds = (None, None)


@dataclass(frozen=True)
class ListedRun:
    """One row of the list."""

    name: str
    state: str
    task: str | None = None
    created: str = ""
    samples: int | None = None
    headline: str | None = None  # of a finished run
    scores: Mapping[str, ListedScore] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    sample_set: SampleSet | None = None  # None if it is unknown
    identity: tuple[str, str, str, int] | None = None  # changes when the run changes
    progress: Progress | None = None
    fault: str | None = None
    tags: tuple[str, ...] = ()  # beside the run, see `run_notes`


Listed = list[ListedRun]


class Summaries:
    """The runs of a folder, as the list shows them."""

    def __init__(self, folder: RunsFolder) -> None:
        self._folder = folder
        self._kept: dict[str, tuple[tuple[_FileKey, ...], ListedRun]] = {}
        self._lock = Lock()

    def all(self) -> Listed:
        """A summary of every run, by name. One that cannot be read is listed with its fault."""
        runs: Listed = []
        kept: dict[str, tuple[tuple[_FileKey, ...], ListedRun]] = {}
        for name, path in self._folder.paths().items():
            key = _key(path)
            before = self._kept.get(name)
            run = before[1] if before is not None and key is not None and before[0] == key else self._read(name)
            runs.append(run)
            if key is not None and run.headline is not None:
                kept[name] = key, run
        with self._lock:
            self._kept = kept
        return runs

    def _read(self, name: str) -> ListedRun:
        try:
            return _summary(self._folder.open(name))
        except Exception as fault:  # noqa: BLE001 - whatever is wrong with one run, the others are listed
            reason = str(fault) if isinstance(fault, MultimodalEvalError) else described(fault)
            return ListedRun(name, "damaged", fault=reason)


def _key(path: Path) -> tuple[_FileKey, ...] | None:
    """What changes whenever the files of a finished run change; None for a run that has no results."""
    try:
        stats = [(path / name).stat() for name in ("run.json", "results.json")]
    except OSError:
        return None
    return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)


def _summary(run: ViewedRun) -> ListedRun:
    common: dict[str, Any] = {"task": run.info.task, "created": run.info.created}
    common["samples"] = sum(run.sizes) if run.sizes else None
    if not run.is_done:
        return ListedRun(run.name, run.state, **common, metrics=tuple(run.info.metrics), progress=run.progress())
    results = run.folder.read_results()
    headline = headline_of(run.info, results)
    if headline is None:
        raise RunFolderError("results.json has no metrics")
    scores = {}
    for name, entry in results.entries.items():
        stored = run.info.signatures.get(name)
        signature = entry.signature if stored is None else stored.text
        scores[name] = ListedScore(
            entry.value, entry.low, entry.high, entry.direction, signature, run.info.bounds_of(name)
        )
    return ListedRun(
        run.name,
        run.state,
        **common,
        headline=headline,
        scores=scores,
        metrics=tuple(scores),
        sample_set=_sample_set(run),
        identity=run.identity,
    )


def _sample_set(run: ViewedRun) -> SampleSet | None:
    """What tells whether two runs have the same samples, without reading their rows."""
    if not run.scores or not run.is_whole:
        return None
    ends = dict.fromkeys((min(run.scores), max(run.scores)))  # one part, or two
    ranges = [id_range(run.scores[number]) for number in ends]
    known = [each for each in ranges if each is not None]
    return (tuple(run.sizes), *known) if known == ranges else None
