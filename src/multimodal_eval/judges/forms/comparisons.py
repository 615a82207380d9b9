"""Forms that compare answers: which of two is better, and several in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from statistics import fmean
from types import MappingProxyType
from typing import Literal

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.metric import Aggregate, Bounds
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Mean, Rows, Score
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.generate.template import PromptError
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.form import Reading, UnreadableVerdictError
from multimodal_eval.judges.forms.one_answer import NO_PROBABILITIES
from multimodal_eval.judges.forms.replies import expected_value, explained, object_schema, verdict_in
from multimodal_eval.judges.prompt_texts import drafts_of, fenced, quotable

__all__ = [
    "LENGTH_CONTROLLED",
    "Compared",
    "Listwise",
    "Pairwise",
    "baseline_of",
    "baselines_of",
    "shown_answers",
    "shown_order",
    "systems_of",
]


class Compared:
    """What the forms share that compare the answer of a sample with others."""

    bounds: Bounds = (0.0, 1.0)
    part_aggregates: Mapping[str, Aggregate] = MappingProxyType({})
    part_bounds: Mapping[str, Bounds] = MappingProxyType({})

    def __init__(self, config: JudgeConfig) -> None:
        self.config = config
        references = ["references"] if config.require_references else []
        self.needs: tuple[str, ...] = ("generated_answer", f"metadata.{config.baseline}", *references)
        self.orders: tuple[int, ...] = (0, 1) if config.orders == "both" else (0,)


def baseline_of(config: JudgeConfig, sample: Sample) -> str:
    """The other answer of a pair. Raises PromptError if it is not a text."""
    text = sample.metadata.get(config.baseline)
    if not isinstance(text, str):
        raise PromptError(f"`{config.baseline}` must be a text, the other answer. Got {shorten(text)} instead")
    return text


def baselines_of(config: JudgeConfig, sample: Sample) -> list[str]:
    """The other answers of a list. Raises PromptError if they are not a list of texts."""
    texts = sample.metadata.get(config.baseline)
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        got = shorten(texts)
        raise PromptError(f"`{config.baseline}` must be a list of texts, the other answers. Got {got} instead")
    return list(texts)


def shown_order(sample: Sample, answers: Sequence[str], order: int, *, mixes: bool) -> list[int]:
    """The numbers of the answers in the order in which the judge sees them; order 1 is the reverse of order 0.

    With `mixes`, the order is random: by a digest of the group (or the id) of the sample and the text of each answer.
    So it depends neither on the systems nor on the order in which they are given.
    """
    numbers = list(range(len(answers)))
    if mixes:
        place = sample.id if sample.group is None else sample.group
        numbers.sort(key=lambda number: _digest(f"{place}\0{answers[number]}"))
    return numbers[::-1] if order == 1 else numbers


def shown_answers(answers: Sequence[str], order: Sequence[int]) -> list[str]:
    """The answers in their fences, in the order in which the judge sees them."""
    return [fenced(f"answer-{place}", answers[number]) for place, number in enumerate(order, 1)]


def systems_of(sample: Sample, count: int) -> list[str]:
    """The names of the systems whose answers are compared: by the metadata of the sample, or else numbers."""
    others = sample.metadata.get("baseline_system")
    names = [sample.metadata.get("system"), *(others if isinstance(others, list) else [others])]
    is_complete = len(names) == count == len(set(map(str, names))) and all(isinstance(name, str) for name in names)
    return [str(name) for name in names] if is_complete else [str(number) for number in range(1, count + 1)]


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


# Which of two answers is better: a win, a tie or a loss of the sample's answer against its baseline.
#
# With both orders, the judge sees every pair twice, the second time with the answers exchanged. The pair is a win or a
# loss only if both verdicts say so, and otherwise a tie. Two equal answers are a tie, whatever the judge says.
#
# Reference:
#     Zheng et al. (2023). Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena. NeurIPS. arXiv:2306.05685,
#     section 3.4.

LENGTH_CONTROLLED = "length_controlled"
Choice = Literal["1", "2", "tie"]
_TIE = 0.5


_SHARE = Mean(of_values=True, bounds=Compared.bounds)


def _length_controlled(rows: Rows) -> Estimate:
    """What the mean would be if both answers had the same length."""
    if rows.stats is None:
        return _SHARE(rows)
    from multimodal_eval.stats.length_control import length_controlled

    return replace(length_controlled(rows.values, rows.stats[:, 0]), bounds=Compared.bounds)


class Pairwise(Compared):
    """A judge that prefers one of two answers, or neither."""

    version = "1"
    part_aggregates: Mapping[str, Aggregate] = MappingProxyType(
        {**dict.fromkeys(("win", "tie", "loss", "flip", "first"), _SHARE), LENGTH_CONTROLLED: _length_controlled}
    )

    def drafts(self, sample: Sample, order: int) -> tuple[Draft, ...]:
        """The instruction, what is shown, and the two answers."""
        question = self.config.question or "Which answer is better?"
        instruction = (
            f"You compare two answers to the same task. {question}\n"
            "The order of the answers means nothing, and a longer answer is not better by its length. "
            "Reply with 1 or 2 for the better answer, or with tie if neither is better."
        )
        answers = self._answers(sample)
        texts = shown_answers(answers, self._shown(sample, answers, order))
        reasons = '"reason": "…", ' if self.config.explain else ""
        ending = f'Reply with JSON only: {{{reasons}"verdict": "1" or "2" or "tie"}}'
        return drafts_of(self.config, sample, instruction, texts, ending)

    def schema(self, sample: Sample) -> JsonObject | None:
        """An object with the verdict."""
        verdict: JsonObject = {"type": "string", "enum": ["1", "2", "tie"]}
        return object_schema(explained(self.config, {"verdict": verdict}))

    def read(self, sample: Sample, answer: Answer, order: int) -> Reading:
        """The verdict, which of the answers was shown first, and the share of the win that the sample's answer has.

        With `expected`, also the mean share by the probabilities of the verdicts: P(win) + P(tie) / 2.
        """
        said = verdict_in(answer, {"verdict": _choice}, quotable(self.config, sample))
        verdict = said.fields["verdict"]
        is_first = self._shown(sample, self._answers(sample), order)[0] == 0
        shares = {"1": float(is_first), "2": float(not is_first), "tie": _TIE}
        first = "answer" if is_first else "baseline"
        reading = {**said.fields, "verdict": verdict, "first": first, "share": shares[verdict]}
        if not self.config.expected:
            return reading
        mean = expected_value(answer, said.places.get("verdict"), verdict, shares)
        return {**reading, "by": "verdict"} if mean is None else {**reading, "expected": mean, "by": "probabilities"}

    def value(self, sample: Sample, readings: Sequence[Reading]) -> Score:
        """The share of the win: 1, 0.5 or 0; with `expected`, the mean of the expected shares."""
        answers = self._answers(sample)
        is_identical = answers[0] == answers[1]
        shares = [float(reading["share"]) for reading in readings]
        outcome = shares[0] if len(set(shares)) == 1 and not is_identical else _TIE
        parts = {"win": float(outcome == 1), "tie": float(outcome == _TIE), "loss": float(outcome == 0)}
        if len(shares) > 1:
            parts["flip"] = float(0.0 in shares and 1.0 in shares)
        decided = [float(reading["verdict"] == "1") for reading in readings if reading["verdict"] != "tie"]
        if decided:
            parts["first"] = fmean(decided)
        value, warning = outcome, None
        if self.config.expected and not is_identical:
            means = [reading["expected"] for reading in readings if "expected" in reading]
            value = fmean(means) if len(means) == len(readings) else outcome
            warning = None if len(means) == len(readings) else NO_PROBABILITIES
        parts[LENGTH_CONTROLLED] = value
        length = float(len(answers[0]) - len(answers[1]))
        details = {"identical": True} if is_identical else None
        return Score(value, parts=parts, stats=(length,), details=details, warning=warning)

    def known(self, sample: Sample) -> Score | None:
        """The score of two equal answers, if such pairs are not asked."""
        answers = self._answers(sample)
        if not self.config.skip_identical or answers[0] != answers[1]:
            return None
        parts = {"win": 0.0, "tie": 1.0, "loss": 0.0, LENGTH_CONTROLLED: _TIE}
        return Score(_TIE, parts=parts, stats=(0.0,), details={"identical": True})

    def _answers(self, sample: Sample) -> tuple[str, str]:
        return sample.generated_answer or "", baseline_of(self.config, sample)

    def _shown(self, sample: Sample, answers: Sequence[str], order: int) -> list[int]:
        return shown_order(sample, answers, order, mixes=self.config.orders == "random")


def _choice(value: object) -> Choice:
    text = value.strip().lower() if isinstance(value, str) else value
    if isinstance(text, bool):
        raise UnreadableVerdictError(f"the verdict is not 1, 2 or tie: {shorten(value)}")
    if text in (1, "1"):
        return "1"
    if text in (2, "2"):
        return "2"
    if text == "tie":
        return "tie"
    raise UnreadableVerdictError(f"the verdict is not 1, 2 or tie: {shorten(value)}")


# Several answers in order, from the best to the worst: the share of the others that the sample's answer beats.
#
# The judge sees the answers in a random order, and with both orders also in the reverse of it. A tie counts half.

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
