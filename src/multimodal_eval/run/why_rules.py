"""Which rule gives the scores of a log, and scores of one side's answers with ingredients of the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.why_chain import Rescored, RowPairs, Sides
from multimodal_eval.analysis.why_pairs import Mask, Vector
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.corpus import default_state, fitted
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import Metric, configured, declared_options
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.scoring import score_rows
from multimodal_eval.evaluation.choices import options_of
from multimodal_eval.evaluation.metrics_registry import list_available, resolve
from multimodal_eval.run.crosswalk import axis_of, rules_of_metric

__all__ = ["AVERAGES", "CONVENTIONS", "READING", "RULE", "FoundRule", "Rescoring", "best_rules"]

CONVENTIONS = ("random", "unread")  # options that say what an answer without a reading counts as
READING = ("fallback", "normalise")  # options that read, beside the rule
AVERAGES = ("average", "rotations")
RULE = "rule"  # the option that names it
_LOOKED_AT = 300  # samples, before a rule is tried on all
_CHEAP = ("thread", "process")
_GOLD = ("expected_answer", "references", "caption", "annotations", "boxes", "choices")


class Answers(Protocol):
    """The samples of a side, and the metric that scores them."""

    name: str
    base: Metric | None
    options: dict[str, Any]

    @property
    def samples(self) -> list[Sample]:
        """All samples."""


@dataclass(frozen=True)
class FoundRule:
    """A rule that was tried on the answers of a log, and the samples whose score it gives."""

    metric: Metric
    options: dict[str, Any]
    reproduced: Mask

    @property
    def name(self) -> str:
        """The metric and the rule."""
        return f"{self.metric.name} {self.options[RULE]}"


def best_rules(samples: list[Sample], values: Vector) -> list[FoundRule]:
    """The rules that give most of the scores; several may give as many."""
    known = np.flatnonzero(~np.isnan(values))
    few = known if len(known) <= _LOOKED_AT else known[:: max(1, len(known) // _LOOKED_AT)]
    rules = _most([_tried(*each, samples, values, few) for each in _candidates(samples)] if len(few) else [])
    if len(few) < len(known):
        rules = _most([_tried(each.metric, each.options, samples, values, known) for each in rules])
    return list({each.name: each for each in reversed(rules)}.values())[::-1]


def _most(rules: list[FoundRule]) -> list[FoundRule]:
    most = max((int(each.reproduced.sum()) for each in rules), default=0)
    return [each for each in rules if int(each.reproduced.sum()) == most]


def _candidates(samples: Sequence[Sample]) -> Iterator[tuple[Metric, dict[str, Any]]]:
    """Every rule of every metric that the samples have what it needs for; rules for choices come first."""
    first = samples[:50]
    names = [name for name in list_available() if axis_of(resolve(name)) == RULE]
    for name in sorted(names, key=lambda name: (name != "multiple_choice", name != "exact_match", name)):
        metric = resolve(name)
        needs = [need for need in metric.needs if need != "generated_answer"]
        if metric.placement not in _CHEAP or metric.bounds[1] != 1 or metric.direction != "higher":
            continue
        if not all(any(has(sample, str(need)) for sample in first) for need in needs):
            continue
        extras: list[dict[str, Any]] = [{}]
        if "random" in declared_options(metric):
            extras = [{"random": "expected"}, {}]
        for rule in rules_of_metric(name):
            for extra in extras:
                yield metric, {RULE: rule, **extra}


def _tried(
    metric: Metric, options: dict[str, Any], samples: list[Sample], values: Vector, rows: NDArray[np.int64]
) -> FoundRule:
    """The rows, of those that are looked at, with the score that a rule gives."""
    scored = _scored(configured(metric, options), [samples[row] for row in rows.tolist()], samples)
    reproduced = np.zeros(len(samples), np.bool_)
    reproduced[rows] = np.isclose(scored.values, values[rows], rtol=0, atol=1e-9)
    return FoundRule(metric, options, reproduced)


def _scored(metric: Metric, samples: Sequence[Sample], fit: Sequence[Sample] | None = None) -> Rescored:
    """The scores of samples; `fit` are all samples of the run."""
    state = fitted(metric, fit if fit is not None else samples) if metric.corpus is not None else default_state(metric)
    scores = score_rows(metric, metric.open(state), Batch.of(samples))
    details = getattr(scores, "details", {})
    return Rescored(scores.values, [_read_of(details.get(row), each) for row, each in enumerate(samples)])


def _read_of(details: Mapping[str, Any] | None, sample: Sample) -> str | None:
    """What was read. A metric that does not say so reads the whole answer."""
    read = None if details is None else details.get("read")
    return (sample.generated_answer or "").strip() if read is None else str(read)


def _with_gold(answer: Sample, gold: Sample) -> Sample:
    """The sample with another gold answer. With its choices in another order it keeps its own, which has its letter."""
    if answer.choices != gold.choices and answer.choices and gold.choices:
        texts, others = (sorted(map(str, options_of(each).values())) for each in (answer, gold))
        if texts == others:
            return answer
    return msgspec.structs.replace(answer, **{name: getattr(gold, name) for name in _GOLD})


class Rescoring:
    """Scores the answers of one side with ingredients of the other."""

    def __init__(self, readers: tuple[Answers, Answers]) -> None:
        self.readers = readers
        self.further: list[Mapping[int, Sample]] = []  # answers of a model that was asked again, by their rows in A
        self._metrics: dict[tuple[int, int, int], Metric] = {}

    def __call__(self, rows: RowPairs, sides: Sides, corpus: RowPairs) -> Rescored:
        """The scores of samples, given by their rows in A and in B."""
        metric = self._metric(sides)
        fit = self._combined(corpus, *sides.corpus) if metric.corpus is not None else ()
        return _scored(metric, self._combined(rows, sides.answer, sides.gold), fit)

    def _combined(self, rows: RowPairs, answer: int, gold: int) -> list[Sample]:
        """The samples of one side with the gold answers of the other."""
        place = answer if answer < len(self.readers) else 0
        answering: Any = self.readers[place].samples if place == answer else self.further[answer - len(self.readers)]
        golden = self.readers[gold].samples
        if place == gold:
            return [answering[row] for row in rows[place]]
        pairs = zip(rows[place], rows[gold], strict=True)
        return [_with_gold(answering[i], golden[j]) if j >= 0 else answering[i] for i, j in pairs]

    def _metric(self, sides: Sides) -> Metric:
        key = sides.failure, sides.reading, sides.scoring
        if key not in self._metrics:
            scoring, reading = self.readers[sides.scoring], self.readers[sides.reading]
            base = scoring.base
            if base is None or reading.base is None:
                raise ConfigError(f"{scoring.name} has no rule")  # callers ask only for rules that are known
            options = {name: value for name, value in scoring.options.items() if name not in READING}
            axis = axis_of(base)
            for source, names in ((reading, (axis, *READING)), (self.readers[sides.failure], CONVENTIONS)):
                options |= {name: source.options[name] for name in names if name is not None and name in source.options}
            known = declared_options(base)
            dropped = {name: value for name, value in options.items() if name in known and name not in AVERAGES}
            self._metrics[key] = configured(base, dropped)
        return self._metrics[key]
