"""Answers scored by the metric of a recipe, and figures made of the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.benchmarks.recipes import Recipe
from multimodal_eval.core.corpus import fitted
from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.metric import Metric, configured
from multimodal_eval.core.score import UNREAD, Rows, Score
from multimodal_eval.core.scoring import estimate_of
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.run.crosswalk import axis_of, rules_of_metric
from multimodal_eval.run.reproduction.answers import Row, values_of
from multimodal_eval.run.reproduction.ledger import OVERALL, Counts, Entry, Published, Status

__all__ = ["Scored", "Scorer", "has_counts", "has_value", "status_of"]


EXTRACTED = "/extracted"  # the end of the names of rules that read extractions


@dataclass(frozen=True)
class Scored:
    """Rows with their scores. A row without a value is unscored."""

    metric: Metric
    rows: Sequence[Row]
    scores: Sequence[Score]
    part: str = ""  # of the metric: the published one
    places: dict[str, list[int]] = field(default_factory=dict)  # figure -> places of its rows

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """NaN where a row is unscored."""
        return np.array([np.nan if score.value is None else score.value for score in self.scores], dtype=np.float64)

    def of(self, figure: str) -> list[int]:
        """The places of the rows that a figure is about."""
        if figure not in self.places:
            column, _, value = figure.partition("=")
            everyone = figure == OVERALL
            places = [
                n for n, row in enumerate(self.rows) if everyone or value.strip() in values_of(row, column.strip())
            ]
            self.places[figure] = places
        return self.places[figure]

    def with_verdicts(self) -> Scored:
        """The verdicts of the authors instead of the values. Without a verdict an answer is wrong."""
        scores = [
            msgspec.structs.replace(score, value=row.verdict or 0.0, status="ok", reason=None)
            for row, score in zip(self.rows, self.scores, strict=True)
        ]
        return Scored(self.metric, self.rows, scores, self.part)

    def where(self, keep: Sequence[bool]) -> Scored:
        """Some of the rows."""
        kept = [(row, score) for row, score, is_kept in zip(self.rows, self.scores, keep, strict=True) if is_kept]
        return Scored(self.metric, [row for row, _ in kept], [score for _, score in kept], self.part)

    def counts(self, places: Sequence[int], scale: float) -> Counts | None:
        """The score of some rows in a unit; None if none of them is scored."""
        scored = [self.scores[place] for place in places if self.scores[place].value is not None]
        given = [score.value if not self.part else (score.parts or {}).get(self.part) for score in scored]
        scored = [score for score, value in zip(scored, given, strict=True) if value is not None]
        if not scored:
            return None
        stats = [score.stats for score in scored]
        values = np.array([value for value in given if value is not None], dtype=np.float64)
        rows = Rows(values, None if None in stats else np.array(stats, dtype=np.float64))
        value = estimate_of(self.metric, rows, self.part).value
        return Counts(None if self.part else _whole(float(values.sum())), len(scored), scale * value)


def _whole(number: float) -> float:
    return round(number) if abs(number - round(number)) < 1e-9 else number


class Scorer:
    """Scores the answers of an entry in the way in which the published figures were made."""

    def __init__(self, entry: Entry, recipe: Recipe, where: str) -> None:
        task = recipe.task
        self.recipe = recipe
        self.extraction = task.reproduction.extraction
        leading = task.headline or (task.metrics or [""])[0]
        if not leading or leading in task.tasks:
            raise ConfigError(f"{where}: {recipe.file}: a recipe whose figures are reproduced needs `metrics`")
        self.name = task.variants.get(leading, leading)
        self.options: dict[str, Any] = dict(task.options.get(leading, {}))
        self.axis = axis_of(resolve(self.name))
        self.part = (task.figure or "").partition(".")[2]
        self.usual_rule = task.reproduction.rule or task.rules.get(leading) or ""
        self.rule = entry.rule or self.usual_rule
        if self.rule and self.axis is None:
            raise ConfigError(f"{where}: `rule`: {self.name} has no rules. Leave the key out")
        if self.extraction == "always" and f"{self.rule}{EXTRACTED}" in self.rules:
            self.rule += EXTRACTED
        if entry.rule and self.rule not in self.rules:
            raise ConfigError(
                f"{where}: `rule`: {self.name} has no rule {entry.rule!r}.{did_you_mean(entry.rule, self.rules)}"
            )

    @property
    def rules(self) -> list[str]:
        """All rules of the metric; those of extractions instead of the same for answers, if these are not read."""
        rules = rules_of_metric(self.name) if self.axis is not None else []
        return [rule for rule in rules if self.extraction != "always" or f"{rule}{EXTRACTED}" not in rules]

    def metric(self, rule: str, options: Mapping[str, Any] | None = None) -> Metric:
        """The metric with a rule, and with further options."""
        chosen = {**self.options, **({self.axis: rule} if rule and self.axis else {}), **(options or {})}
        return configured(resolve(self.name), chosen)

    def scored(
        self,
        rows: Sequence[Row],
        rule: str | None = None,
        golds: Sequence[str | list[str] | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Scored:
        """The scores of rows, by default under the rule of the published figures."""
        rule = self.rule if rule is None else rule
        metric = self.metric(rule, options)
        reads_extractions = self.extraction == "always"
        answers = [row.extraction if reads_extractions else row.response for row in rows]
        chosen = golds if golds is not None else [None] * len(rows)
        samples = [row.sample(text, gold) for row, text, gold in zip(rows, answers, chosen, strict=True)]
        if not samples:
            return Scored(metric, rows, [], self.part)
        scores = list(metric.open(fitted(metric, samples)).score(samples))
        if reads_extractions:  # without an extraction there is nothing to read
            scores = [
                msgspec.structs.replace(score, value=0.0, status="ok", reason=None) if row.extraction is None else score
                for row, score in zip(rows, scores, strict=True)
            ]
        if self.extraction == "unread":
            self._read_extractions(metric, rows, samples, scores, golds or [row.gold for row in rows])
        return Scored(metric, rows, scores, self.part)

    def _read_extractions(
        self, metric: Metric, rows: Sequence[Row], samples: list[Any], scores: list[Score], golds: Sequence[object]
    ) -> None:
        """Where the rule reads nothing, the extraction counts. It is right if it equals the gold answer."""
        unread = [n for n, score in enumerate(scores) if score.warning == UNREAD and rows[n].extraction is not None]
        again = [
            msgspec.structs.replace(samples[n], generated_answer=text if _plain(text) == _plain(golds[n]) else "")
            for n in unread
            if (text := rows[n].extraction) is not None
        ]
        for n, score in zip(unread, metric.open(fitted(metric, again)).score(again) if again else (), strict=True):
            scores[n] = score


def _plain(text: object) -> str:
    return str(text).strip().removeprefix("(").removesuffix(")")


# Whether a score is the published one.

_ROUND = 1e-9  # of computing


def status_of(published: Published, counts: Counts | None) -> Status:
    """Counts decide. A value alone must be what the score is printed as, or differ by less than its last digit."""
    if counts is None or (published.correct is not None and not has_counts(published, counts)):
        return "different"
    if published.value is None:
        return "equal"
    digit = 10.0**-published.printed_digits
    apart = abs(counts.value - published.value)
    if apart <= digit / 2 + _ROUND:
        return "equal"
    if apart < digit:
        return "within rounding" if published.correct is None else "equal"
    return "different"


def has_counts(published: Published, counts: Counts) -> bool:
    """Whether the counts are the published ones."""
    correct = counts.correct if counts.correct is not None else float("nan")
    return (
        published.correct is not None and abs(correct - published.correct) < _ROUND and counts.total == published.total
    )


def has_value(published: Published, value: float) -> bool:
    """Whether a value is printed as the published one."""
    half = 10.0**-published.printed_digits / 2
    return published.value is not None and abs(value - published.value) <= half + _ROUND
