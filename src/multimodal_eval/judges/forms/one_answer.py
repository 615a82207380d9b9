"""What the forms share that ask about one answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.metric import Aggregate, Bounds
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.fence import fenced
from multimodal_eval.judges.form import Reading
from multimodal_eval.judges.forms.probabilities import expected_value
from multimodal_eval.judges.forms.prompt_texts import drafts_of, quotable
from multimodal_eval.judges.forms.replies import Reader, Said, verdict_in
from multimodal_eval.judges.forms.schemas import explained, object_schema

__all__ = ["NO_PROBABILITIES", "OneAnswer", "on_scale"]

NO_PROBABILITIES = "no_probabilities"  # the warning of a sample whose expected score is the number itself


class OneAnswer:
    """A judge that is asked about one answer. A subclass says what is asked, and what its fields are."""

    orders: tuple[int, ...] = (0,)
    version = "1"
    bounds: Bounds = (0.0, 1.0)
    part_bounds: Mapping[str, Bounds] = MappingProxyType({})
    part_aggregates: Mapping[str, Aggregate] = MappingProxyType({})
    default_question = ""

    def __init__(self, config: JudgeConfig) -> None:
        self.config = config
        self.needs: tuple[str, ...] = ("generated_answer", *(["references"] if config.require_references else []))

    @property
    def question(self) -> str:
        """What the judge decides."""
        return self.config.question or self.default_question

    @property
    def instruction(self) -> str:
        """The beginning of the prompt."""
        raise NotImplementedError

    @property
    def readers(self) -> Mapping[str, Reader]:
        """How each field of a verdict is read."""
        raise NotImplementedError

    @property
    def fields(self) -> Mapping[str, JsonObject]:
        """The JSON Schema of each field of a verdict."""
        raise NotImplementedError

    def values(self, field: str) -> Mapping[str, float]:
        """What the judge may write in a field -> its value."""
        raise NotImplementedError

    @property
    def properties(self) -> JsonObject:
        """The fields of a reply, in their order."""
        return explained(self.config, dict(self.fields))

    def drafts(self, sample: Sample, order: int) -> tuple[Draft, ...]:
        """The instruction, what is shown, and the answer."""
        example = ", ".join(f'"{name}": ' + ('"…"' if name == "reason" else "…") for name in self.properties)
        ending = f"Reply with JSON only: {{{example}}}"
        texts = [fenced("answer", sample.generated_answer or "")]
        return drafts_of(self.config, sample, self.instruction, texts, ending)

    def schema(self, sample: Sample) -> JsonObject | None:
        """An object with the fields."""
        return object_schema(self.properties)

    def read(self, sample: Sample, answer: Answer, order: int) -> Reading:
        """The fields of a reply; with `expected`, their means by probability as well, if the endpoint tells them."""
        said = verdict_in(answer, self.readers, quotable(self.config, sample))
        if not self.config.expected:
            return said.fields
        means = {field: self._expected(answer, said, field) for field in self.fields}
        known = {field: mean for field, mean in means.items() if mean is not None}
        if len(known) < len(means):  # all or none: a mixture would mean nothing
            return {**said.fields, "by": "number"}
        return {**said.fields, "expected": known, "by": "probabilities"}

    def _expected(self, answer: Answer, said: Said, field: str) -> float | None:
        verdict = said.fields[field]
        written = verdict if isinstance(verdict, str) else f"{verdict:.0f}"
        return expected_value(answer, said.places.get(field), written, self.values(field))

    def known(self, sample: Sample) -> Score | None:
        """The lowest score for a blank answer, without asking."""
        if (sample.generated_answer or "").strip():
            return None
        return Score(self.bounds[0], parts=self.lowest_parts or None)

    @property
    def lowest_parts(self) -> dict[str, float]:
        """The lowest values of the parts."""
        return {}

    def value_of(self, reading: Reading, field: str) -> float:
        """The value of a field: its mean by probability, or what the judge wrote."""
        if "expected" in reading:
            mean: float = reading["expected"][field]
            return mean
        verdict = reading[field]
        return self.values(field)[verdict] if isinstance(verdict, str) else verdict

    def warning_of(self, reading: Reading) -> str | None:
        """The warning of a score by this reading."""
        return NO_PROBABILITIES if reading.get("by") == "number" else None


def on_scale(low: int, high: int) -> dict[str, float]:
    """What a judge may write for each value of a scale."""
    return {str(value): float(value) for value in range(low, high + 1)}
