"""Several answers in order, from the best to the worst: the share of the others that the sample's answer beats.

The judge sees the answers in a random order, and with both orders also in the reverse of it. A tie counts half.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.form import Reading, UnreadableVerdictError
from multimodal_eval.judges.forms.compared import Compared, baselines_of, shown_answers, shown_order, systems_of
from multimodal_eval.judges.forms.prompt_texts import drafts_of, quotable
from multimodal_eval.judges.forms.replies import verdict_in
from multimodal_eval.judges.forms.schemas import explained, object_schema

__all__ = ["Listwise"]

Levels = list[list[int]]  # the best first; numbers in one level are tied


class Listwise(Compared):
    """A judge that puts several answers in order."""

    version = "1"

    def drafts(self, sample: Sample, order: int) -> tuple[Draft, ...]:
        """The instruction, what is shown, and the answers."""
        answers = self._answers(sample)
        question = self.config.question or "Which answers are better?"
        instruction = (
            f"You rank {len(answers)} answers to the same task. {question}\n"
            "The order of the answers means nothing, and a longer answer is not better by its length. "
            f"Reply with the numbers 1 to {len(answers)}, each once, the best answer first. "
            "Put the numbers of equally good answers into a list."
        )
        texts = shown_answers(answers, self._shown(sample, answers, order))
        reasons = '"reason": "…", ' if self.config.explain else ""
        ending = f'Reply with JSON only, such as: {{{reasons}"ranking": {_example(len(answers))}}}'
        return drafts_of(self.config, sample, instruction, texts, ending)

    def schema(self, sample: Sample) -> JsonObject | None:
        """An object with the ranking."""
        number: JsonObject = {"type": "integer", "minimum": 1, "maximum": len(self._answers(sample))}
        levels = {"anyOf": [number, {"type": "array", "items": number}]}
        return object_schema(explained(self.config, {"ranking": {"type": "array", "items": levels}}))

    def read(self, sample: Sample, answer: Answer, order: int) -> Reading:
        """The ranking by system, the system that was shown first, and the share of the others that are ranked lower."""
        shown = self._shown(sample, self._answers(sample), order)
        said = verdict_in(answer, {"ranking": partial(_levels, count=len(shown))}, quotable(self.config, sample))
        levels = [[shown[place - 1] for place in level] for level in said.fields["ranking"]]
        systems = systems_of(sample, len(shown))
        return {
            **said.fields,
            "ranking": [[systems[number] for number in sorted(level)] for level in levels],
            "first": systems[shown[0]],
            "share": _share(levels),
            "rank": _rank(levels),
        }

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """The mean share of the orders. `first` is the share of lists whose first answer is ranked first."""
        system = systems_of(sample, len(self._answers(sample)))[0]
        parts = {
            "best": fmean(_at_top(reading, system) for reading in readings),
            "rank": fmean(reading["rank"] for reading in readings),
            "first": fmean(_at_top(reading, reading["first"]) for reading in readings),
        }
        return Score(fmean(reading["share"] for reading in readings), parts=parts)

    def _answers(self, sample: Sample) -> list[str]:
        return [sample.generated_answer or "", *baselines_of(self.config, sample)]

    def _shown(self, sample: Sample, answers: Sequence[str], order: int) -> list[int]:
        return shown_order(sample, answers, order, mixes=self.config.orders != "given")


def _example(count: int) -> str:
    """A reply that shows a tie, if there are enough answers."""
    return "[2, 1]" if count == 2 else str([2, [1, 3], *range(4, count + 1)])


def _levels(ranking: object, count: int) -> tuple[tuple[int, ...], ...]:
    """The levels of a ranking. Raises UnreadableVerdictError unless it has every answer exactly once."""
    if not isinstance(ranking, list):
        raise UnreadableVerdictError(f"the ranking is not a list: {shorten(ranking)}")
    levels = [level if isinstance(level, list) else [level] for level in ranking]
    numbers = [number for level in levels for number in level]
    if not all(levels) or not all(type(number) is int for number in numbers):
        raise UnreadableVerdictError(f"the ranking is not a list of numbers and lists of numbers: {shorten(ranking)}")
    if sorted(numbers) != list(range(1, count + 1)):
        wanted = f"the numbers 1 to {count}, each exactly once"
        raise UnreadableVerdictError(f"the ranking does not have {wanted}: {shorten(ranking)}")
    return tuple(map(tuple, levels))


def _share(levels: Levels) -> float:
    """The share of the other answers that are below answer 0; those on its level count half."""
    place = next(place for place, level in enumerate(levels) if 0 in level)
    below = sum(map(len, levels[place + 1 :]))
    return (below + (len(levels[place]) - 1) / 2) / (sum(map(len, levels)) - 1)


def _rank(levels: Levels) -> float:
    """The rank of answer 0; tied answers share the mean of their ranks."""
    place = next(place for place, level in enumerate(levels) if 0 in level)
    return sum(map(len, levels[:place])) + (len(levels[place]) + 1) / 2


def _at_top(reading: Reading, system: str) -> float:
    """1 if the system is ranked first; several at the top share it."""
    top = reading["ranking"][0]
    return 1 / len(top) if system in top else 0.0
