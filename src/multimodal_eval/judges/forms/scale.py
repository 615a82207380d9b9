"""One number on a scale."""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.metric import Bounds
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Rows, Score, mean_estimate
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.fence import fenced
from multimodal_eval.judges.form import Reading
from multimodal_eval.judges.forms.prompt_texts import drafts_of
from multimodal_eval.judges.forms.replies import number_in, object_in

__all__ = ["Scale"]


class Scale:
    """A judge that gives an answer a number."""

    orders: tuple[int, ...] = (0,)
    version = "1"

    def __init__(self, config: JudgeConfig) -> None:
        self.config = config
        self.bounds: Bounds = (float(config.scale[0]), float(config.scale[1]))
        self.needs: tuple[str, ...] = ("generated_answer", *(["references"] if config.require_references else []))

    def drafts(self, sample: Sample, order: int) -> tuple[Draft, ...]:
        """The instruction, what is shown, and the answer."""
        low, high = self.config.scale
        question = self.config.question or "How good is the answer?"
        instruction = f"You judge the answer of a model. {question}\nReply with a whole number from {low} to {high}."
        reasons = '"reason": "…", ' if self.config.explain else ""
        ending = f'Reply with JSON only: {{{reasons}"score": …}}'
        return drafts_of(self.config, sample, instruction, [fenced("answer", sample.generated_answer or "")], ending)

    def schema(self, sample: Sample) -> JsonObject | None:
        """An object with the score."""
        low, high = self.config.scale
        properties: JsonObject = {"reason": {"type": "string"}} if self.config.explain else {}
        properties["score"] = {"type": "integer", "minimum": low, "maximum": high}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def read(self, sample: Sample, answer: Answer, order: int) -> Reading:
        """The score of a reply."""
        low, high = self.config.scale
        found = object_in(answer, ["score"])
        return {**found, "score": number_in(found["score"], low, high)}

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """The score."""
        (reading,) = readings
        return Score(reading["score"])

    def aggregate_part(self, part: str, rows: Rows) -> Estimate:
        """The mean."""
        return mean_estimate(rows)
