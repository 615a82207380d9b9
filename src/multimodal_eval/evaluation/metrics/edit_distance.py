"""Normalised edit distance: how many edits turn the answer into the reference, relative to the longer of both?

    edit_distance(c) = min_j d(c, r_j) / max(|c|, |r_j|)          0 for two empty texts

The value of a corpus is the sum of the edits divided by the sum of the lengths. With `average: macro(page)`, that is
the value of a page, and the score is the mean over pages, as in OmniDocBench.

Reference:
    Ouyang et al. (2025). OmniDocBench: Benchmarking Diverse PDF Document Parsing with Comprehensive Annotations. CVPR.
    arXiv:2412.07626.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from multimodal_eval._native import edit_distance as edits_between
from multimodal_eval.core.metric import Aggregate, Bounds, Metric, Scorer, require_references
from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.rules import find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.averages import (
    AVERAGE,
    Average,
    aggregates_of,
    average_of,
    bounds_with,
    in_groups,
    weighted_mean,
)
from multimodal_eval.evaluation.rules.answer_text import TextRule

__all__ = ["compute_edit_distance", "edit_distance"]


def edit_distance(candidate: str, references: Sequence[str], *, rule: str = "none@1") -> float:
    """The normalised edit distance of one text to the nearest reference."""
    require_references("edit_distance", references)
    edits, length = _nearest(candidate, references, find_rule("answer_text", rule).function)
    return edits / length if length else 0.0


def _nearest(candidate: str, references: Sequence[str], normalised: TextRule) -> tuple[int, int]:
    """The edits and the longer length, for the reference with the smallest quotient. A blank answer is an empty one."""
    said = normalised(candidate) if candidate.strip() else ""
    pairs = [(edits_between(said, gold), max(len(said), len(gold))) for gold in map(normalised, references)]
    return min(pairs, key=lambda pair: pair[0] / max(pair[1], 1))


class _EditDistanceScorer:
    def __init__(self, rule: TextRule, average: Average) -> None:
        self.rule, self.average = rule, average

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        return [self._score(sample) for sample in batch]

    def _score(self, sample: Sample) -> Score:
        edits, length = _nearest(sample.generated_answer or "", sample.reference_texts, self.rule)
        score = Score(edits / length if length else 0.0, stats=(float(length),), details={"edits": edits})
        return in_groups(score, self.average, sample)


class EditDistance(Metric):
    """Edits between answer and reference, relative to the longer of both; lower is better."""

    name = "edit_distance"
    version = "1"
    needs = ("generated_answer", "references")
    bounds: Bounds = (0, 1)
    direction = "lower"
    placement = "process"
    aggregate: Aggregate | Mapping[str, Aggregate] = staticmethod(weighted_mean)
    options = Options(
        rule=Option(str, "none@1", rules="answer_text", help="how both texts are normalised before they are compared"),
        average=AVERAGE,
    )

    def settle(self) -> None:
        """By default, the edits are summed over all samples."""
        average = average_of(self.options["average"], self.name)
        self.aggregate = weighted_mean if average.kind == "micro" else aggregates_of(average)
        self.bounds = bounds_with(average, (0, 1))

    def open(self, state: Any) -> Scorer:
        """Find the rule."""
        rule: TextRule = find_rule("answer_text", self.options["rule"]).function
        return _EditDistanceScorer(rule, average_of(self.options["average"], self.name))


compute_edit_distance = EditDistance()
register(compute_edit_distance)
