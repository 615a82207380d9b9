"""A form of judging: what is asked about a sample, how a reply is read, and what score the replies give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import msgspec

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.metric import Aggregate, Bounds
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.generate.protocol import Answer, Outcome
from multimodal_eval.generate.turns import Draft

__all__ = ["Form", "KnowsSome", "Place", "Question", "Reading", "UnreadableVerdictError", "Verdict"]


# What a judge is asked about a sample.


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


Reading = Mapping[str, Any]  # the fields of a verdict, as they are kept with the score


class UnreadableVerdictError(Exception):
    """The reply of a judge does not contain a verdict; the message says why."""


class Form(Protocol):
    """What the metric of a judge asks its form for."""

    config: JudgeConfig
    bounds: Bounds
    part_bounds: Mapping[str, Bounds]  # of parts that have any
    part_aggregates: Mapping[str, Aggregate]  # of parts that are not plain means
    needs: tuple[str, ...]
    orders: tuple[int, ...]  # in which the answers of a question are shown
    version: str  # of the prompt and the parser

    def drafts(self, sample: Sample, order: int) -> tuple[Draft, ...]:
        """The turns of a question. Raises PromptError if the sample cannot be asked."""
        ...

    def schema(self, sample: Sample) -> JsonObject | None:
        """The JSON Schema of a reply; None for plain text."""
        ...

    def read(self, sample: Sample, answer: Answer, order: int) -> Reading:
        """The verdict in a reply. Raises UnreadableVerdictError."""
        ...

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """The score by the verdicts of one model in one repetition: one for each order."""
        ...


@runtime_checkable
class KnowsSome(Protocol):
    """A form that knows the scores of some samples without a question."""

    def known(self, sample: Sample) -> Score | None:
        """The score of a sample that the judge is not asked about; None if it is asked."""
        ...
