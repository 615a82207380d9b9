"""Which of two answers is better: a win, a tie or a loss of the sample's answer against its baseline.

With both orders, the judge sees every pair twice, the second time with the answers exchanged. The pair is a win or a
loss only if both verdicts say so, and otherwise a tie. Two equal answers are a tie, whatever the judge says.

Reference:
    Zheng et al. (2023). Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena. NeurIPS. arXiv:2306.05685, section 3.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from types import MappingProxyType
from typing import Literal

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.metric import Aggregate
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Mean, Rows, Score
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.form import Reading, UnreadableVerdictError
from multimodal_eval.judges.forms.compared import Compared, baseline_of, shown_answers, shown_order
from multimodal_eval.judges.forms.one_answer import NO_PROBABILITIES
from multimodal_eval.judges.forms.probabilities import expected_value
from multimodal_eval.judges.forms.prompt_texts import drafts_of, quotable
from multimodal_eval.judges.forms.replies import verdict_in
from multimodal_eval.judges.forms.schemas import explained, object_schema

__all__ = ["LENGTH_CONTROLLED", "Pairwise"]

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
