"""CLAIR: how likely does a caption describe the same image as the references?

The judge sees the caption and the references, without the image, and gives a number from 0 to 100 with its reason. The
value is that number divided by 100. The wording of the prompt is our own.

Reference:
    Chan et al. (2023). CLAIR: Evaluating Image Captions with Large Language Models. EMNLP. arXiv:2310.12971.
"""

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

__all__ = ["Clair"]

_TOP = 100


class Clair(OneAnswer):
    """A judge that says how likely a caption describes the image of the references."""

    default_question = (
        "One image was described several times. How likely does the answer describe the same image as the references?"
    )

    def __init__(self, config: JudgeConfig) -> None:
        super().__init__(config)
        self.needs = ("generated_answer", "references")

    @property
    def instruction(self) -> str:
        """The question and the scale."""
        number = f"Reply with a whole number from 0 to {_TOP}: 0 is certainly another image, {_TOP} certainly the same."
        return f"You judge the caption of an image. {self.question}\n{number}"

    @property
    def readers(self) -> Mapping[str, Reader]:
        """The score."""
        return {"score": partial(number_in, low=0, high=_TOP)}

    @property
    def fields(self) -> Mapping[str, JsonObject]:
        """The score."""
        return {"score": {"type": "integer", "minimum": 0, "maximum": _TOP}}

    @property
    def properties(self) -> JsonObject:
        """The score and its reason, which comes first with `explain`."""
        return super().properties if self.config.explain else {**self.fields, "reason": {"type": "string"}}

    def values(self, field: str) -> Mapping[str, float]:
        """The whole numbers from 0 to 100."""
        return on_scale(0, _TOP)

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """The number, divided by 100."""
        (reading,) = readings
        return Score(self.value_of(reading, "score") / _TOP, warning=self.warning_of(reading))
