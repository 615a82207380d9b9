"""Yes or no: does the answer state the right one?

    yes_no = 1 if the rule reads the gold answer, else 0

The rule (`evaluation.rules.yes_no`) decides what an answer states. An answer of which nothing is read scores 0 and is
counted as `unread`. Parts, with `yes` as the positive class:

    precision = TP / (TP + FP)      recall = TP / (TP + FN)      f1 = 2 TP / (2 TP + FP + FN)
    yes_ratio = share of the answers that are read as yes

With `pairs`, questions belong together (MME asks two of each image):

    acc_plus = share of pairs whose questions are all right
    score    = sum over categories of 100 (accuracy + acc_plus)

References:
    Li et al. (2023). Evaluating Object Hallucination in Large Vision-Language Models. EMNLP. arXiv:2305.10355.
    Fu et al. (2023). MME: A Comprehensive Evaluation Benchmark for Multimodal Large Language Models. arXiv:2306.13394.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from types import MappingProxyType
from typing import Any

import msgspec

from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.metric import Aggregate, Bounds, BoundsWithParts, Need, Scorer
from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.rules import find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import BY_JUDGE, UNREAD, Estimate, Rows, Score, mean_estimate, unscored
from multimodal_eval.evaluation.averages import AVERAGE, MICRO, aggregates_of, average_of, bounds_with, in_groups
from multimodal_eval.evaluation.choices import gold_answers, key_of, stats_of_key
from multimodal_eval.evaluation.extraction import FALLBACK, JUDGE, ExtractingMetric, Extraction
from multimodal_eval.evaluation.rules._readings import Reading, read

__all__ = ["compute_yes_no"]

NONE = "none"
_GOLD = {"yes": "yes", "no": "no", "true": "yes", "false": "no", "1": "yes", "0": "no", "y": "yes", "n": "no"}
_KEY = 2  # statistics of a key


def gold_of(sample: Sample) -> str | None:
    """yes or no; None if the gold answer is neither, or if there are several."""
    answers = {_GOLD.get(answer.strip().strip(".").casefold()) for answer in gold_answers(sample)}
    return answers.pop() if len(answers) == 1 else None


class YesNoScorer:
    """The opened metric."""

    def __init__(self, metric: YesNo) -> None:
        self.metric, self.options = metric, dict(metric.options)
        self.rule, self.average = metric.rule, average_of(metric.options["average"], metric.name)

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """One score per sample."""
        extractions = self.metric.extractions(batch)
        return [self._score(sample, extraction) for sample, extraction in zip(batch, extractions, strict=True)]

    def _score(self, sample: Sample, extraction: Extraction | None) -> Score:
        gold = gold_of(sample)
        if gold is None:
            return unscored("degenerate", _not_gold(sample))
        if extraction is not None and extraction.fault is not None:
            return unscored("error", extraction.fault)
        reading: Reading = self.rule(sample.generated_answer or "")
        is_by_judge = extraction is not None and extraction.choice is not None
        if extraction is not None and extraction.choice is not None:
            reading = read(extraction.choice)
        value = float(reading.choice == gold)
        parts = self._parts(reading.choice, gold)
        warning = UNREAD if reading.choice is None else BY_JUDGE if is_by_judge else None
        details = {"read": reading.label, **({"by": JUDGE} if is_by_judge else {})}
        if self.options["pairs"] == NONE:
            return in_groups(Score(value, parts=parts, details=details, warning=warning), self.average, sample)
        category = str(sample.metadata.get(self.options["category"]))
        key = key_of(sample, self.options["pairs"])
        stats = (*stats_of_key(f"{category}\0{key}"), *stats_of_key(category))
        parts |= {"acc_plus": value, "score": value}
        return Score(value, stats=stats, parts=parts, details=details, warning=warning)

    def _parts(self, choice: str | None, gold: str) -> dict[str, float]:
        """Each part only in the samples over which it is computed."""
        says_yes, is_yes = choice == "yes", gold == "yes"
        parts = {"yes_ratio": float(is_yes if self.options["yes_ratio"] == "gold" else says_yes)}
        if choice is None and self.options["unread"] == "left_out":
            return parts
        if says_yes:
            parts["precision"] = float(is_yes)
        if is_yes:
            parts["recall"] = float(says_yes)
        if says_yes or is_yes:
            parts["f1"] = float(says_yes and is_yes)
        return parts


def _not_gold(sample: Sample) -> str:
    answers = gold_answers(sample)
    if len(answers) > 1:
        return f"there are several gold answers that differ: {shorten(list(answers))}"
    return f"the gold answer must be yes or no. Got {shorten(answers[0]) if answers else 'none'} instead."


def _gold_problem(sample: Sample) -> str | None:
    """A gold answer that is neither yes nor no."""
    return _not_gold(sample) if gold_answers(sample) and gold_of(sample) is None else None


def _f1(rows: Rows) -> Estimate:
    """2 TP / (2 TP + FP + FN); a value is 1 for a true positive, 0 for a false positive or a false negative."""
    numerator, denominator = 2 * rows.values, 1 + rows.values
    total = float(denominator.sum())
    value = float(numerator.sum()) / total
    return Estimate(value, len(rows) * (numerator - value * denominator) / total, is_mean=False)


def _acc_plus(rows: Rows) -> Estimate:
    """The share of pairs whose questions are all right."""
    from multimodal_eval.stats.estimates import all_right

    return mean_estimate(rows) if rows.stats is None else all_right(rows.values, rows.stats[:, :_KEY])


def _mme_score(rows: Rows) -> Estimate:
    """The sum over categories of 100 (accuracy + acc_plus). Categories are independent samples."""
    import numpy as np

    from multimodal_eval.stats.estimates import all_right

    values, stats = rows.values, rows.stats
    if stats is None:
        return mean_estimate(rows)
    _, category = np.unique(stats[:, _KEY:], axis=0, return_inverse=True)
    total, influence = 0.0, np.zeros(len(values))
    for code in range(int(category.max()) + 1):
        members = np.flatnonzero(category.reshape(-1) == code)
        accuracy = mean_estimate(Rows(values[members]))
        plus = all_right(values[members], stats[members, :_KEY])
        total += 100 * (accuracy.value + plus.value)
        count = len(members)
        correction = sqrt(count / (count - 1)) if count > 1 else 1.0  # as `plus` has its own
        influence[members] = 100 * (correction * accuracy.influence + plus.influence) * (len(values) / count)
    return Estimate(total, influence, corrected=False, is_mean=False)


_PART_BOUNDS: Mapping[str, Bounds] = dict.fromkeys(("yes_ratio", "precision", "recall", "f1", "acc_plus"), (0, 1))
_AGGREGATES: Mapping[str, Aggregate] = MappingProxyType({"f1": _f1, "acc_plus": _acc_plus, "score": _mme_score})


class YesNo(ExtractingMetric):
    """Whether the yes or no that a named rule reads out of the answer is right. Parts: precision, recall, F1, yes
    ratio; MME's acc+ and score.
    """

    name = "yes_no"
    version = "2"
    needs = ("generated_answer", Need("references", problem=_gold_problem))
    bounds: Bounds = BoundsWithParts((0, 1), _PART_BOUNDS)
    aggregate = _AGGREGATES
    placement = "process"
    options = Options(
        rule=Option(str, "mmeval@1", rules="yes_no", help="how yes and no are read"),
        unread=Option(
            str,
            "no",
            choices=("no", "left_out"),
            help="whether recall and F1 count an answer of which nothing is read as not yes, or leave it out",
            is_quiet=True,
        ),
        pairs=Option(
            str,
            NONE,
            help="which questions belong together, for acc_plus and score: those of a `group`, those with the same "
            "MMBench `index`, or those with the same value of a metadata column; `none` computes neither",
            is_quiet=True,
        ),
        category=Option(
            str, "category", help="the metadata column with the categories over which score sums", is_quiet=True
        ),
        yes_ratio=Option(
            str,
            "read",
            choices=("read", "gold"),
            help="whether yes_ratio is the share of yes among the answers, or among the gold answers, as in lmms-eval",
            is_quiet=True,
        ),
        average=AVERAGE,
        fallback=FALLBACK,
    )

    def settle(self) -> None:
        """Questions are grouped by `pairs` or by `average`, not by both."""
        average = average_of(self.options["average"], self.name)
        self.bounds = bounds_with(average, (0, 1), _PART_BOUNDS)
        if average.kind == MICRO:
            self.aggregate = _AGGREGATES
            return
        if self.options["pairs"] != NONE:
            raise ConfigError(f"`{self.name}.pairs` groups questions, too: set it to none, or average to micro")
        self.aggregate = {**_AGGREGATES, **aggregates_of(average)}

    @property
    def rule(self) -> Callable[[str], Reading]:
        """How yes and no are read."""
        function: Callable[[str], Reading] = find_rule("yes_no", self.options["rule"]).function
        return function

    def is_unread(self, sample: Sample) -> bool:
        """Whether the rule finds neither yes nor no in the answer."""
        answer = sample.generated_answer or ""
        return bool(answer.strip()) and gold_of(sample) is not None and self.rule(answer).choice is None

    def asked_about(self, sample: Sample) -> Sample:
        """Without choices: the answer says yes or no."""
        return msgspec.structs.replace(sample, choices=None)

    def open(self, state: Any) -> Scorer:
        """Find the rule."""
        return YesNoScorer(self)


compute_yes_no = YesNo()
register(compute_yes_no)
