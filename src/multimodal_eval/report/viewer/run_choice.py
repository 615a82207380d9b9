"""The runs that a user can choose to compare, grouped by their samples: only runs of the same samples are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from multimodal_eval.report.viewer.database import parquet
from multimodal_eval.report.viewer.runs import RunsFolder, ViewedRun
from multimodal_eval.report.viewer.sample_page import REFERENCES
from multimodal_eval.report.viewer.store import Store


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
