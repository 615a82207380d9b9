"""Score the parts of a run one by one, and commit each. A part whose samples are not all scored is not committed."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from shlex import quote
from threading import Lock
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import OpenSamplesError, RunFolderError
from multimodal_eval.core.judge_config import judged_columns
from multimodal_eval.core.metric import Metric, Scorer
from multimodal_eval.core.metric_failures import Retries, blamed_on
from multimodal_eval.core.progress import named
from multimodal_eval.core.records import COMPOSITE, StoredSignature
from multimodal_eval.core.score import Score as SampleScore
from multimodal_eval.core.score import Scores, code_of, joined, unscored
from multimodal_eval.core.scoring import rows_to_score, score_rows
from multimodal_eval.data.runs.run_content import part_name, with_checksum, without_checksum
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import columns_of_metric, key_columns, score_columns, stored_scores
from multimodal_eval.evaluation.composite_score import composite_of_columns, composite_signature
from multimodal_eval.lint.facts import FACTS, Facts, facts_of
from multimodal_eval.media.policy import policy_of, using
from multimodal_eval.run.engine.base import Crashed, Phase, placement_of
from multimodal_eval.run.step import RunContext, Step, run_settings, stored_signature

T = TypeVar("T")

BATCH = 1024
SAMPLES_AHEAD = 512  # beside those of the parts that are being scored
CRASHED = unscored("error", "the process that scored this sample crashed on every attempt")
_CRASHING, _FACTS, _OPEN = "poison.part-{:05d}", "lint.part-{:05d}", "open.part-{:05d}"  # scratch files
_OPEN_CODE = code_of("open")


def _nobody(metric: str) -> None:
    """Tell nobody."""


class Upcoming(msgspec.Struct):
    """The parts that this process scores, ascending, and the samples of those that were announced."""

    parts: list[int] = msgspec.field(default_factory=list)
    _next: int = 0  # the first one that was not announced
    _batches: dict[int, Batch] = msgspec.field(default_factory=dict)
    _lock: Any = msgspec.field(default_factory=Lock)

    def add(self, parts: Sequence[int]) -> None:
        """Add the parts that come after those that are known."""
        with self._lock:
            self.parts += [part for part in parts if not self.parts or part > self.parts[-1]]

    def batch(self, part: int, read: Callable[[int], Batch], expect: Callable[[Batch], None]) -> Batch:
        """The samples of a part that is scored now. It and the parts after it are announced with `expect`."""
        with self._lock:
            place = bisect_left(self.parts, part)
            while self._next < len(self.parts) and (self._next <= place or self._ahead_of(part) < SAMPLES_AHEAD):
                number = self.parts[self._next]
                self._next += 1
                self._batches[number] = read(number)
                expect(self._batches[number])
            batch = self._batches.pop(part, None)
        return read(part) if batch is None else batch

    def _ahead_of(self, part: int) -> int:
        """The number of samples that were announced and are not scored yet, apart from those of the part."""
        return sum(len(batch) for number, batch in self._batches.items() if number != part)


def announce_to(expecting: Sequence[tuple[Metric, Any]], config: RunConfig, batch: Batch) -> None:
    """Tell scorers with `expect` about the samples that they will get."""
    with using(policy_of(config)):
        for metric, scorer in expecting:
            scorer.expect(batch.take(rows_to_score(metric, batch, config.patterns)))


class OpenPart(msgspec.Struct, frozen=True):
    """A part that was not committed, because some of its samples have no result yet."""

    samples: int
    reason: str


def refuse_open(run: RunContext, left: Sequence[OpenPart]) -> None:
    """Refuse to finish a run with open samples, whose failures say nothing about the samples themselves."""
    count = sum(part.samples for part in left)
    plugins = "".join(f" --plugin {quote(plugin)}" for plugin in run.plan.config.plugins)
    raise OpenSamplesError(
        f"samples without a result so far: {count:,} ({left[0].reason}). All other scores are kept. "
        f"Score only these samples again with: mmeval score --resume {run.folder.label}{plugins}; "
        "with --accept-open, those that fail again are stored as errors"
    )


class Sign(Step):
    """Notes the signatures of all metrics before anything is scored, and refuses to continue with others."""

    feeds_results = False

    def left(self) -> Sequence[Any]:
        """Always: what a metric computes may have changed since."""
        return [None]

    def make(self, left: Sequence[Any]) -> None:
        """Note or compare."""
        run, plan, known = self.run, self.run.plan, self.run.info.signatures
        current = {metric.name: stored_signature(metric, run.states.of(metric), plan.config) for metric in plan.metrics}
        if plan.composite and plan.task is not None:
            headline = next((metric for metric in plan.metrics if metric.name == plan.task.headline), None)
            signature = composite_signature(plan.task).extended(**run_settings(plan.config, headline, COMPOSITE))
            current[COMPOSITE] = StoredSignature(str(signature), signature.to_dict())
        if not known:
            run.folder.record_checksums()
            run.note(state="scoring", signatures=current)
            return
        for name in {*current, *known}:
            before, after = known.get(name), current.get(name)
            if before != after:
                raise RunFolderError(
                    f"{run.folder.label} was started with {before and before.text} and would continue with "
                    f"{after and after.text}. Start a new run, or restore what it was started with"
                )


class Score(Step):
    """Stores the scores of every part, with the facts for lint."""

    state = "scoring"
    runs_metrics = True

    announce: Callable[[str], None] = _nobody  # called with the metric that is scored
    upcoming: Upcoming = msgspec.field(default_factory=Upcoming)
    _retries: dict[str, Retries] = msgspec.field(default_factory=lambda: defaultdict(Retries))  # by metric

    def left(self) -> Sequence[int]:
        """The parts without scores."""
        return [part for part in self.run.parts if not self.run.has(part_name("scores", part))]

    def make(self, left: Sequence[int]) -> None:
        """Score them. Samples that crash their process are stored as errors; all else is kept if some stay open."""
        run, sizes = self.run, self.run.info.parts
        run.remove_damaged("scores/")
        total = sum(sizes)
        done = total - sum(sizes[part] for part in left)
        run.progress("scoring", done, total)
        self.announce = partial(named, run.progress)
        self.announce(", ".join(metric.name for metric in self.fresh))
        open_parts: list[OpenPart] = []
        for part, result in zip(left, run.engine.map(self, self.phase("part", left)), strict=True):
            if isinstance(result, Crashed):
                result = score_without_crashes(self, part, sizes[part])
            if isinstance(result, OpenPart):
                open_parts.append(result)
            done += sizes[part]
            run.progress("scoring", done, total)
        run.folder.clear_temporary()  # from processes that crashed while writing
        if open_parts:
            refuse_open(run, open_parts)

    def phase(self, work: str, items: Sequence[Any], *, is_apart: bool = False) -> Phase:
        """Work on some items; apart is in other processes, after a crash."""
        phase = Phase(work, items, placement_of(self.fresh), attempts=2)
        return msgspec.structs.replace(phase, apart="always") if is_apart else phase

    # in any process

    def open(self) -> None:
        """Open the metrics."""
        _ = self.scorers

    def expect(self, items: Sequence[Any]) -> None:
        """Note the parts that come next, so that their files can be read in time. Suspects are not parts."""
        self.upcoming.add([item for item in items if isinstance(item, int)])

    @property
    def is_concurrent(self) -> bool:
        """Whether two threads may score two parts with the models of this process."""
        models = [self.scorers[metric.name] for metric in self.fresh if metric.placement == "model"]
        return all(getattr(scorer, "is_concurrent", False) for scorer in models)

    def refuse_machine(self) -> None:
        """Refuse a machine on which a metric has another signature than in this run."""
        from socket import gethostname

        stored = self.run.info.signatures
        for metric in self.fresh:
            here = stored_signature(metric, self.run.states.of(metric), self.run.plan.config)
            if here != stored[metric.name]:
                raise RunFolderError(
                    f"{gethostname()} would score with {here.text}, but this run was started with "
                    f"{stored[metric.name].text}. All machines need the same package, plug-ins and models, and a GPU "
                    "if the first one had a GPU (--engine ray,gpus_per_worker=SHARE)"
                )

    @cached_property
    def fresh(self) -> list[Metric]:
        """The metrics that must be computed."""
        return [metric for metric in self.run.plan.metrics if metric.name not in self.run.reusable]

    @cached_property
    def scorers(self) -> dict[str, Scorer]:
        """The opened metrics."""
        scorers: dict[str, Scorer] = {}
        for metric in self.fresh:
            if len(self.upcoming.parts) > 1 and hasattr(metric, "warm_up"):
                metric.warm_up()
            state = self.run.states.of(metric)
            with blamed_on(metric.name, "being opened"):
                scorers[metric.name] = metric.open(state)
        return scorers

    def probe(self, suspect: Suspect) -> None:
        """Score some samples of a part only to test whether the process crashes."""
        samples = self._batch(suspect.part)[suspect.start : suspect.stop]
        (metric,) = (metric for metric in self.fresh if metric.name == suspect.metric)
        self.scored(metric, samples)

    def exclude(self, part: int, rows: Mapping[str, Sequence[int]]) -> None:
        """Store the rows of a part that crash a metric, by metric. They are not scored then."""
        self.run.folder.write_pieces(_CRASHING.format(part), [with_checksum(msgspec.json.encode(rows))])

    def scored(self, metric: Metric, samples: Batch, crashing: Collection[int] = ()) -> Scores:
        """The scores of some samples, without committing them. Those that crash their process are errors."""
        if crashing:
            rows = np.array([row for row in range(len(samples)) if row not in crashing], np.int64)
            others = iter(self.scored(metric, samples.take(rows)) if len(rows) else ())
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
        with using(policy_of(self.run.plan.config)):
            return score_rows(metric, scorer, batch, self.run.plan.config.patterns, retries)

    def part(self, part: int) -> OpenPart | None:
        """Score a part and commit it; the facts for lint are stored in the run folder.

        If some samples have no result yet, nothing is committed: the scores are kept for the next attempt, which scores
        only these samples.
        """
        folder = self.run.folder
        expecting = [(m, self.scorers[m.name]) for m in self.fresh if hasattr(self.scorers[m.name], "expect")]
        expect = partial(announce_to, expecting, self.run.plan.config)
        samples = self.upcoming.batch(part, self._batch, expect) if expecting else self._batch(part)
        fresh = self._fresh_scores(part, samples)
        if (open_part := _open_part(fresh)) is not None:
            if not self.run.accept_open:
                kept = {name: list(scores) for name, scores in fresh.items()}
                folder.write_pieces(_OPEN.format(part), [with_checksum(msgspec.json.encode(kept, enc_hook=str))])
                return open_part
            fresh = {name: Scores.of(list(map(_given_up, scores))) for name, scores in fresh.items()}
        columns: dict[str, pa.Array] = key_columns(samples, 0)
        scores: dict[str, Scores] = {}
        earlier = self.run.earlier if self.run.reusable else None
        before: pa.Table | None = None if earlier is None else earlier.read_part("scores", part)
        for metric in self.run.plan.metrics:
            if metric.name in fresh:
                scores[metric.name] = fresh[metric.name]
                columns |= score_columns(metric.name, fresh[metric.name])
            elif before is not None:
                columns |= columns_of_metric(before, metric.name)
                scores[metric.name] = stored_scores(columns, metric.name)
        if self.run.plan.composite:
            task = self.run.plan.task
            assert task is not None
            columns |= score_columns(COMPOSITE, composite_of_columns(task, scores, len(samples)))
        if not self.run.plan.config.skip_lint:  # before the part counts as done
            config = self.run.plan.config
            facts = facts_of(samples, config.patterns, judged_columns(config.judges))
            folder.write_pieces(_FACTS.format(part), [with_checksum(facts.tobytes())])
        folder.write_part("scores", part, pa.table(columns))
        return None

    def _batch(self, part: int) -> Batch:
        """The samples of a part, with the verdicts on them. In a run, scoring asks no judge."""
        batch, plan = self.run.folder.read_batch(part), self.run.plan
        judges = (
            [judge.name for judge in plan.judges if judge.name not in self.run.reusable] if plan.config.judges else []
        )
        if not judges:
            return batch
        from multimodal_eval.judges.verdict_tables import with_verdicts

        return with_verdicts(batch, self.run.folder, part, sum(self.run.info.parts[:part]), judges)

    def _fresh_scores(self, part: int, samples: Batch) -> dict[str, Scores]:
        """The scores of every metric that are not copied from an earlier run."""
        kept = self._noted(_OPEN.format(part), dict[str, list[SampleScore]])
        crashing = self._noted(_CRASHING.format(part), dict[str, list[int]])
        fresh: dict[str, Scores] = {}
        for metric in self.fresh:
            name, rows = metric.name, crashing.get(metric.name, ())
            is_kept = name in kept
            fresh[name] = (
                self._completed(metric, samples, kept[name], rows) if is_kept else self.scored(metric, samples, rows)
            )
        return fresh

    def _completed(
        self, metric: Metric, samples: Batch, kept: Sequence[SampleScore], crashing: Collection[int]
    ) -> Scores:
        """The scores of a part of which an earlier attempt kept scores: only the open samples are scored."""
        rows = [row for row, score in enumerate(kept) if score.status == "open"]
        index = {row: number for number, row in enumerate(rows)}
        asked = samples.take(np.array(rows, np.int64))
        fresh = self.scored(metric, asked, {index[row] for row in crashing if row in index}) if rows else ()
        return Scores.of([fresh[index[row]] if row in index else score for row, score in enumerate(kept)])

    def _noted(self, file: str, kind: type[T]) -> T:
        """What an earlier attempt has noted about samples of a part, by metric."""
        stored = without_checksum(self.run.folder.read_piece(file, 0)) or b"{}"
        with suppress(msgspec.DecodeError):  # then all samples of the part are scored
            return msgspec.json.decode(stored, type=kind)
        return msgspec.json.decode(b"{}", type=kind)


def stored_facts(folder: RunFolder, part: int) -> Facts | None:
    """The facts for lint that were stored when the part was scored."""
    stored = without_checksum(folder.read_piece(_FACTS.format(part), 0))
    return None if stored is None else np.frombuffer(stored, dtype=FACTS)


def _given_up(score: SampleScore) -> SampleScore:
    return unscored("error", score.reason or "") if score.status == "open" else score


def _open_part(scores: Mapping[str, Scores]) -> OpenPart | None:
    """The number of samples without a result and the first reason; None if all have one."""
    by_metric = {name: np.flatnonzero(column.status == _OPEN_CODE).tolist() for name, column in scores.items()}
    rows = {row for open_rows in by_metric.values() for row in open_rows}
    if not rows:
        return None
    name, row = next((name, open_rows[0]) for name, open_rows in by_metric.items() if open_rows)
    return OpenPart(len(rows), f"{name}: {scores[name].reasons.get(row)}")


MAX_CRASHING = 20  # samples per part: with more, the samples are unlikely to be the cause


def score_without_crashes(step: Score, part: int, size: int) -> OpenPart | None:
    """Score a part that crashed its process, without the samples that cause the crash."""
    step.exclude(part, crashing_rows(step, part, size))
    (result,) = step.run.engine.map(step, step.phase("part", [part], is_apart=True))
    if isinstance(result, Crashed):
        raise RunFolderError(
            f"part {part} cannot be scored: {result.reason}, but no single sample of it causes the crash. "
            "Is there enough memory?"
        )
    return result if isinstance(result, OpenPart) else None


def crashing_rows(step: Score, part: int, size: int) -> dict[str, list[int]]:
    """The rows of a part, from 0, that crash a process on their own, by metric."""
    crashing: dict[str, list[int]] = {}
    suspects = [Suspect(part, metric.name, 0, size) for metric in step.fresh]
    while suspects:
        halves = [half for suspect in suspects for half in suspect.halves]
        results = step.run.engine.map(step, step.phase("probe", halves, is_apart=True))
        crashed = [half for half, result in zip(halves, results, strict=True) if isinstance(result, Crashed)]
        for single in (half for half in crashed if half.is_single):
            crashing.setdefault(single.metric, []).append(single.start)
        suspects = [half for half in crashed if not half.is_single]
        _refuse_too_many(part, [*crashing, *(suspect.metric for suspect in suspects)], crashing, len(suspects))
    return {metric: sorted(rows) for metric, rows in crashing.items()}


def _refuse_too_many(part: int, metrics: list[str], crashing: dict[str, list[int]], suspected: int) -> None:
    if sum(map(len, crashing.values())) + suspected <= MAX_CRASHING:
        return
    names = ", ".join(dict.fromkeys(metrics))
    raise RunFolderError(
        f"part {part}: over {MAX_CRASHING} samples crash the process that scores them with {names}. "
        "Leave it out, or fix it: with a declared version the run can be resumed, otherwise start a new run"
    )


class Suspect(msgspec.Struct, frozen=True):
    """A range of samples of a part that may crash a metric."""

    part: int
    metric: str
    start: int
    stop: int

    @property
    def is_single(self) -> bool:
        """Whether the range has one sample."""
        return self.stop - self.start == 1

    @property
    def halves(self) -> list[Suspect]:
        """The two halves, or the range itself if it has one sample."""
        middle = (self.start + self.stop) // 2
        return (
            [self]
            if self.is_single
            else [msgspec.structs.replace(self, stop=middle), msgspec.structs.replace(self, start=middle)]
        )
