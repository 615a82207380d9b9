"""The forms that ask about one answer: a scale, yes or no, a rubric, CLAIR, and the choice that an answer states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import fsum
from types import MappingProxyType

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.judge_config import Criterion, JudgeConfig
from multimodal_eval.core.metric import Aggregate, Bounds
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.generate.template import letters
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.form import Reading, UnreadableVerdictError
from multimodal_eval.judges.forms.replies import (
    Reader,
    Said,
    decimal_in,
    expected_decimal,
    expected_value,
    explained,
    number_in,
    object_in,
    object_schema,
    verdict_in,
    yes_or_no,
)
from multimodal_eval.judges.prompt_texts import drafts_of, fenced, quotable

__all__ = [
    "NONE",
    "NO_PROBABILITIES",
    "Binary",
    "Clair",
    "Extract",
    "Fleur",
    "OneAnswer",
    "Rubric",
    "Scale",
    "choices_of",
    "on_scale",
]


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
        self.question = config.question or self.default_question  # what the judge decides
        self.needs: tuple[str, ...] = ("generated_answer", *(["references"] if config.require_references else []))

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


# Yes or no.


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


# One number on a scale.


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


# A number for each of several criteria, in one reply.


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


# CLAIR: how likely does a caption describe the same image as the references?
#
# The judge sees the caption and the references, without the image, and gives a number from 0 to 100 with its reason.
# The value is that number divided by 100. The wording of the prompt is our own.
#
# Reference:
#     Chan et al. (2023). CLAIR: Evaluating Image Captions with Large Language Models. EMNLP. arXiv:2310.12971.

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


# FLEUR: a number from 0 to 1 for a caption of the image, by the probabilities of its digits.
#
# The wording of the prompt is our own; the formula is in `replies.expected_decimal`. With references: RefFLEUR.
#
# Reference:
#     Lee, Park and Kang (2024). FLEUR. ACL. arXiv:2406.06004.


class Fleur(OneAnswer):
    """A judge that gives a caption of an image a number from 0 to 1."""

    default_question = "How well does the answer describe the image?"

    def __init__(self, config: JudgeConfig) -> None:
        super().__init__(config)
        self.needs = (self.needs[0], "image", *self.needs[1:])

    @property
    def instruction(self) -> str:
        """The question and the scale."""
        number = (
            "Reply with a number from 0.0, if it does not describe the image at all, to 1.0, if it is right and clear."
        )
        return f"You judge the caption of an image. {self.question}\n{number}"

    @property
    def readers(self) -> Mapping[str, Reader]:
        """The score."""
        return {"score": decimal_in}

    @property
    def fields(self) -> Mapping[str, JsonObject]:
        """The score."""
        return {"score": {"type": "number", "minimum": 0, "maximum": 1}}

    def _expected(self, answer: Answer, said: Said, field: str) -> float | None:
        return expected_decimal(answer, said.places.get(field))

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """The number, or its mean by probability."""
        (reading,) = readings
        return Score(self.value_of(reading, "score"), warning=self.warning_of(reading))


# The choice that an answer states, if a rule cannot find it.
#
# The judge reads; it does not judge. It sees the question, the choices and the answer, and neither the media nor the
# references, from which it could guess the right choice.

NONE = "none"
_YES_OR_NO = {"yes": "yes", "no": "no"}
_AROUND = " \t\r\n().:\"'`*"


def choices_of(sample: Sample) -> Mapping[str, str]:
    """The choices by their names; yes and no if the sample has none."""
    return letters(sample) or _YES_OR_NO


def is_open(sample: Sample) -> bool:
    """Whether the answer is a value of any kind: the choices are empty instead of missing."""
    return sample.choices is not None and not sample.choices


def _value_in(value: object) -> str | None:
    """A value as text; None if the answer states none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | list):
        raise UnreadableVerdictError(f"{shorten(value)} is not a value")
    text = str(value).strip()
    return None if text.strip(_AROUND).casefold() in ("", NONE) else text


class Extract:
    """A judge that says which choice an answer states."""

    orders: tuple[int, ...] = (0,)
    version = "1"
    bounds: Bounds = (0.0, 1.0)
    part_aggregates: Mapping[str, Aggregate] = MappingProxyType({})
    part_bounds: Mapping[str, Bounds] = MappingProxyType({})
    needs: tuple[str, ...] = ("generated_answer",)

    def __init__(self, config: JudgeConfig) -> None:
        shown = tuple(name for name in config.show if name in ("question", "choices"))
        self.config = msgspec.structs.replace(config, show=shown)

    def drafts(self, sample: Sample, order: int) -> tuple[Draft, ...]:
        """What the answer is to be read for, and the answer."""
        has_choices = bool(letters(sample))
        if is_open(sample):
            return self._open_drafts(sample)
        what = "which of the choices it states" if has_choices else "whether it says yes or no"
        instruction = (
            f"Somebody has answered a question. Read the answer, and tell {what}. Do not answer the question yourself, "
            "and do not ask whether the answer is right: only what it says counts. Reply none if it states none of "
            "them, or several without deciding for one."
        )
        name = 'the letter of a choice as in the list, or "none"' if has_choices else '"yes", "no" or "none"'
        reasons = '"reason": "…", ' if self.config.explain else ""
        ending = f'Reply with JSON only: {{{reasons}"choice": "…"}}. The choice is {name}.'
        return drafts_of(self.config, sample, instruction, [fenced("answer", sample.generated_answer or "")], ending)

    def _open_drafts(self, sample: Sample) -> tuple[Draft, ...]:
        instruction = (
            "Somebody has answered a question. Read the answer, and tell the final value that it states: a number, a "
            "word or a list, without units and explanations. Do not answer the question yourself, and do not ask "
            "whether the answer is right: only what it says counts. Reply none if it states no value, or several "
            "without deciding for one."
        )
        reasons = '"reason": "…", ' if self.config.explain else ""
        ending = f'Reply with JSON only: {{{reasons}"choice": "…"}}. The choice is the value as text, or "none".'
        return drafts_of(self.config, sample, instruction, [fenced("answer", sample.generated_answer or "")], ending)

    def schema(self, sample: Sample) -> JsonObject | None:
        """An object with the name of a choice, or with a value."""
        if is_open(sample):
            return object_schema(explained(self.config, {"choice": {"type": "string"}}))
        choice: JsonObject = {"type": "string", "enum": list(dict.fromkeys([*choices_of(sample), NONE]))}
        return object_schema(explained(self.config, {"choice": choice}))

    def read(self, sample: Sample, answer: Answer, order: int) -> Reading:
        """The choice in a reply; None if the answer states none."""
        value = object_in(answer, ["choice"])["choice"]
        if is_open(sample):
            return {"choice": _value_in(value)}
        names = choices_of(sample)
        if isinstance(value, str):
            if value in names:
                return {"choice": value}
            folded = value.strip(_AROUND).casefold()
            same = [name for name in names if name.casefold() == folded]
            if len(same) == 1:
                return {"choice": same[0]}
            if folded == NONE and not same:
                return {"choice": None}
        raise UnreadableVerdictError(f"{shorten(value)} is not one of {', '.join(names)} or {NONE}")

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """Whether the answer states a choice. The metric whose rule cannot read it scores the choice itself."""
        (reading,) = readings
        return Score(float(reading["choice"] is not None), details={"read": reading["choice"] or NONE})
