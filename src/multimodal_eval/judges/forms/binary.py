"""Yes or no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.judges.form import Reading
from multimodal_eval.judges.forms.one_answer import OneAnswer
from multimodal_eval.judges.forms.replies import Reader, yes_or_no

__all__ = ["Binary"]


class Binary(OneAnswer):
    """A judge that says yes (1) or no (0)."""

    default_question = "Is the answer correct?"

    @property
    def instruction(self) -> str:
        """The question."""
        return f"You judge the answer of a model. {self.question}\nReply with yes or no."

    @property
    def readers(self) -> Mapping[str, Reader]:
        """The verdict."""
        return {"verdict": yes_or_no}

    @property
    def fields(self) -> Mapping[str, JsonObject]:
        """The verdict."""
        return {"verdict": {"type": "string", "enum": ["yes", "no"]}}

    def values(self, field: str) -> Mapping[str, float]:
        """Yes and no."""
        return {"yes": 1.0, "no": 0.0}

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """1 or 0, or the probability of yes."""
        (reading,) = readings
        return Score(self.value_of(reading, "verdict"), warning=self.warning_of(reading))
