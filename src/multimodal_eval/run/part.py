"""The work on one part: fit, or score and commit. A worker needs only the run folder and the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from multimodal_eval.core.errors import OpenSamplesError
from multimodal_eval.core.metric import LargeState, Metric, Placement, Scorer
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.retries import GaveUpError, Retries
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.core.scoring import score_batch, with_failures_marked
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import to_samples
from multimodal_eval.data.runs.score_table import columns_of, key_columns, score_columns, stored_scores
from multimodal_eval.evaluation.composite_score import composite_of_scores
from multimodal_eval.lint.facts import FACTS, Facts, facts_of
from multimodal_eval.media.policy import policy_of, using
from multimodal_eval.run.plan import Plan

BATCH = 1024
States = dict[str, Any]  # corpus statistics by metric, of a type that only the metric knows
PARTS_A_BUCKET = 4
MOST_BUCKETS = 1024  # every one of them is looked for in every part
POISONED = unscored("error", "the process that scored this sample died, each time")


def _part_of(name: str, part: int) -> str:
    return f"{name}.part-{part:05d}"


def _bucket_of(name: str, bucket: int) -> str:
    return f"{name}.bucket-{bucket:05d}"


_POISON, _FACTS, _OPEN = "poison", "lint", "open"


@dataclass(frozen=True)
class Stored:
    """Stands for statistics that a part has left in the run folder."""


@dataclass(frozen=True)
class OpenPart:
    """A part that was not committed: scoring some of its samples was given up for now."""

    samples: int
    reason: str


@dataclass(frozen=True)
class Suspect:
    """Some samples of a part that a metric may not survive."""

    part: int
    metric: str
    start: int
    stop: int

    @property
    def is_single(self) -> bool:
        """Whether it is one sample."""
        return self.stop - self.start == 1

    @property
    def halves(self) -> list[Suspect]:
        """Two of half the size; a single one itself."""
        middle = (self.start + self.stop) // 2
        return [self] if self.is_single else [replace(self, stop=middle), replace(self, start=middle)]


@dataclass
class Worker:
    """Opens the metrics once and then works on any part of the run."""

    plan: Plan
    folder: RunFolder
    earlier: RunFolder | None = None  # a run over the same parts
    reusable: frozenset[str] = field(default=frozenset())  # metrics whose scores are taken from it
    accept_open: bool = False  # whether samples that stay open are stored as errors
    _states: States = field(default_factory=dict, repr=False)
    _retries: defaultdict[str, Retries] = field(default_factory=lambda: defaultdict(Retries), repr=False)  # by metric

    def placement(self, work: str) -> Placement:
        """Where a work is best done: with a model, in processes of Python, or in threads."""
        if work == "merge":
            return "thread"
        placements = {metric.placement for metric in self.fresh if work != "fit" or metric.fits}
        order: tuple[Placement, ...] = ("model", "process", "thread")
        return next((one for one in order if one in placements), "thread")

    def open(self, work: str) -> None:
        """Get ready for a work that several threads will do."""
        if work == "score":
            _ = self.scorers

    @property
    def fresh(self) -> list[Metric]:
        """The metrics whose scores are not there yet."""
        return [metric for metric in self.plan.metrics if metric.name not in self.reusable]

    @cached_property
    def fitting(self) -> dict[str, list[Metric]]:
        """The metrics that gather corpus statistics, those with the same ones together, by the first one's name."""
        groups: dict[tuple[Any, ...], list[Metric]] = {}
        for metric in self.plan.metrics:
            if metric.fits and not self.folder.has_state(metric.name):
                groups.setdefault(metric.corpus_key, []).append(metric)
        return {metrics[0].name: metrics for metrics in groups.values()}

    def fit(self, part: int) -> States:
        """The corpus statistics of a part; large ones are left in the run folder, in pieces."""
        samples = with_failures_marked(self.folder.read_samples(part), self.plan.config.patterns)
        found: States = {}
        for name, metrics in self.fitting.items():
            try:
                state = self._retries[name].call(metrics[0].fit, samples)
            except GaveUpError as failure:
                raise OpenSamplesError(f"the corpus statistics of {name} have no result so far: {failure}") from None
            if isinstance(state, LargeState) and isinstance(metrics[0].state_type, type):  # which puts it together
                self.folder.write_pieces(_part_of(name, part), state.pack(self.buckets))
                state = Stored()
            found[name] = state
        return found

    @cached_property
    def parts(self) -> int:
        """How many parts the run has, once its input is read."""
        return len(self.folder.read_info().parts)

    @property
    def buckets(self) -> int:
        """Into how many pieces large statistics are cut: one holds about as much as some parts do."""
        return min(MOST_BUCKETS, max(1, self.parts // PARTS_A_BUCKET))

    def merge(self, bucket: int) -> None:
        """Sum up one bucket of all large statistics over all parts."""
        folder = self.folder
        for name, metrics in self.fitting.items():
            found = (folder.read_piece(_part_of(name, part), bucket) for part in range(self.parts))
            pieces = (piece for piece in found if piece is not None)
            first = next(pieces, None)
            if first is not None:
                folder.write_pieces(_bucket_of(name, bucket), [metrics[0].state_type.merged(chain([first], pieces))])

    def united(self, name: str) -> Any:
        """The sum of large statistics, once all buckets are."""
        buckets = (self.folder.read_piece(_bucket_of(name, bucket), 0) for bucket in range(self.buckets))
        return self.fitting[name][0].state_type.united(bucket for bucket in buckets if bucket is not None)

    def keep_state(self, metric: Metric, state: Any) -> None:
        """Remember a state that was just made: it need not be read again."""
        self._states[metric.name] = state

    def state(self, metric: Metric) -> Any:
        """The state of the whole run for a metric."""
        if metric.name not in self._states:
            same = [one for one in self.plan.metrics if one.fits and one.corpus_key == metric.corpus_key]
            known = next((self._states[one.name] for one in same if one.name in self._states), None)
            if not self.folder.has_state(metric.name):
                known = metric.default_state()
            elif known is None:
                with self.folder.state_copy(metric.name) as path:
                    known = metric.load_state(path)
            self._states[metric.name] = known
        return self._states[metric.name]

    @cached_property
    def scorers(self) -> dict[str, Scorer]:
        """The opened metrics."""
        return {metric.name: metric.open(self.state(metric)) for metric in self.fresh}

    def probe(self, suspect: Suspect) -> None:
        """Score some samples of a part for nothing but to see whether the process survives it."""
        samples = self.folder.read_samples(suspect.part)[suspect.start : suspect.stop]
        (metric,) = (metric for metric in self.fresh if metric.name == suspect.metric)
        self._scored(metric, samples)

    def poison(self, part: int, rows: Mapping[str, Sequence[int]]) -> None:
        """Remember samples of a part, by the metric with which no process survives them: it is not shown them."""
        self.folder.write_pieces(_part_of(_POISON, part), [msgspec.json.encode(rows)])

    def _poison(self, part: int) -> dict[str, list[int]]:
        kept = self.folder.read_piece(_part_of(_POISON, part), 0)
        return {} if kept is None else msgspec.json.decode(kept, type=dict[str, list[int]])

    def _scored(self, metric: Metric, samples: Sequence[Sample], poison: Collection[int] = ()) -> list[Score]:
        if poison:
            sound = iter(self._scored(metric, [one for row, one in enumerate(samples) if row not in poison]))
            return [POISONED if row in poison else next(sound) for row in range(len(samples))]
        found: list[Score] = []
        with using(policy_of(self.plan.config)):
            for start in range(0, len(samples), BATCH):
                batch = samples[start : start + BATCH]
                scorer, retries = self.scorers[metric.name], self._retries[metric.name]
                found += score_batch(metric, scorer, batch, self.plan.config.patterns, retries)
        return found

    def score_again(self, part: int) -> OpenPart | None:
        """Score a part that brought a process down, without the samples that are to blame."""
        return self.score(part)

    def score(self, part: int) -> OpenPart | None:
        """Score a part and commit it; what lint keeps of its samples is left in the run folder.

        If some samples have no result yet, nothing is committed: the scores are kept for the next try, which asks for
        just these samples.
        """
        folder = self.folder
        stored = folder.read_part("samples", part)
        samples, first_row = to_samples(stored), stored.column("row")[0].as_py()
        fresh = self._fresh_scores(part, samples)
        if (left := _open_part(fresh)) is not None:
            if not self.accept_open:
                folder.write_pieces(_part_of(_OPEN, part), [msgspec.json.encode(fresh, enc_hook=str)])
                return left
            fresh = {name: list(map(_given_up, scores)) for name, scores in fresh.items()}
        columns: dict[str, pa.Array] = key_columns(samples, first_row)
        scores: dict[str, list[Score]] = {}
        before = self._earlier_scores(part)
        for metric in self.plan.metrics:
            if metric.name in fresh:
                scores[metric.name] = fresh[metric.name]
                columns |= score_columns(metric.name, fresh[metric.name])
            elif before is not None:
                columns |= columns_of(before, metric.name)
                scores[metric.name] = stored_scores(columns, metric.name)
        if self.plan.composite:
            columns |= score_columns(COMPOSITE, composites(self.plan, scores, len(samples)))
        if not self.plan.config.skip_lint:  # before the part counts as done
            facts = facts_of(samples, self.plan.config.patterns)
            folder.write_pieces(_part_of(_FACTS, part), [facts.tobytes()])
        folder.write_part("scores", part, pa.table(columns))
        return None

    def _fresh_scores(self, part: int, samples: Sequence[Sample]) -> dict[str, list[Score]]:
        """The scores of every metric that are not taken from an earlier run."""
        kept, poison = self._kept_scores(part), self._poison(part)
        return {
            metric.name: self._completed(metric, samples, kept.get(metric.name), poison.get(metric.name, ()))
            for metric in self.fresh
        }

    def _completed(
        self, metric: Metric, samples: Sequence[Sample], kept: Sequence[Score] | None, poison: Collection[int]
    ) -> list[Score]:
        """The scores of a part; of those that an earlier try has kept, only the open ones are asked for."""
        if kept is None:
            return self._scored(metric, samples, poison)
        rows = [row for row, score in enumerate(kept) if score.status == "open"]
        places = {row: place for place, row in enumerate(rows)}
        fresh = self._scored(metric, [samples[row] for row in rows], {places[row] for row in poison if row in places})
        return [fresh[places[row]] if row in places else score for row, score in enumerate(kept)]

    def _kept_scores(self, part: int) -> dict[str, list[Score]]:
        kept = self.folder.read_piece(_part_of(_OPEN, part), 0)
        try:
            return {} if kept is None else msgspec.json.decode(kept, type=dict[str, list[Score]])
        except msgspec.DecodeError:  # then all samples of the part are asked for
            return {}

    def facts(self, part: int) -> Facts | None:
        """What scoring a part has left for lint."""
        kept = self.folder.read_piece(_part_of(_FACTS, part), 0)
        return None if kept is None else np.frombuffer(kept, dtype=FACTS)

    def _earlier_scores(self, part: int) -> pa.Table | None:
        """The part's scores in the run before, where some of them are taken over."""
        if self.earlier is None or not self.reusable:
            return None
        return self.earlier.read_part("scores", part)


def composites(plan: Plan, scores: Mapping[str, Sequence[Score]], count: int) -> list[Score]:
    """The composite of each of `count` samples, from the scores of all metrics."""
    task = plan.task
    assert task is not None
    return [composite_of_scores(task, {name: column[row] for name, column in scores.items()}) for row in range(count)]


def _given_up(score: Score) -> Score:
    return unscored("error", score.reason or "") if score.status == "open" else score


def _open_part(scores: Mapping[str, Sequence[Score]]) -> OpenPart | None:
    """Whether some samples have no result yet, and what kept it from coming."""
    rows = {row for some in scores.values() for row, score in enumerate(some) if score.status == "open"}
    if not rows:
        return None
    name, score = next((name, score) for name, some in scores.items() for score in some if score.status == "open")
    return OpenPart(len(rows), f"{name}: {score.reason}")
