"""The work on one part: fit, or score and commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import OpenSamplesError
from multimodal_eval.core.metric import CorpusGroups, LargeState, Metric, Placement, Scorer
from multimodal_eval.core.metric_failures import blamed_on
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.retries import GaveUpError, Retries
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.core.scores import Scores, code_of, joined
from multimodal_eval.core.scoring import score_rows, with_failures_marked
from multimodal_eval.data.readers.inputs import Input
from multimodal_eval.data.runs.pieces import with_checksum, without_checksum
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.score_table import columns_of, key_columns, score_columns, stored_scores
from multimodal_eval.evaluation.composite_score import composite_of_columns
from multimodal_eval.lint.facts import FACTS, Facts, facts_of
from multimodal_eval.lint.injection import judged_columns
from multimodal_eval.media.policy import policy_of, using
from multimodal_eval.run.grouping import Grouping
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.reading import ReadItem, perform
from multimodal_eval.run.sample_checks import Refused, checked_part
from multimodal_eval.run.suspects import Suspect
from multimodal_eval.run.upcoming import Upcoming, announce_to

BATCH = 1024
States = dict[str, Any]  # corpus statistics by metric, of a type defined by the metric
PARTS_PER_BUCKET = 4
MAX_BUCKETS = 1024  # every part is searched for every bucket
CRASHED = unscored("error", "the process that scored this sample crashed on every attempt")


def _part_of(name: str, part: int) -> str:
    return f"{name}.part-{part:05d}"


def _bucket_of(name: str, bucket: int) -> str:
    return f"{name}.bucket-{bucket:05d}"


_CRASHING, _FACTS, _OPEN = "poison", "lint", "open"
_OPEN_CODE = code_of("open")


@dataclass(frozen=True)
class Stored:
    """Placeholder for the statistics of a part that are stored in the run folder, with the number of their rows."""

    rows: int = 0


@dataclass(frozen=True)
class OpenPart:
    """A part that was not committed, because some of its samples have no result yet."""

    samples: int
    reason: str


def unannounced(metric: str) -> None:
    """Tell nobody."""


@dataclass
class Worker:
    """Opens the metrics once and then processes any part of the run. It needs only the run folder and the plan."""

    plan: Plan
    folder: RunFolder
    earlier: RunFolder | None = None  # a run with the same parts
    reusable: frozenset[str] = field(default=frozenset())  # metrics whose scores are copied from `earlier`
    accept_open: bool = False  # store samples that remain open as errors
    reads_records: bool = False  # the input is read record by record in Python, not as columns
    isolates: bool = False  # do all work in child processes, because an earlier process of this run died
    source: Input | None = None  # the opened input, which knows the line of a sample
    threads: int = 1  # for the batches of one part: more than one if there are fewer parts than cores
    announce: Callable[[str], None] = field(default=unannounced, repr=False)  # called with the metric that is scored
    upcoming: Upcoming = field(default_factory=Upcoming, repr=False)
    _states: States = field(default_factory=dict, repr=False)
    _retries: defaultdict[str, Retries] = field(default_factory=lambda: defaultdict(Retries), repr=False)  # by metric

    def placement(self, work: str) -> Placement:
        """Where to do the work: with a model, in Python processes, or in threads."""
        if work in ("count", "read"):
            return "process" if self.reads_records else "thread"
        if work in ("join", "merge", "keys", "shared"):
            return "thread"
        if work == "check":
            return "process"
        placements = {metric.placement for metric in self.fresh if work not in ("fit", "fit_moved") or metric.fits}
        order: tuple[Placement, ...] = ("model", "process", "thread")
        return next((placement for placement in order if placement in placements), "thread")

    def open(self, work: str) -> None:
        """Prepare for work in several threads."""
        if work == "score":
            _ = self.scorers

    def read(self, item: ReadItem) -> Any:
        """Do one of the tasks of reading the input."""
        return perform(self.folder, self.plan.config, item)

    count = join = read  # separate names, because the engines place them differently

    @property
    def fresh(self) -> list[Metric]:
        """The metrics that must be computed."""
        return [metric for metric in self.plan.metrics if metric.name not in self.reusable]

    def check(self, part: int) -> Refused:
        """Ask the metrics that refuse some samples about those of a part."""
        return checked_part(self.folder, part, [metric for metric in self.fresh if metric.checks_samples])

    @cached_property
    def fitting(self) -> dict[str, list[Metric]]:
        """The metrics that need corpus statistics, grouped by equal statistics, by the name of the first metric."""
        groups: dict[tuple[Any, ...], list[Metric]] = {}
        for metric in self.plan.metrics:
            if metric.fits and not self.folder.has_state(metric.name):
                groups.setdefault(metric.corpus_key, []).append(metric)
        return {metrics[0].name: metrics for metrics in groups.values()}

    def fit(self, part: int) -> States:
        """The corpus statistics of a part; large ones are stored in the run folder, in pieces."""
        batch = self.folder.read_batch(part)
        samples = with_failures_marked(batch, self.plan.config.patterns)
        states: States = {}
        for name, metrics in self.fitting.items():
            groups = self.groups.get(name)
            rows = samples if groups is None else self.grouping.move(name, groups, part, batch, samples)
            states[name] = self._fitted(metrics[0], rows, _part_of(name, part))
        return states

    def _fitted(self, metric: Metric, samples: Sequence[Sample], file: str, rows: int | None = None) -> Any:
        """The corpus statistics of some samples, or `Stored` if they are in a file."""
        with blamed_on(metric.name, "gathering its corpus statistics"):
            try:
                state = self._retries[metric.name].call(metric.fit, samples)
            except GaveUpError as failure:
                message = f"the corpus statistics of {metric.name} have no result so far: {failure}"
                raise OpenSamplesError(message) from None
        if isinstance(state, LargeState) and isinstance(metric.state_type, type):  # which can merge the pieces
            self.folder.write_pieces(file, state.pack(self.buckets), is_temporary=True)
            return Stored(getattr(state, "rows", 0) if rows is None else rows)
        return state

    @cached_property
    def groups(self) -> dict[str, CorpusGroups]:
        """How samples that belong together are found, by the name of the statistics."""
        by_name = {name: metrics[0].corpus_groups for name, metrics in self.fitting.items()}
        return {name: groups for name, groups in by_name.items() if groups is not None}

    @property
    def grouping(self) -> Grouping:
        """The exchange of rows that belong together."""
        return Grouping(self.folder, self.parts, self.buckets)

    def keys(self, part: int) -> dict[str, int]:
        """Write the keys of a part's rows, and count the rows that have one."""
        return {name: self.grouping.write_keys(name, groups, part) for name, groups in self.groups.items()}

    def shared(self, bucket: int) -> list[str]:
        """Find the keys of one bucket that occur in several parts, and return the statistics with such keys."""
        return [name for name in self.groups if self.grouping.find_shared(name, bucket)]

    def fit_moved(self, bucket: int) -> States:
        """The corpus statistics of the rows that belong to rows of other parts."""
        states: States = {}
        for name, groups in self.groups.items():
            if bucket in self.grouping.moved(name):
                samples, rows = self.grouping.moved_rows(name, groups, bucket)
                file = _part_of(name, self.parts + bucket)
                states[name] = self._fitted(self.fitting[name][0], samples, file, rows)
        return states

    @cached_property
    def parts(self) -> int:
        """The number of parts of the run, after its input is read."""
        return len(self.folder.read_info().parts)

    @property
    def buckets(self) -> int:
        """The number of pieces of large statistics; one is about as large as a few parts."""
        return min(MAX_BUCKETS, max(1, self.parts // PARTS_PER_BUCKET))

    def merge(self, bucket: int) -> None:
        """Sum one bucket of all large statistics over all parts."""
        folder = self.folder
        for name, metrics in self.fitting.items():
            moved = self.grouping.moved(name) if name in self.groups else []
            places = chain(range(self.parts), (self.parts + number for number in moved))
            stored = (folder.read_piece(_part_of(name, place), bucket) for place in places)
            pieces = (piece for piece in stored if piece is not None)
            first = next(pieces, None)
            if first is not None:
                merged = metrics[0].state_type.merged(chain([first], pieces))
                folder.write_pieces(_bucket_of(name, bucket), [merged], is_temporary=True)

    def united(self, name: str) -> Any:
        """The sum of large statistics, after all buckets are summed."""
        buckets = (self.folder.read_piece(_bucket_of(name, bucket), 0) for bucket in range(self.buckets))
        return self.fitting[name][0].state_type.united(bucket for bucket in buckets if bucket is not None)

    def keep_state(self, metric: Metric, state: Any) -> None:
        """Cache a new state, so that it is not read again."""
        self._states[metric.name] = state

    def state(self, metric: Metric) -> Any:
        """The state of a metric for the whole run."""
        if metric.name not in self._states:
            same = [other for other in self.plan.metrics if other.fits and other.corpus_key == metric.corpus_key]
            known = next((self._states[other.name] for other in same if other.name in self._states), None)
            if not self.folder.has_state(metric.name):
                known = metric.default_state()
            elif known is None:
                with self.folder.state_copy(metric.name) as path, blamed_on(metric.name, "reading its statistics"):
                    known = metric.load_state(path)
            self._states[metric.name] = known
        return self._states[metric.name]

    @cached_property
    def scorers(self) -> dict[str, Scorer]:
        """The opened metrics."""
        scorers: dict[str, Scorer] = {}
        for metric in self.fresh:
            if len(self.upcoming.parts) > 1 and hasattr(metric, "warm_up"):
                metric.warm_up()
            state = self.state(metric)
            with blamed_on(metric.name, "being opened"):
                scorers[metric.name] = metric.open(state)
        return scorers

    @cached_property
    def _expecting(self) -> list[tuple[Metric, Any]]:
        """The metrics whose scorers want to know which samples come next."""
        return [(m, self.scorers[m.name]) for m in self.fresh if hasattr(self.scorers[m.name], "expect")]

    def probe(self, suspect: Suspect) -> None:
        """Score some samples of a part only to test whether the process crashes."""
        samples = self._batch(suspect.part)[suspect.start : suspect.stop]
        (metric,) = (metric for metric in self.fresh if metric.name == suspect.metric)
        self._scored(metric, samples)

    def exclude(self, part: int, rows: Mapping[str, Sequence[int]]) -> None:
        """Store the rows of a part that crash a metric, by metric; `score_again` skips them."""
        self.folder.write_pieces(_part_of(_CRASHING, part), [with_checksum(msgspec.json.encode(rows))])

    def _crashing_rows(self, part: int) -> dict[str, list[int]]:
        stored = without_checksum(self.folder.read_piece(_part_of(_CRASHING, part), 0))
        return {} if stored is None else msgspec.json.decode(stored, type=dict[str, list[int]])

    def _scored(self, metric: Metric, samples: Batch, crashing: Collection[int] = ()) -> Scores:
        if crashing:
            rows = np.array([row for row in range(len(samples)) if row not in crashing], np.int64)
            others = iter(self._scored(metric, samples.take(rows)) if len(rows) else ())
            return Scores.of([CRASHED if row in crashing else next(others) for row in range(len(samples))])
        self.announce(metric.name)
        batches = [samples.rows(start, start + BATCH) for start in range(0, len(samples), BATCH)]
        score = partial(self._scored_batch, metric, self.scorers[metric.name], self._retries[metric.name])
        threads = min(self.threads, len(batches)) if metric.placement == "thread" else 1
        if threads < 2:
            return joined(list(map(score, batches)))
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            return joined(list(pool.map(score, batches)))

    def _scored_batch(self, metric: Metric, scorer: Scorer, retries: Retries, batch: Batch) -> Scores:
        with using(policy_of(self.plan.config)):
            return score_rows(metric, scorer, batch, self.plan.config.patterns, retries)

    def scored(self, metric: Metric, samples: Batch) -> Scores:
        """The scores of some samples, without committing them."""
        return self._scored(metric, samples)

    def score_again(self, part: int) -> OpenPart | None:
        """Score a part again after a crash, without the samples that cause it."""
        return self.score(part)

    def score(self, part: int) -> OpenPart | None:
        """Score a part and commit it; the facts for lint are stored in the run folder.

        If some samples have no result yet, nothing is committed: the scores are kept for the next attempt, which scores
        only these samples.
        """
        folder = self.folder
        expect = partial(announce_to, self._expecting, self.plan.config)
        samples = self.upcoming.batch(part, self._batch, expect) if self._expecting else self._batch(part)
        fresh = self._fresh_scores(part, samples)
        if (open_part := _open_part(fresh)) is not None:
            if not self.accept_open:
                kept = {name: list(scores) for name, scores in fresh.items()}
                folder.write_pieces(_part_of(_OPEN, part), [with_checksum(msgspec.json.encode(kept, enc_hook=str))])
                return open_part
            fresh = {name: Scores.of(list(map(_given_up, scores))) for name, scores in fresh.items()}
        columns: dict[str, pa.Array] = key_columns(samples, 0)
        scores: dict[str, Scores] = {}
        before = self._earlier_scores(part)
        for metric in self.plan.metrics:
            if metric.name in fresh:
                scores[metric.name] = fresh[metric.name]
                columns |= score_columns(metric.name, fresh[metric.name])
            elif before is not None:
                columns |= columns_of(before, metric.name)
                scores[metric.name] = stored_scores(columns, metric.name)
        if self.plan.composite:
            task = self.plan.task
            assert task is not None
            columns |= score_columns(COMPOSITE, composite_of_columns(task, scores, len(samples)))
        if not self.plan.config.skip_lint:  # before the part counts as done
            config = self.plan.config
            facts = facts_of(samples, config.patterns, judged_columns(config.judges))
            folder.write_pieces(_part_of(_FACTS, part), [with_checksum(facts.tobytes())])
        folder.write_part("scores", part, pa.table(columns))
        return None

    def _batch(self, part: int) -> Batch:
        """The samples of a part, with the verdicts on them. In a run, scoring asks no judge."""
        batch = self.folder.read_batch(part)
        judges = [metric.name for metric in self.plan.judges if metric.name not in self.reusable]
        if not judges:
            return batch
        from multimodal_eval.judges.verdict_tables import with_verdicts

        return with_verdicts(batch, self.folder, part, judges)

    def _fresh_scores(self, part: int, samples: Batch) -> dict[str, Scores]:
        """The scores of every metric that are not copied from an earlier run."""
        kept, crashing = self._kept_scores(part), self._crashing_rows(part)
        return {
            metric.name: self._completed(metric, samples, kept.get(metric.name), crashing.get(metric.name, ()))
            for metric in self.fresh
        }

    def _completed(
        self, metric: Metric, samples: Batch, kept: Sequence[Score] | None, crashing: Collection[int]
    ) -> Scores:
        """The scores of a part; if an earlier attempt kept scores, only the open samples are scored."""
        if kept is None:
            return self._scored(metric, samples, crashing)
        rows = [row for row, score in enumerate(kept) if score.status == "open"]
        index = {row: number for number, row in enumerate(rows)}
        asked = samples.take(np.array(rows, np.int64))
        fresh = self._scored(metric, asked, {index[row] for row in crashing if row in index}) if rows else ()
        return Scores.of([fresh[index[row]] if row in index else score for row, score in enumerate(kept)])

    def _kept_scores(self, part: int) -> dict[str, list[Score]]:
        stored = without_checksum(self.folder.read_piece(_part_of(_OPEN, part), 0))
        try:
            return {} if stored is None else msgspec.json.decode(stored, type=dict[str, list[Score]])
        except msgspec.DecodeError:  # then all samples of the part are scored
            return {}

    def facts(self, part: int) -> Facts | None:
        """The facts for lint that were stored when the part was scored."""
        stored = without_checksum(self.folder.read_piece(_part_of(_FACTS, part), 0))
        return None if stored is None else np.frombuffer(stored, dtype=FACTS)

    def _earlier_scores(self, part: int) -> pa.Table | None:
        """The part's scores in the earlier run, if some of them are reused."""
        if self.earlier is None or not self.reusable:
            return None
        return self.earlier.read_part("scores", part)


def _given_up(score: Score) -> Score:
    return unscored("error", score.reason or "") if score.status == "open" else score


def _open_part(scores: Mapping[str, Scores]) -> OpenPart | None:
    """The number of samples without a result and the first reason; None if all have one."""
    by_metric = {name: np.flatnonzero(column.status == _OPEN_CODE).tolist() for name, column in scores.items()}
    rows = {row for open_rows in by_metric.values() for row in open_rows}
    if not rows:
        return None
    name, row = next((name, open_rows[0]) for name, open_rows in by_metric.items() if open_rows)
    return OpenPart(len(rows), f"{name}: {scores[name].reasons.get(row)}")
