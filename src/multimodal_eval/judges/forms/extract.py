"""The choice that an answer states, if a rule cannot find it.

The judge reads; it does not judge. It sees the question, the choices and the answer, and neither the media nor the
references, from which it could guess the right choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.metric import Aggregate, Bounds
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.generate.template import letters
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.fence import fenced
from multimodal_eval.judges.form import Reading, UnreadableVerdictError
from multimodal_eval.judges.forms.replies import explained, object_in, object_schema
from multimodal_eval.judges.prompt_texts import drafts_of

__all__ = ["NONE", "Extract", "choices_of"]

NONE = "none"
_YES_OR_NO = {"yes": "yes", "no": "no"}
_AROUND = " \t\r\n().:\"'`*"


def choices_of(sample: Sample) -> Mapping[str, str]:
    """The choices by their names; yes and no if the sample has none."""
    return letters(sample) or _YES_OR_NO


class Extract:
    """A judge that says which choice an answer states."""

    orders: tuple[int, ...] = (0,)
    version = "1"
    bounds: Bounds = (0.0, 1.0)
    part_bounds: Mapping[str, Bounds] = MappingProxyType({})
    part_aggregates: Mapping[str, Aggregate] = MappingProxyType({})
    needs: tuple[str, ...] = ("generated_answer",)

    def __init__(self, config: JudgeConfig) -> None:
        shown = tuple(name for name in config.show if name in ("question", "choices"))
        self.config = msgspec.structs.replace(config, show=shown)

    def drafts(self, sample: Sample, order: int) -> tuple[Draft, ...]:
        """What the answer is to be read for, and the answer."""
        has_choices = bool(letters(sample))
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

    def schema(self, sample: Sample) -> JsonObject | None:
        """An object with the name of a choice."""
        choice: JsonObject = {"type": "string", "enum": list(dict.fromkeys([*choices_of(sample), NONE]))}
        return object_schema(explained(self.config, {"choice": choice}))

    def read(self, sample: Sample, answer: Answer, order: int) -> Reading:
        """The choice in a reply; None if the answer states none."""
        value = object_in(answer, ["choice"])["choice"]
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
