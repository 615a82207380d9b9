"""What a judge is asked about a sample."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from multimodal_eval.core.records import JsonObject
from multimodal_eval.generate.outcomes import Outcome
from multimodal_eval.generate.turns import Draft

__all__ = ["Place", "Question", "Verdict"]


class Place(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Which of the questions about a sample: the number of the model, of the repetition, and of the order of answers.

    Order 0 is as given, order 1 is reversed. A random order of a list of answers has further numbers.
    """

    judge: int = 0
    repeat: int = 1
    order: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """A question before its media are read. `schema` is the JSON Schema of the reply."""

    place: Place
    drafts: tuple[Draft, ...]
    schema: JsonObject | None = None


class Verdict(msgspec.Struct, frozen=True, array_like=True):
    """The reply to a question. A failure of the endpoint is an outcome without a text."""

    place: Place
    outcome: Outcome
