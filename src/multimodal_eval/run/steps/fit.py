"""Gather the corpus statistics of the metrics that need them, from all parts.

Samples that belong together, such as those of one image, are brought together first.

Every part writes the hashes of its keys by bucket ("keys"). Every bucket then lists, for each part, the hashes that
also occur in other parts ("shared"). A part leaves rows with such a key out when it is fitted, and writes them by
bucket; the moved rows of each bucket are fitted together ("fit_moved"). So the statistics do not depend on the parts,
and no step needs more memory than a few parts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from operator import add
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.corpus import (
    CorpusGroups,
    LargeState,
    check_state,
    corpus_groups,
    corpus_key,
    fitted,
    save_state,
    state_type,
)
from multimodal_eval.core.errors import ConfigError, OpenSamplesError
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.metric_failures import GaveUpError, Retries, blamed_on
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scoring import with_failures_marked
from multimodal_eval.data.runs.run_folder import RunFolder, state_name
from multimodal_eval.data.runs.sample_table import columns_of_fields, to_batch
from multimodal_eval.run.engine.base import Phase, placement_of, refuse_crashed
from multimodal_eval.run.step import Step

FittedStates = dict[str, Any]  # by metric, of a type defined by the metric
PARTS_PER_BUCKET = 4
MAX_BUCKETS = 1024  # every part is searched for every bucket
_PART, _BUCKET = "{}.part-{:05d}", "{}.bucket-{:05d}"  # scratch files, by the name of the statistics
_INDEX = "moved"  # the buckets with moved rows, by metric
Hashes = NDArray[np.uint64]


class Fit(Step):
    """Stores the state of each metric that needs the whole corpus."""

    runs_metrics = True

    _retries: dict[str, Retries] = msgspec.field(default_factory=lambda: defaultdict(Retries))  # by metric

    def left(self) -> Sequence[str]:
        """The metrics whose state is missing. Once parts are scored, a state that was never stored is not missing."""
        run = self.run
        names = [metric.name for metric in run.plan.metrics if metric.corpus is not None]
        if run.info.signatures:
            return [name for name in names if state_name(name) in run.damaged]
        return [name for name in names if not run.has(state_name(name))]

    def make(self, left: Sequence[str]) -> None:
        """Fit all parts, and store the sums."""
        run, folder = self.run, self.run.folder
        run.remove_damaged("state/")
        sums, large = self._fitted()
        for name, metrics in self.fitting.items():
            state = sums.get(name)
            if name in large:
                buckets = (folder.read_piece(_BUCKET.format(name, bucket), 0) for bucket in range(self.buckets))
                state = state_type(metrics[0]).united(bucket for bucket in buckets if bucket is not None)
                if hasattr(state, "rows"):
                    state.rows = large[name]
            for metric in metrics if state is not None else ():
                with blamed_on(metric.name, "storing its corpus statistics", OSError):
                    check_state(state)
                    folder.write_state(metric.name, partial(save_state, state))
                if name in large:  # small ones are read back, as in every process: plain values may lose their type
                    run.states.by_metric[metric.name] = state
        folder.clear_scratch()
        if large:
            run.progress("merging", self.buckets, self.buckets)

    def _fitted(self) -> tuple[FittedStates, dict[str, int]]:
        """The sums of small statistics by name, and the rows of large ones, whose buckets are summed in the folder."""
        sums: dict[str, TreeSum] = {}
        large: dict[str, int] = {}
        run, sizes = self.run, self.run.info.parts
        fitting = [each for each in run.plan.metrics if each.corpus is not None and each.name not in run.reusable]
        placement = placement_of(fitting)
        moved = self._moved_buckets() if self.groups else []
        done, total = 0, sum(sizes)
        results = chain(
            zip(sizes, run.engine.map(self, Phase("part", run.parts, placement)), strict=True),
            ((0, states) for states in (run.engine.map(self, Phase("moved", moved, placement)) if moved else ())),
        )
        for size, states in results:
            refuse_crashed(states, "gathering the corpus statistics")
            for name, state in states.items():
                if isinstance(state, Stored):
                    large[name] = large.get(name, 0) + state.rows
                elif state is not None:
                    with blamed_on(name, "adding its corpus statistics"):
                        sums.setdefault(name, TreeSum()).add(state)
            done += size
            run.progress("fitting", done, total)
        buckets = range(self.buckets if large else 0)
        for number, result in enumerate(run.engine.map(self, Phase("merge", buckets)), 1):
            refuse_crashed(result, "summing the corpus statistics")
            run.progress("merging", number, self.buckets)
        return {name: tree.value for name, tree in sums.items()}, large

    def _moved_buckets(self) -> list[int]:
        """Find the rows that belong to rows of other parts. Returns the buckets in which they are fitted."""
        parts = self.run.parts
        is_required = any(groups.is_required for groups in self.groups.values())
        if not is_required and (len(parts) == 1 or not any(map(self.grouping.has_keys, self.groups.values()))):
            return []
        rows = Counter[str]()
        moved: dict[str, list[int]] = {}
        for counts in self.run.engine.map(self, Phase("keys", parts)):
            refuse_crashed(counts, "looking for samples of the same image")
            rows.update(counts)
        for name, groups in self.groups.items():
            refuse_missing_keys(name, groups, rows[name])
        buckets = range(self.buckets if len(parts) > 1 and rows.total() else 0)
        for bucket, names in enumerate(self.run.engine.map(self, Phase("shared", buckets))):
            refuse_crashed(names, "looking for samples of the same image")
            for name in names:
                moved.setdefault(name, []).append(bucket)
        self.grouping.write_index(moved)
        return sorted({bucket for buckets in moved.values() for bucket in buckets})

    # in any process

    @cached_property
    def fitting(self) -> dict[str, list[Metric]]:
        """The metrics that need corpus statistics, grouped by equal statistics, by the name of the first metric."""
        groups: dict[Hashable, list[Metric]] = {}
        for metric in self.run.plan.metrics:
            if metric.corpus is not None and not self.run.folder.has_state(metric.name):
                groups.setdefault(corpus_key(metric), []).append(metric)
        return {metrics[0].name: metrics for metrics in groups.values()}

    @cached_property
    def groups(self) -> dict[str, CorpusGroups]:
        """How samples that belong together are found, by the name of the statistics: if there are several parts.

        Groups that an option names are looked for in any case.
        """
        by_name = {name: corpus_groups(metrics[0]) for name, metrics in self.fitting.items()}
        several = len(self.run.parts) > 1
        return {name: each for name, each in by_name.items() if each is not None and (several or each.is_required)}

    @cached_property
    def grouping(self) -> Grouping:
        """The exchange of rows that belong together."""
        return Grouping(self.run.folder, len(self.run.parts), self.buckets)

    @cached_property
    def buckets(self) -> int:
        """The number of pieces of large statistics; one is about as large as a few parts."""
        return min(MAX_BUCKETS, max(1, len(self.run.parts) // PARTS_PER_BUCKET))

    def keys(self, part: int) -> dict[str, int]:
        """Write the keys of a part's rows, and count the rows that have one."""
        return {name: self.grouping.write_keys(name, groups, part) for name, groups in self.groups.items()}

    def shared(self, bucket: int) -> list[str]:
        """Find the keys of one bucket that occur in several parts, and return the statistics with such keys."""
        return [name for name in self.groups if self.grouping.find_shared(name, bucket)]

    def part(self, part: int) -> FittedStates:
        """The corpus statistics of a part; large ones are stored in the run folder, in pieces."""
        batch = self.run.folder.read_batch(part)
        samples = with_failures_marked(batch, self.run.plan.config.patterns)
        states: FittedStates = {}
        for name, metrics in self.fitting.items():
            groups = self.groups.get(name)
            rows = samples if groups is None else self.grouping.move(name, groups, part, batch, samples)
            states[name] = self._state_of(metrics[0], rows, _PART.format(name, part))
        return states

    def moved(self, bucket: int) -> FittedStates:
        """The corpus statistics of the rows that belong to rows of other parts."""
        states: FittedStates = {}
        for name, groups in self.groups.items():
            if bucket in self.grouping.moved(name):
                samples, rows = self.grouping.moved_rows(name, groups, bucket)
                file = _PART.format(name, len(self.run.parts) + bucket)
                states[name] = self._state_of(self.fitting[name][0], samples, file, rows)
        return states

    def _state_of(self, metric: Metric, samples: Sequence[Sample], file: str, rows: int | None = None) -> Any:
        """The corpus statistics of some samples, or `Stored` if they are in a file."""
        with blamed_on(metric.name, "gathering its corpus statistics"):
            try:
                state = self._retries[metric.name].call(partial(fitted, metric), samples)
            except GaveUpError as failure:
                message = f"the corpus statistics of {metric.name} have no result so far: {failure}"
                raise OpenSamplesError(message) from None
        if isinstance(state, LargeState) and isinstance(state_type(metric), type):  # which can merge the pieces
            self.run.folder.write_pieces(file, state.pack(self.buckets), is_temporary=True)
            return Stored(getattr(state, "rows", 0) if rows is None else rows)
        return state

    def merge(self, bucket: int) -> None:
        """Sum one bucket of all large statistics over all parts."""
        folder, parts = self.run.folder, len(self.run.parts)
        for name, metrics in self.fitting.items():
            moved = self.grouping.moved(name) if name in self.groups else []
            places = chain(range(parts), (parts + number for number in moved))
            stored = (folder.read_piece(_PART.format(name, place), bucket) for place in places)
            pieces = (piece for piece in stored if piece is not None)
            first = next(pieces, None)
            if first is not None:
                merged = state_type(metrics[0]).merged(chain([first], pieces))
                folder.write_pieces(_BUCKET.format(name, bucket), [merged], is_temporary=True)


@dataclass(frozen=True)
class Stored:
    """Placeholder for the statistics of a part that are stored in the run folder, with the number of their rows."""

    rows: int = 0


class TreeSum:
    """Pairwise sum of states: O(n log n) copies instead of O(n^2) for one long chain.

    The tree depends only on the number of states, and only log n sums are in memory at a time.
    """

    def __init__(self) -> None:
        self._stack: list[tuple[int, Any]] = []  # (number of leaves, their sum), leaves descending

    def add(self, state: Any) -> None:
        """Add one state."""
        stack = self._stack
        stack.append((1, state))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            leaves, right = stack.pop()
            stack[-1] = (2 * leaves, add(stack[-1][1], right))

    @property
    def value(self) -> Any:
        """The sum so far; None if nothing was added."""
        total = None
        for _, state in reversed(self._stack):
            total = state if total is None else add(state, total)
        return total


@dataclass(frozen=True)
class Grouping:
    """The scratch files of a run in which keys and moved rows are exchanged."""

    folder: RunFolder
    parts: int
    buckets: int

    def has_keys(self, groups: CorpusGroups) -> bool:
        """Whether a part has values in the columns with the keys."""
        columns = columns_of_fields(groups.fields)
        return any(self.folder.has_values("samples", part, columns) for part in range(self.parts))

    def write_keys(self, name: str, groups: CorpusGroups, part: int) -> int:
        """Write the hashes of a part's keys by bucket. Returns the number of rows with a key."""
        batch = to_batch(self.folder.read_part("samples", part, columns_of_fields(groups.fields)))
        keys = groups.keys(batch)
        if keys is None:
            return 0
        hashes = np.unique(keys.hashes[keys.has_key].view(np.uint64))
        pieces = [hashes[rows].tobytes() for rows in self._by_bucket(hashes)]
        self.folder.write_pieces(f"{name}.keys.part-{part:05d}", pieces, is_temporary=True)
        return int(keys.has_key.sum())

    def find_shared(self, name: str, bucket: int) -> bool:
        """Write, for each part, the hashes of a bucket that also occur in another part. Returns whether any do."""
        pieces = [self._hashes(f"{name}.keys.part-{part:05d}", bucket) for part in range(self.parts)]
        hashes = np.concatenate(pieces)
        values, counts = np.unique(hashes, return_counts=True)
        shared = values[counts > 1]
        if not len(shared):
            return False
        of_parts = [piece[np.isin(piece, shared)].tobytes() for piece in pieces]
        self.folder.write_pieces(f"{name}.shared.bucket-{bucket:05d}", of_parts, is_temporary=True)
        return True

    def write_index(self, moved: Mapping[str, Sequence[int]]) -> None:
        """Store the buckets with moved rows, by metric."""
        self.folder.write_pieces(_INDEX, [msgspec.json.encode(moved)], is_temporary=True)

    def moved(self, name: str) -> list[int]:
        """The buckets with moved rows of a metric."""
        stored = self.folder.read_piece(_INDEX, 0)
        return [] if stored is None else msgspec.json.decode(stored, type=dict[str, list[int]]).get(name, [])

    def move(
        self, name: str, groups: CorpusGroups, part: int, batch: Batch, samples: Sequence[Sample]
    ) -> Sequence[Sample]:
        """Write the rows of a part that are fitted elsewhere. Returns the others."""
        moved = self.moved(name)
        keys = groups.keys(batch) if moved else None
        if keys is None:
            return samples
        files = (f"{name}.shared.bucket-{bucket:05d}" for bucket in moved)
        shared = np.concatenate([self._hashes(file, part) for file in files])
        hashes = keys.hashes.view(np.uint64)
        is_moved = keys.has_key & np.isin(hashes, shared)
        if not is_moved.any():
            return samples
        places = np.flatnonzero(is_moved)
        pieces = [groups.pack(samples, places[rows]) if len(rows) else b"" for rows in self._by_bucket(hashes[places])]
        self.folder.write_pieces(f"{name}.moved.part-{part:05d}", pieces, is_temporary=True)
        kept = np.flatnonzero(~is_moved)
        return samples.take(kept) if isinstance(samples, Batch) else [samples[row] for row in kept.tolist()]

    def moved_rows(self, name: str, groups: CorpusGroups, bucket: int) -> tuple[Sequence[Sample], int]:
        """The moved rows of a bucket from all parts, and their number."""
        return groups.unpack(self._pieces(f"{name}.moved", bucket))

    def _by_bucket(self, hashes: Hashes) -> list[NDArray[np.int64]]:
        """The rows of each bucket, in ascending order."""
        buckets = hashes % np.uint64(self.buckets)
        order = np.argsort(buckets, kind="stable")
        return np.split(order, np.searchsorted(buckets[order], np.arange(1, self.buckets)))

    def _pieces(self, name: str, bucket: int) -> Iterable[bytes]:
        for part in range(self.parts):
            piece = self.folder.read_piece(f"{name}.part-{part:05d}", bucket)
            if piece:
                yield piece

    def _hashes(self, file: str, number: int) -> Hashes:
        return np.frombuffer(self.folder.read_piece(file, number) or b"", np.uint64)


def refuse_missing_keys(name: str, groups: CorpusGroups, rows: int) -> None:
    """Raise `ConfigError` if the samples lack the column that an option names."""
    if groups.is_required and not rows:
        raise ConfigError(
            f"the option `image_key` of {name} names the column {groups.column!r}, and no sample has a value in it. "
            "Name a column of the input"
        )
