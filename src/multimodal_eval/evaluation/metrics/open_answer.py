"""Open answer: is the answer right, by the rule of its benchmark?

    open_answer = what the rule gives: 1 if the answer is right, else 0; some rules give values between them

The rule (`evaluation.rules.open_answer`) knows the gold answers, the options of a multiple-choice question, and the
columns of the data, such as the type of the answer. So it scores benchmarks that have questions with and without
options. An answer of which nothing is read scores 0 and is counted as `unread`. If the origin of the rule draws a
letter at random, the sample is unscored, or scores the expected value of the draw; a rule with a seed draws the same
letters as its origin.

References:
    Yue et al. (2024). MMMU. CVPR. arXiv:2311.16502.
    Lu et al. (2024). MathVista. ICLR. arXiv:2310.02255.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from multimodal_eval.core.metric import Bounds, Scorer
from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.rules import find_rule, rules_of
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import BY_JUDGE, UNREAD, Score, unscored
from multimodal_eval.evaluation.averages import AVERAGE, aggregates_of, average_of, bounds_with, in_groups
from multimodal_eval.evaluation.choices import DRAW, DRAWN, RANDOM, Draws, GoldError, draws_of, gold_letters, value_of
from multimodal_eval.evaluation.extraction import FALLBACK, JUDGE, ExtractingMetric, Extraction
from multimodal_eval.evaluation.rules._readings import Reading
from multimodal_eval.evaluation.rules.open_answer import OpenRule, question_of

__all__ = ["compute_open_answer"]


class OpenAnswerScorer:
    """The opened metric."""

    one_by_one = True

    def __init__(self, metric: OpenAnswer, draws: Draws) -> None:
        self.metric = metric
        self.options = options = dict(metric.options)
        self.rule, self.extracted = metric.rule, metric.rule_of_extractions
        self.drawn, self.average = draws.letters(options["rule"]), average_of(options["average"], "open_answer")

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """One score per sample."""
        extractions = self.metric.extractions(batch)
        return [self._score(*each) for each in zip(batch, extractions, strict=True)]

    def _score(self, sample: Sample, extraction: Extraction | None) -> Score:
        if extraction is not None and extraction.fault is not None:
            return unscored("error", extraction.fault)
        if extraction is None or extraction.choice is None:
            return self._by_rule(sample, self.rule, sample.generated_answer or "")
        score = self._by_rule(sample, self.extracted, extraction.choice)
        if score.value is None:
            return score
        return msgspec.structs.replace(score, details={**(score.details or {}), "by": JUDGE}, warning=BY_JUDGE)

    def _by_rule(self, sample: Sample, rule: OpenRule, answer: str) -> Score:
        question = question_of(sample)
        try:
            verdict = rule(answer, question)
            if not isinstance(verdict, Reading):
                warning = UNREAD if verdict.read is None and answer.strip() else None
                score = Score(verdict.value, details={"read": verdict.read or "unread"}, warning=warning)
                return in_groups(score, self.average, sample)
            golds = gold_letters(sample, question.options)
        except GoldError as error:
            return unscored("degenerate", str(error))
        is_by_draw = verdict.is_drawn and sample.id in self.drawn
        reading = self.drawn[sample.id] if is_by_draw else verdict
        if reading.is_drawn and self.options["random"] == "unscored":
            return unscored("degenerate", DRAWN)
        is_unread = not reading.is_drawn and reading.choice not in question.options
        details = {"read": reading.label, **({"by": DRAW} if is_by_draw else {})}
        score = Score(value_of(reading, golds), details=details, warning=UNREAD if is_unread else None)
        return in_groups(score, self.average, sample)


class OpenAnswer(ExtractingMetric):
    """Whether an answer is right by the rule of its benchmark: a number, a word, a list or an option."""

    name = "open_answer"
    version = "1"
    needs = ("generated_answer", "references")
    bounds: Bounds = (0, 1)
    placement = "process"
    options = Options(
        rule=Option(str, "mmeval@1", rules="open_answer", help="how the answer is read and compared"),
        random=RANDOM,
        average=AVERAGE,
        fallback=FALLBACK,
    )

    def settle(self) -> None:
        """A rule that draws letters with a seed needs all answers before it scores the first."""
        self.corpus = draws_of("open_answer", self.options["rule"])
        average = average_of(self.options["average"], self.name)
        self.aggregate, self.bounds = aggregates_of(average), bounds_with(average, (0, 1))

    @property
    def rule(self) -> OpenRule:
        """How an answer is read."""
        function: OpenRule = find_rule("open_answer", self.options["rule"]).function
        return function

    @property
    def rule_of_extractions(self) -> OpenRule:
        """How the value is read that a judge has extracted: by the rule `…/extracted`, if the origin has one."""
        name = f"{self.options['rule']}/extracted"
        if name not in rules_of("open_answer"):
            return self.rule
        function: OpenRule = find_rule("open_answer", name).function
        return function

    def is_unread(self, sample: Sample) -> bool:
        """Whether the rule finds nothing in the answer; its origin may draw a letter."""
        answer = sample.generated_answer or ""
        if not answer.strip():
            return False
        question = question_of(sample)
        try:
            verdict = self.rule(answer, question)
        except GoldError:
            return False
        return verdict.choice not in question.options if isinstance(verdict, Reading) else verdict.read is None

    def asked_about(self, sample: Sample) -> Sample:
        """With empty choices if there are none: the answer is a value of any kind."""
        return sample if sample.choices else msgspec.structs.replace(sample, choices={})

    def open(self, state: Draws | None) -> Scorer:
        """Find the rule, and draw the letters that its origin draws."""
        return OpenAnswerScorer(self, state or Draws())


compute_open_answer = OpenAnswer()
register(compute_open_answer)
