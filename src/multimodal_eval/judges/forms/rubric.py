"""A number for each of several criteria, in one reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import fsum

from multimodal_eval.core.judge_config import Criterion, JudgeConfig
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.judges.form import Reading
from multimodal_eval.judges.forms.one_answer import OneAnswer, on_scale
from multimodal_eval.judges.forms.replies import Reader, number_in

__all__ = ["Rubric"]


class Rubric(OneAnswer):
    """A judge that gives a number for every criterion.

    The value is the weighted mean of the criteria, each scaled to [0, 1]. The parts are the criteria on their scales.
    """

    default_question = "How good is the answer, by each of these criteria?"

    def __init__(self, config: JudgeConfig) -> None:
        super().__init__(config)
        self.criteria = {criterion.name: criterion for criterion in config.criteria}
        self.part_bounds = {name: self.scale_of(criterion) for name, criterion in self.criteria.items()}

    def scale_of(self, criterion: Criterion) -> tuple[int, int]:
        """The scale of a criterion."""
        return criterion.scale or self.config.scale

    @property
    def instruction(self) -> str:
        """The question, and the criteria with their scales."""
        lines = [f"You judge the answer of a model. {self.question}"]
        for criterion in self.criteria.values():
            low, high = self.scale_of(criterion)
            scale = f"A whole number from {low} to {high}, where {high} is the best."
            lines.append(f"- {criterion.name}: {criterion.question} {scale}")
        return "\n".join(lines)

    @property
    def readers(self) -> Mapping[str, Reader]:
        """A number for each criterion."""
        scales = {name: self.scale_of(criterion) for name, criterion in self.criteria.items()}
        return {name: partial(number_in, low=low, high=high) for name, (low, high) in scales.items()}

    @property
    def fields(self) -> Mapping[str, JsonObject]:
        """A number for each criterion."""
        scales = {name: self.scale_of(criterion) for name, criterion in self.criteria.items()}
        return {name: {"type": "integer", "minimum": low, "maximum": high} for name, (low, high) in scales.items()}

    def values(self, field: str) -> Mapping[str, float]:
        """The whole numbers of the criterion's scale."""
        return on_scale(*self.scale_of(self.criteria[field]))

    @property
    def lowest_parts(self) -> dict[str, float]:
        """The lowest number of each criterion."""
        return {name: float(self.scale_of(criterion)[0]) for name, criterion in self.criteria.items()}

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """The weighted mean, and the criteria."""
        (reading,) = readings
        parts = {name: self.value_of(reading, name) for name in self.criteria}
        shares: list[float] = []
        for name, criterion in self.criteria.items():
            low, high = self.scale_of(criterion)
            shares.append(criterion.weight * (parts[name] - low) / (high - low))
        value = fsum(shares) / fsum(criterion.weight for criterion in self.criteria.values())
        return Score(value, parts=parts, warning=self.warning_of(reading))
