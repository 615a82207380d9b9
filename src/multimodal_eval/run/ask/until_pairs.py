"""Stop comparing two systems when it is certain enough which of them is better.

The samples of the run are in the order in which they were drawn, so that the comparisons of every pair of systems are
draws without replacement, and each pair is decided by itself.
The intervals of all pairs hold together: each has the level 1 - (1 - confidence) / number of pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import compared_systems
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import JudgeUntil
from multimodal_eval.core.records import ComparedPair, RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scoring import rows_to_score
from multimodal_eval.data.readers.arranged_input import Draw
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.asking import AskingMetric
from multimodal_eval.evaluation.judge_metric import JudgeMetric
from multimodal_eval.generate.protocol import Exchange
from multimodal_eval.judges.form import Place, Verdict
from multimodal_eval.judges.verdict_tables import Judged, rows_of, verdicts_kind
from multimodal_eval.run.ask.until import Draws, Until, ends
from multimodal_eval.run.plan import Plan
from multimodal_eval.stats.intervals import Interval

__all__ = ["UntilPairs", "check_order", "check_until", "decided_pairs", "until_pairs"]

_EVEN = 0.5

Codes = NDArray[np.int64]
Outcome = Literal["better", "worse", "equal", "open"]


def check_until(metric: AskingMetric) -> None:
    """Refuse settings with which a judge cannot stop."""
    until, form = metric.config.until, metric.config.form
    if until is None:
        return
    if form != "pairwise":
        raise ConfigError(f"{metric.name}: `until` is for comparisons of two systems, but its form is {form}")
    if (until.width is None) != until.ranked:
        raise ConfigError(f"{metric.name}: `until` needs either `width` or `ranked`")
    if until.margin is not None and not until.ranked:
        raise ConfigError(f"{metric.name}: `margin` belongs to `ranked`")


def check_order(plan: Plan, folder: RunFolder, info: RunInfo, metric: AskingMetric) -> None:
    """Refuse a judge that may stop if the samples are not in the order of drawing."""
    ids = [name for part in range(len(info.parts)) for name in _ids(folder, part)]
    if (Draw(plan.config.seed).order(ids) != np.arange(len(ids))).any():
        raise ConfigError(
            f"{metric.name}: `until` needs samples in a random order, but this run has those of another run. "
            "Let the judge compare all of them, or make a new run with `mmeval judge rank` or `mmeval score DATA`"
        )


def _ids(folder: RunFolder, part: int) -> list[str]:
    names: list[str] = folder.read_part("samples", part, ["id"]).column("id").to_pylist()
    return names


def until_pairs(plan: Plan, folder: RunFolder, info: RunInfo, metric: AskingMetric) -> UntilPairs | None:
    """What decides when the pairs of a run are compared enough; None if all samples are compared."""
    until = metric.config.until
    if until is None:
        return None
    check_until(metric)
    assert isinstance(metric, JudgeMetric)  # no other metric has the form
    codes: dict[tuple[str, str], int] = {}
    rows = np.zeros(sum(info.parts), np.int64)
    for row, systems in enumerate(compared_systems(folder, len(info.parts))):
        rows[row] = codes.setdefault((systems.system, systems.others[0]), len(codes))
    return UntilPairs(plan, folder, info.parts, metric, until, list(codes), rows)


def decided_pairs(plan: Plan, folder: RunFolder, info: RunInfo, metric: AskingMetric) -> list[ComparedPair]:
    """What is certain about every pair, once all verdicts of a judge are stored."""
    until = until_pairs(plan, folder, info, metric)
    assert until is not None
    until.restore(range(len(info.parts)))
    until.look()
    return until.pairs()


@dataclass
class _Pair:
    """The comparisons of two systems so far."""

    names: tuple[str, str]
    rows: Codes  # of the run, in the order of drawing
    draws: Draws
    values: list[float] = field(default_factory=list)  # of the prefix whose verdicts are all there; NaN if unscored

    @property
    def is_complete(self) -> bool:
        """Whether no further value is needed."""
        return self.draws.stopped is not None or len(self.values) == len(self.rows)

    @property
    def is_due(self) -> bool:
        """Whether the verdicts for the next decision are there."""
        return self.draws.is_due(len(self.values))


@dataclass
class _Part:
    """The samples of a part that are scored, with the numbers of their questions."""

    samples: dict[int, Sample]
    questions: dict[int, int]


class UntilPairs(Until):
    """Decides, pair by pair, whether the verdicts are enough."""

    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        sizes: list[int],
        metric: JudgeMetric,
        until: JudgeUntil,
        names: list[tuple[str, str]],
        pair_of_row: Codes,
    ) -> None:
        self.plan, self.folder, self.metric, self.until = plan, folder, metric, until
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._pair_of_row = pair_of_row
        self._places = np.zeros(len(pair_of_row), np.int64)  # of a row among those of its pair
        self._pairs: list[_Pair] = []
        level = 1 - (1 - until.confidence) / len(names)  # so that all intervals hold together
        for code, pair in enumerate(names):
            rows = np.flatnonzero(pair_of_row == code)
            self._places[rows] = np.arange(len(rows))
            self._pairs.append(_Pair(pair, rows, Draws(len(rows), (0.0, 1.0), level, until.width)))
        self._parts: dict[int, _Part] = {}
        self._replies: dict[int, dict[Place, Exchange]] = defaultdict(dict)
        self._due: dict[int, _Pair] = {}  # by the number of the first row

    def wants(self, row: int) -> bool:
        """Whether a row is compared. False once its pair is decided, unless the decision is by this row."""
        stopped = self._pair(row).draws.stopped
        return stopped is None or int(self._places[row]) < stopped

    def may_ask(self, row: int, ahead: int) -> bool:
        """Whether a row may be asked now: before the next decision, about `ahead` further rows are asked."""
        undecided = sum(pair.draws.stopped is None for pair in self._pairs)
        return self._pair(row).draws.may_ask(int(self._places[row]), ceil(ahead / max(1, undecided)))

    def is_settled(self, rows: range) -> bool:
        """Whether the pairs of these rows are decided, or the rows are before their next decisions."""
        return all(self._pair(row).draws.is_settled(int(self._places[row])) for row in rows)

    def _pair(self, row: int) -> _Pair:
        return self._pairs[int(self._pair_of_row[row])]

    def prepare(self, part: int) -> None:
        """Read the samples of a part, whose verdicts can then be scored. Parts that are scored are forgotten."""
        for number in [number for number in self._parts if self._starts[number + 1] <= self._first_row]:
            del self._parts[number]
        if part in self._parts:
            return
        start = int(self._starts[part])
        batch = self.folder.read_batch(part)
        rows = rows_to_score(self.metric, batch, self.plan.config.patterns)
        samples = {start + row: sample for row, sample in zip(rows.tolist(), batch.take(rows), strict=True)}
        questions = {row: len(self.metric.questions(sample)) for row, sample in samples.items()}
        self._parts[part] = _Part(samples, questions)

    @property
    def _first_row(self) -> int:
        """The first row that has no score yet and is needed for a decision."""
        left = (pair for pair in self._pairs if not pair.is_complete)
        return min((int(pair.rows[len(pair.values)]) for pair in left), default=len(self._pair_of_row))

    def seen(self, reply: Judged) -> None:
        """Note the reply to a question. It is scored as soon as its part is prepared."""
        row, place, exchange = reply
        pair = self._pair(row)
        if not pair.is_complete and int(self._places[row]) >= len(pair.values):
            self._replies[row][place] = exchange
            self._advance(pair)

    def advance(self) -> None:
        """Score what can be scored, after a part was prepared."""
        for pair in self._pairs:
            self._advance(pair)

    def restore(self, parts: Iterable[int]) -> None:
        """Note the verdicts of committed parts."""
        for part in parts:
            self.prepare(part)
            self.advance()
            for reply in rows_of(self.folder.read_part(verdicts_kind(self.metric.name), part)):
                self.seen(reply)

    def _advance(self, pair: _Pair) -> None:
        """Score the comparisons that continue the prefix."""
        while not pair.is_complete:
            value = self._value(int(pair.rows[len(pair.values)]))
            if value is None:
                return
            pair.values.append(value)
            if pair.is_due:
                self._due[int(pair.rows[0])] = pair

    def _value(self, row: int) -> float | None:
        """The score of a row, NaN if it is unscored; None if a verdict is missing, or its part is not prepared."""
        known = self._parts.get(int(np.searchsorted(self._starts, row, side="right")) - 1)
        if known is None:
            return None
        if row not in known.samples:
            return np.nan
        replies = self._replies.get(row, {})
        if len(replies) < known.questions[row]:
            return None
        verdicts = [Verdict(place, replies[place].outcome) for place in sorted(replies)]
        score = self.metric.score_of(known.samples[row], verdicts)
        self._replies.pop(row, None)
        return np.nan if score.value is None else score.value

    @property
    def is_due(self) -> bool:
        """Whether the verdicts for the next decision about a pair are there."""
        return bool(self._due)

    def look(self) -> None:
        """Decide about every pair whose verdicts are there."""
        while self._due:
            _, pair = self._due.popitem()
            while pair.is_due:
                pair.draws.decide(np.array(pair.values[: pair.draws.next]), self._is_certain)

    def _is_certain(self, interval: Interval) -> bool:
        return self._outcome(interval) != "open"

    def _outcome(self, interval: Interval) -> Outcome:
        low, high = ends(interval)
        if low > _EVEN:
            return "better"
        if high < _EVEN:
            return "worse"
        margin = 0.0 if self.until.margin is None else self.until.margin
        return "equal" if low >= _EVEN - margin and high <= _EVEN + margin else "open"

    def pairs(self) -> list[ComparedPair]:
        """What is certain about every pair, after all verdicts are there."""
        return [self._described(pair) for pair in self._pairs]

    def _described(self, pair: _Pair) -> ComparedPair:
        interval, stopped = pair.draws.interval, pair.draws.stopped
        if stopped is None:
            interval = pair.draws.interval_of(np.array(pair.values))
        return ComparedPair(
            system=pair.names[0],
            baseline_system=pair.names[1],
            compared=len(pair.values) if stopped is None else stopped,
            population=len(pair.rows),
            win_rate=None if interval is None else interval.value,
            low=None if interval is None else interval.low,
            high=None if interval is None else interval.high,
            outcome="open" if interval is None else self._outcome(interval),
            is_stopped=stopped is not None,
        )
