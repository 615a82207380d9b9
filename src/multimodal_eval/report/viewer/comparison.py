"""The content of comparisons: which runs can be compared, a cache, a preview of large runs."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.viewer.database import parquet, quoted
from multimodal_eval.report.viewer.pairs import PairStore, is_lower_better, shared_metrics
from multimodal_eval.report.viewer.runs import RunsFolder, ViewedRun
from multimodal_eval.report.viewer.sample_page import REFERENCES
from multimodal_eval.report.viewer.store import Store

# A comparison of large runs takes seconds.


Compare = Callable[[Sequence[Run]], RunComparison]

KEPT_COMPARISONS = 16


class ComparisonCache:
    """The latest comparisons."""

    def __init__(self, compare: Compare) -> None:
        self._compare = compare
        self._comparisons: OrderedDict[Any, RunComparison] = OrderedDict()
        self._lock = Lock()

    def has(self, runs: Sequence[ViewedRun]) -> bool:
        """Whether the comparison of these runs is known, so that `of` answers at once."""
        return _key(runs) in self._comparisons

    def of(self, runs: Sequence[ViewedRun]) -> RunComparison:
        """The comparison of these runs. Comparisons run one at a time, since each takes all cores."""
        key = _key(runs)
        known = self._comparisons.get(key)
        if known is not None:
            return known
        with self._lock:
            if key not in self._comparisons:
                self._comparisons[key] = self._compare([run.run for run in runs])
                while len(self._comparisons) > KEPT_COMPARISONS:
                    self._comparisons.popitem(last=False)
            return self._comparisons[key]


def _key(runs: Sequence[ViewedRun]) -> tuple[Any, ...]:
    return tuple(run.identity for run in runs)


# What is known about two large runs before they are compared: mean scores and wins per sample, without any test.
#
# A comparison of a million samples takes seconds, since it draws 10,000 random assignments. These means and counts are
# one query on the scores in memory.


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One metric over the samples that are scored in both runs."""

    metric: str
    scored: int
    first: float  # means over the samples
    second: float
    wins: int  # samples on which the second run is better
    ties: int
    losses: int

    @property
    def difference(self) -> float:
        """The mean difference per sample."""
        return self.second - self.first


def preview(pairs: PairStore, first: ViewedRun, second: ViewedRun) -> list[PreviewRow]:
    """The metrics that are scored in both runs, without their parts."""
    metrics = [name for name in shared_metrics((first, second)) if name in first.metrics and name in second.metrics]
    if not metrics:
        return []
    with pairs.store.database.session() as session:
        source = pairs.joined(session, first, second)
        scores = ", ".join(_scores(number, name) for number, name in enumerate(metrics))
        sums = ", ".join(_sums(number, lower=is_lower_better(first, name)) for number, name in enumerate(metrics))
        values = session.execute(f"select {sums} from (select {scores} from {source.text})", source.values).fetchone()
    return [_row(name, *values[5 * at : 5 * (at + 1)]) for at, name in enumerate(metrics) if values[5 * at]]


def _scores(number: int, metric: str) -> str:
    """The first score and the difference; the difference is null if a score is missing or not finite."""
    x, y = (f"{side}.{quoted(metric)}" for side in "lr")
    return f"{x} as x{number}, case when isfinite({y} - {x}) then {y} - {x} end as d{number}"


def _sums(number: int, *, lower: bool) -> str:
    x, d = f"x{number}", f"d{number}"
    wins = f"count(*) filter ({d} {'<' if lower else '>'} 0)"
    return f"count({d}), avg({x}) filter ({d} is not null), avg({d}), {wins}, count(*) filter ({d} = 0)"


def _row(metric: str, scored: int, first: float, difference: float, wins: int, ties: int) -> PreviewRow:
    return PreviewRow(metric, scored, first, first + difference, wins, ties, scored - wins - ties)


# The runs that a user can choose to compare, grouped by their samples: only runs of the same samples are compared.


@dataclass(frozen=True, slots=True)
class ChoosableRun:
    """A finished run in the list."""

    name: str
    task: str | None
    created: str
    samples: int
    headline: str | None
    value: float | None
    metrics: tuple[str, ...]
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """Runs with the same sample ids."""

    samples: int
    runs: list[ChoosableRun]
    has_chosen: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """All finished runs in groups, the group of the chosen runs first, and how many runs cannot be chosen."""

    groups: list[SampleGroup]
    unfinished: int

    @property
    def has_pair(self) -> bool:
        """Whether at least two runs can be compared."""
        return any(len(group.runs) > 1 for group in self.groups)


class RunChoices:
    """Finds the groups; the ids of a run are read once."""

    def __init__(self, folder: RunsFolder, store: Store) -> None:
        self._folder, self._store = folder, store
        self._fingerprints: dict[Any, tuple[Any, ...]] = {}

    def choice(self, chosen: Sequence[str] = ()) -> Choice:
        """The runs to choose from; `chosen` are the names of those already chosen."""
        runs, unfinished = self._finished()
        sizes = Counter(run.committed for run in runs)
        groups: dict[tuple[Any, ...], list[ViewedRun]] = {}
        for run in runs:
            key = self._fingerprint(run) if sizes[run.committed] > 1 else (run.committed, run.name)
            groups.setdefault(key, []).append(run)
        listed = [_group(members, chosen) for members in groups.values()]
        listed.sort(key=lambda group: (not group.has_chosen, len(group.runs) < 2, group.runs[0].name))
        return Choice(listed, unfinished)

    def _finished(self) -> tuple[list[ViewedRun], int]:
        finished, others = [], 0
        for name in self._folder.names():
            try:
                run = self._folder.open(name)
                if run.is_done and run.scores and run.run.entries:
                    finished.append(run)
                else:
                    others += 1
            except Exception:  # noqa: BLE001 - whatever is wrong with one run, the others can be chosen
                others += 1
        return finished, others

    def _fingerprint(self, run: ViewedRun) -> tuple[Any, ...]:
        """The number of ids, two sums of their hashes, which do not depend on their order, and the texts of one sample.

        The texts tell apart tasks that ask different questions about samples with the same ids.
        """
        key = run.identity
        if key not in self._fingerprints:
            source = parquet(run.scores.values())
            sums = "count(*), bit_xor(hash(id)), sum(hash(id)::hugeint), arg_min(row, id)"
            with self._store.database.session() as session:
                *ids, row = session.execute(f"select {sums} from {source.text}", source.values).fetchone()
            sample, _ = self._store.sample(run, row)
            self._fingerprints[key] = (*ids, *(str(sample.get(name)) for name in ("question", *REFERENCES)))
        return self._fingerprints[key]


def _group(runs: Sequence[ViewedRun], chosen: Sequence[str]) -> SampleGroup:
    shown = [
        ChoosableRun(
            run.name,
            run.info.task,
            run.info.created,
            run.committed,
            run.headline,
            None if run.headline is None else run.run.entries[run.headline].value,
            tuple(run.run.entries),
            run.name in chosen,
        )
        for run in runs
    ]
    shown.sort(key=lambda run: (not run.is_chosen, run.name))
    return SampleGroup(shown[0].samples, shown, any(run.is_chosen for run in shown))
