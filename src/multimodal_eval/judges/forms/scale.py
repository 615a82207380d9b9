"""One number on a scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.judges.form import Reading
from multimodal_eval.judges.forms.one_answer import OneAnswer, on_scale
from multimodal_eval.judges.forms.replies import Reader, number_in

__all__ = ["Scale"]


class Scale(OneAnswer):
    """A judge that gives an answer a number."""

    default_question = "How good is the answer?"

    def __init__(self, config: JudgeConfig) -> None:
        super().__init__(config)
        self.low, self.high = config.scale
        self.bounds = (float(self.low), float(self.high))

    @property
    def instruction(self) -> str:
        """The question and the scale."""
        number = f"Reply with a whole number from {self.low} to {self.high}, where {self.high} is the best."
        return f"You judge the answer of a model. {self.question}\n{number}"

    @property
    def readers(self) -> Mapping[str, Reader]:
        """The score."""
        return {"score": partial(number_in, low=self.low, high=self.high)}

    @property
    def fields(self) -> Mapping[str, JsonObject]:
        """The score."""
        return {"score": {"type": "integer", "minimum": self.low, "maximum": self.high}}

    def values(self, field: str) -> Mapping[str, float]:
        """The whole numbers of the scale."""
        return on_scale(self.low, self.high)

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """The number, or its mean by probability."""
        (reading,) = readings
        return Score(self.value_of(reading, "score"), warning=self.warning_of(reading))
