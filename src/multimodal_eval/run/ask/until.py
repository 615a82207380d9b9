"""Stop asking when enough is known: what all decisions share, and the decision by the mean of a metric.

The samples of the run are in the order in which they were drawn. Decisions look only at a prefix of this order whose
replies are all there, so that quick replies do not bias them, and only at fixed lengths of the prefix, so that a
resumed run decides the same. So the rows before the next decision are kept, whatever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import column_names, read_column, read_scores
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.config import GenerationConfig, UntilConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.score import code_of
from multimodal_eval.core.scoring import averages
from multimodal_eval.data.readers.arranged_input import sample_id
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.sample_table import to_batch
from multimodal_eval.generate.answer_tables import exchanges_of, with_answers
from multimodal_eval.generate.protocol import Exchange
from multimodal_eval.judges.form import Place
from multimodal_eval.judges.verdict_tables import Judged
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.step import RunContext, stored_signature
from multimodal_eval.run.steps.score import Score
from multimodal_eval.stats.betting import confidence_sequence
from multimodal_eval.stats.intervals import Interval

__all__ = ["Baseline", "Decision", "Draws", "Until", "UntilMean", "baseline_of", "settled_until", "until_mean"]

_FIRST_LOOK, _GROWTH = 20, 1.05  # samples before the first decision, and how much the prefix grows until the next
_OPEN = code_of("open")

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Decision:
    """After how many rows the run may stop, out of how many samples they were drawn, and why."""

    rows: int
    population: int
    reason: str


class Until:
    """Collects replies, and decides at fixed lengths of prefixes whether they are enough."""

    decision: Decision | None = None  # to stop the whole run

    @property
    def is_due(self) -> bool:
        """Whether the replies for a decision are there."""
        raise NotImplementedError

    def look(self) -> None:
        """Decide what is due."""
        raise NotImplementedError

    def seen(self, reply: Judged) -> None:
        """Note a reply."""
        raise NotImplementedError

    def restore(self, parts: Iterable[int]) -> None:
        """Note the replies of committed parts."""
        raise NotImplementedError

    def may_ask(self, row: int, ahead: int) -> bool:
        """Whether a row may be asked now: before the next decision, about `ahead` further rows are asked."""
        raise NotImplementedError

    def is_settled(self, rows: range) -> bool:
        """Whether it is known which of these rows are kept."""
        raise NotImplementedError

    def wants(self, row: int) -> bool:
        """Whether a row is kept, as far as is known."""
        return True

    def prepare(self, part: int) -> None:
        """Read what is needed of a part that is about to be asked."""

    def advance(self) -> None:
        """Use what was read."""


@dataclass
class Draws:
    """The draws without replacement from a population, and the decisions at fixed lengths of their prefix."""

    population: int
    bounds: tuple[float, float]
    level: float
    width: float | None  # of an interval that is narrow enough; None if something else must be certain
    size: int = 1  # rows of a draw
    next: int = _FIRST_LOOK  # draws at the next decision
    interval: Interval | None = None  # at the last decision
    stopped: int | None = None  # draws at the decision to stop

    def is_due(self, rows: int) -> bool:
        """Whether a prefix of this many rows is enough for the next decision."""
        return self.stopped is None and self.next < self.population and rows >= self.next * self.size

    def may_ask(self, row: int, ahead: int) -> bool:
        """Whether a row is before the next decision, or at most `ahead` rows after it."""
        return self.next >= self.population or row < self.next * self.size + ahead

    def is_settled(self, row: int) -> bool:
        """Whether it is known if a row is kept: it is decided, or the row is before the next decision."""
        return self.stopped is not None or self.may_ask(row, 0)

    def decide(self, values: Vector, is_certain: Callable[[Interval], bool]) -> None:
        """Stop at this prefix if its interval is narrow enough, or if that is certain which is asked for."""
        self.interval = self.interval_of(values)
        if self.interval is not None and self._is_enough(self.interval, is_certain):
            self.stopped = self.next
        else:
            self.next = max(self.next + 1, ceil(self.next * _GROWTH))

    def interval_of(self, values: Vector) -> Interval | None:
        """The interval of the population's mean; None if no draw has a value."""
        if not np.isfinite(values).any():
            return None
        return confidence_sequence(
            values, self.population, self.bounds, width=self.width, level=self.level, size=self.size
        )

    def _is_enough(self, interval: Interval, is_certain: Callable[[Interval], bool]) -> bool:
        if self.width is None:
            return is_certain(interval)
        low, high = ends(interval)
        return (high - low) / 2 <= self.width


def ends(interval: Interval) -> tuple[float, float]:
    """Both ends of a confidence sequence, which has them."""
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


# Answers of a model, until the mean of a metric is certain.


def settled_until(plan: Plan) -> Plan:
    """The plan with the metric's name and the other run's address, after all checks that need no sample."""
    generation = plan.config.generation
    if generation is None or generation.until is None:
        return plan
    until = generation.until
    if (until.width is None) == (until.better_than is None):
        raise ConfigError("`until` needs either `width` or `better_than`")
    if not plan.metrics:
        raise ConfigError("`until` decides by scores, and this run stops after the answers. Use `mmeval run`")
    metric = _checked_metric(plan, until.metric or plan.headline or "")
    _refuse_unbounded(metric, until)
    if generation.history:
        raise ConfigError("`until` draws samples one by one, but the turns of a dialogue are asked together")
    until = msgspec.structs.replace(until, metric=metric.name)
    if until.better_than is not None:
        until = msgspec.structs.replace(until, better_than=_address(until.better_than))
        baseline_of(until, generation, plan, metric)
    generation = msgspec.structs.replace(generation, until=until)
    return msgspec.structs.replace(plan, config=msgspec.structs.replace(plan.config, generation=generation))


def _address(location: str) -> str:
    """The run's address, valid in any working directory."""
    return location if "://" in location else str(Path(location).absolute())


def _checked_metric(plan: Plan, name: str) -> Metric:
    by_name = {metric.name: metric for metric in plan.metrics}
    if name not in by_name:
        what = "the composite, whose parts are weighted" if name in (COMPOSITE, "composite") else repr(name)
        raise ConfigError(f"`until` cannot decide by {what}. Name one of {', '.join(by_name)}")
    metric = by_name[name]
    if name in plan.config.judges:
        raise ConfigError(f"`until`: {name} asks a judge after all samples are answered. Name a metric that asks none")
    if metric.corpus is not None:
        raise ConfigError(
            f"`until`: {name} needs statistics of all samples, so that it has no score before all are answered. "
            f"Name a metric that scores every sample by itself: {_suitable(plan)}"
        )
    if not averages(metric) or plan.config.strata is not None:
        raise ConfigError(
            f"`until`: {name} is not the mean of its samples in this run. Name a metric that is one: {_suitable(plan)}"
        )
    return metric


def _suitable(plan: Plan) -> str:
    names = [
        metric.name
        for metric in plan.metrics
        if averages(metric) and metric.corpus is None and None not in metric.bounds and plan.config.strata is None
    ]
    return ", ".join(names) or "this run has none"


def _refuse_unbounded(metric: Metric, until: UntilConfig) -> None:
    low, high = metric.bounds
    if low is None or high is None:
        raise ConfigError(
            f"`until`: the values of {metric.name} have no bounds, and the interval that allows stopping at any time "
            "needs them"
        )
    if until.width is not None and until.width >= (high - low) / 2:
        raise ConfigError(
            f"`until`: {metric.name} is always known to ± {(high - low) / 2:g}, because it is between {low:g} and "
            f"{high:g}. Give a smaller width than {until.width:g}"
        )


@dataclass(frozen=True)
class Baseline:
    """The scores of another run by sample id; NaN if unscored."""

    label: str
    scores: dict[str, float]
    samples: frozenset[str]  # ids without the epoch


def baseline_of(until: UntilConfig, generation: GenerationConfig, plan: Plan, metric: Metric) -> Baseline:
    """The run that this one is compared with. Refused if its scores are not comparable."""
    assert until.better_than is not None
    run = Run(until.better_than)
    name, label = metric.name, run.folder.label
    signature = run.info.signatures.get(name)
    if signature is None:
        known = ", ".join(run.metrics)
        raise ConfigError(f"`until`: {label} has no scores of {name}. It has {known}")
    text = stored_signature(metric, None, plan.config).text
    if signature.text != text:
        raise ConfigError(f"`until`: {name} is {signature.text} in {label}, but {text} in this run")
    other = run.info.config.generation
    epochs = 1 if other is None else other.epochs
    if epochs != generation.epochs:
        raise ConfigError(
            f"`until`: {label} has {epochs} epochs, but this run {generation.epochs}. Use the same number"
        )
    parts = len(run.info.parts)
    ids = read_scores(run.folder, parts, ["id"]).column("id").to_pylist()
    column = read_column(run.folder, parts, column_names(run.folder, parts), name, metric.bounds)
    samples = frozenset(ids if epochs == 1 else map(sample_id, ids))
    return Baseline(run.folder.name, dict(zip(ids, column.values.tolist(), strict=True)), samples)


def until_mean(run: RunContext) -> UntilMean | None:
    """What decides when the answers of a run are enough; None if all samples are answered, or it was decided."""
    plan, folder, info = run.plan, run.folder, run.info
    generation = plan.config.generation
    if generation is None or generation.until is None or (info.generation and info.generation.stopped):
        return None
    until, epochs = generation.until, generation.epochs
    metric = _checked_metric(plan, until.metric)
    only = msgspec.structs.replace(plan, metrics=(metric,), composite=False, extras=())
    alone = Score(RunContext(only, folder, info))
    low, high = metric.bounds
    assert low is not None
    assert high is not None
    draws = Draws(sum(info.parts) // epochs, (float(low), float(high)), until.confidence, until.width, epochs)
    if until.better_than is None:
        return UntilMean(alone, metric, info.parts, draws)
    baseline = baseline_of(until, generation, plan, metric)
    columns = (folder.read_part("samples", part, ["id"]).column("id") for part in range(len(info.parts)))
    ids = [name for column in columns for name in column.to_pylist()]
    shared = sum((sample_id(name) if epochs > 1 else name) in baseline.samples for name in ids)
    draws.population = shared // epochs  # they were drawn first
    draws.bounds = (draws.bounds[0] - draws.bounds[1], draws.bounds[1] - draws.bounds[0])  # of differences
    return UntilMean(alone, metric, info.parts, draws, baseline, ids)


@dataclass
class UntilMean(Until):
    """Decides by the mean of a metric, or by its difference from another run."""

    step: Score  # of the metric alone
    metric: Metric
    sizes: list[int]  # of the parts
    draws: Draws
    baseline: Baseline | None = None
    ids: list[str] = field(default_factory=list)  # of all rows, with a baseline
    decision: Decision | None = None
    _complete: int = 0  # rows of the prefix that have an outcome
    _values: list[float] = field(default_factory=list)
    _exchanges: dict[int, Exchange] = field(default_factory=dict)  # of rows that are not scored yet
    _part: tuple[int, pa.Table] | None = None  # the samples that were read last

    @property
    def is_due(self) -> bool:
        """Whether the answers for the next decision are there."""
        return self.draws.is_due(self._complete)

    def may_ask(self, row: int, ahead: int) -> bool:
        """Whether a row may be asked now: before the next decision, at most `ahead` further rows are asked."""
        return self.draws.may_ask(row, ahead)

    def is_settled(self, rows: range) -> bool:
        """Whether all rows are before the next decision."""
        return self.draws.may_ask(rows[-1], 0)

    def seen(self, reply: Judged) -> None:
        """Note the outcome of a row."""
        if reply.row >= len(self._values):
            self._exchanges.setdefault(reply.row, reply.exchange)
        while self._complete in self._exchanges:
            self._complete += 1

    def restore(self, parts: Iterable[int]) -> None:
        """Note the outcomes of committed parts."""
        for part in parts:
            start = sum(self.sizes[:part])
            for place, exchange in enumerate(exchanges_of(self.step.run.folder.read_part("answers", part))):
                self.seen(Judged(start + place, Place(), exchange))

    def look(self) -> None:
        """Score the answers up to the next decision, and decide."""
        rows, start = self.draws.next * self.draws.size, len(self._values)
        scores = self.step.scored(self.metric, self._batch(start, rows))
        if (scores.status == _OPEN).any():  # no result yet: look again with the next answer
            return
        self._values += scores.values.tolist()
        for row in range(start, rows):
            del self._exchanges[row]
        values = np.array(self._values)
        if self.baseline is not None:
            values -= np.array([self.baseline.scores.get(name, np.nan) for name in self.ids[:rows]])
        self.draws.decide(values, _has_sign)
        if self.draws.stopped is not None:
            self.decision = Decision(rows, self.draws.population, self._reason())

    def _batch(self, start: int, stop: int) -> Batch:
        """The samples of some rows, with their answers."""
        tables, first = [], 0
        for part, size in enumerate(self.sizes):
            low, high = max(start, first), min(stop, first + size)
            if low < high:
                if self._part is None or self._part[0] != part:
                    self._part = part, self.step.run.folder.read_part("samples", part)
                table = self._part[1].slice(low - first, high - low)
                tables.append(with_answers(table, [self._exchanges[row] for row in range(low, high)]))
            first += size
        return to_batch(pa.concat_tables(tables).combine_chunks())

    def _reason(self) -> str:
        name, interval = self.metric.name, self.draws.interval
        assert interval is not None
        if self.baseline is None:
            return f"{name} is known to ± {self.draws.width:g}"
        side = "higher" if interval.point > 0 else "lower"
        return (
            f"{name} is {side} than in {self.baseline.label}, difference {interval.value:+.4g}, "
            f"{self.draws.level:.0%} interval [{interval.low:+.4g}, {interval.high:+.4g}]"
        )


def _has_sign(interval: Interval) -> bool:
    """Whether it is certain that a difference is not 0."""
    low, high = ends(interval)
    return low > 0 or high < 0
