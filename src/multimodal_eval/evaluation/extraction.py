"""Metrics that read an answer by a rule, and may ask a judge what it says if the rule finds nothing.

With the option `fallback: judge`, the judge is asked which of the choices the answer states. It never sees the right
one, and is asked only about answers that the rule cannot read. A choice that it finds is scored as if the rule had read
it, and the sample is counted as `by_judge`; if it finds none, the answer stays unread. Of several verdicts, that of the
majority counts; without one, the answer stays unread. If a verdict cannot be read, the sample is unscored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Self

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.metric import Metric, configured
from multimodal_eval.core.options import Option
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.asking import AskingMetric, verdicts_on

if TYPE_CHECKING:
    from multimodal_eval.evaluation.judge_metric import JudgeMetric
    from multimodal_eval.judges.form import Question, Verdict

__all__ = ["FALLBACK", "JUDGE", "ExtractingMetric", "Extraction", "with_extraction"]

JUDGE = "judge"
FALLBACK = Option(
    str,
    "none",
    choices=("none", JUDGE),
    help="who reads an answer in which the rule finds nothing: nobody, or the judge of the run (--judge)",
    is_quiet=True,
)


class Extraction(msgspec.Struct, frozen=True):
    """What the judge finds in an answer: a choice, none, or a reason why its verdict is not known."""

    choice: str | None = None
    fault: str | None = None


class ExtractingMetric(AskingMetric):
    """A metric with a rule and the option `fallback`."""

    judge: JudgeConfig | None = None
    deciding: tuple[str, ...] = ("rule",)  # options that decide which answers are unread

    def is_unread(self, sample: Sample) -> bool:
        """Whether the rule finds nothing in an answer that can be scored and is not blank."""
        raise NotImplementedError

    def asked_about(self, sample: Sample) -> Sample:
        """The sample as the judge is asked about it."""
        return sample

    @property
    def asks(self) -> bool:
        """Whether a judge reads what the rule cannot read. Raises ConfigError if no judge is named."""
        if self.options["fallback"] != JUDGE:
            return False
        if self.judge is None:
            raise ConfigError(f"`fallback: judge` of {self.name} needs a judge. Name one with --judge PROVIDER:NAME")
        return True

    @cached_property
    def _judging(self) -> JudgeMetric:
        from multimodal_eval.evaluation.judge_metric import JudgeMetric

        return JudgeMetric(self.config)

    def judged_by(self, judge: JudgeConfig) -> Self:
        """A copy that asks a judge."""
        from multimodal_eval.judges.forms.by_name import form_of

        metric = copy(self)
        metric.judge = metric.config = judge
        metric.form = form_of(judge)
        return configured(metric, {"fallback": JUDGE})

    def questions(self, sample: Sample) -> list[Question]:
        """What the judge is asked: nothing about an answer that the rule can read."""
        return self._judging.questions(self.asked_about(sample)) if self.is_unread(sample) else []

    @property
    def asking(self) -> dict[str, object]:
        """The settings of the judge; and the rule, which decides which answers it is asked about."""
        settings = super().settings(None)
        return {**self._judging.asking, **{name: settings[name] for name in self.deciding if name in settings}}

    def settings(self, state: object) -> Mapping[str, object]:
        """The settings of the metric, and those of the judge."""
        settings = super().settings(state)
        if self.options["fallback"] != JUDGE or self.judge is None:
            return settings
        judge = {f"judge_{name}": value for name, value in self._judging.asking.items() if name != "form"}
        return {**settings, **judge}

    def extractions(self, batch: Sequence[Sample]) -> list[Extraction | None]:
        """What the judge finds in every answer; None if it is not asked."""
        if not self.asks:
            return [None] * len(batch)
        return [
            self._extraction(sample, verdicts) if self.is_unread(sample) else None
            for sample, verdicts in zip(batch, verdicts_on(self, batch), strict=True)
        ]

    def _extraction(self, sample: Sample, verdicts: Sequence[Verdict]) -> Extraction:
        from multimodal_eval.judges.form import UnreadableVerdictError

        choices: Counter[str | None] = Counter()
        for verdict in verdicts:
            if verdict.outcome.error is not None:
                return Extraction(fault=f"the judge failed: {verdict.outcome.error}")
            try:
                reading = self.form.read(self.asked_about(sample), verdict.outcome.answer, verdict.place.order)
            except UnreadableVerdictError as fault:
                return Extraction(fault=f"unreadable verdict: {fault}")
            choices[reading["choice"]] += 1
        if not choices:
            return Extraction(fault="the judge was not asked")
        ((choice, count),) = choices.most_common(1)
        return Extraction(choice if 2 * count > choices.total() else None)


def with_extraction(metric: Metric, judge: JudgeConfig) -> Metric:
    """The metric that asks a judge about answers which its rule cannot read."""
    if not isinstance(metric, ExtractingMetric):
        raise ConfigError(f"the judge of {metric.name} has the form extract, but {metric.name} reads no choices")
    if not judge.models:
        raise ConfigError(f"the judge of {metric.name} has no model. Name one with --judge PROVIDER:NAME")
    return metric.judged_by(judge)
