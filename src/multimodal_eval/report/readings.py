"""What a rule read in an answer to a multiple-choice question: the letter, its place, and the gold letter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from multimodal_eval.core.records import RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import UNREAD
from multimodal_eval.evaluation.choices import GoldError, gold_letters, options_of
from multimodal_eval.report.highlight import Span

__all__ = ["DETAILS", "ChoiceReading", "choice_metric", "marked_letter", "reading_of"]

METRIC = "multiple_choice"
DETAILS = "choice:details"  # of a row in the viewer
_SIGNS = {True: "✓", False: "✗"}


@dataclass(frozen=True, slots=True)
class ChoiceReading:
    """The letter that was read and the gold one; `is_right` is None if the metric has no score."""

    read: str
    gold: str
    is_right: bool | None

    @property
    def words(self) -> str:
        """`read B, gold D ✗`."""
        read = f"read {self.read}" if self.read not in ("", UNREAD) else "nothing read"
        gold = f", gold {self.gold}" if self.gold else ""
        return f"{read}{gold}{' ' + _SIGNS[self.is_right] if self.is_right is not None else ''}"


def choice_metric(info: RunInfo) -> str | None:
    """The first metric of a run that reads a letter."""
    variants = info.config.variants
    return next((name for name in info.signatures if variants.get(name, name) == METRIC), None)


def reading_of(
    info: RunInfo, metric: str, sample: Sample, details: Mapping[str, object], value: float | None
) -> ChoiceReading | None:
    """What was read in the answer of a sample; None if it has no choices or no reading."""
    options = options_of(sample)
    if not options or "read" not in details:
        return None
    kind = str(info.config.options.get(metric, {}).get("gold", "auto"))
    try:
        gold = ", ".join(dict.fromkeys(gold_letters(sample, options, kind)))
    except GoldError:
        gold = ""
    return ChoiceReading(str(details["read"] or ""), gold, None if value is None else value > 0)


def marked_letter(answer: str, read: str, texts: Sequence[str] = ()) -> list[Span]:
    """The answer with the place marked from which the letter was probably read: a reading aid.

    It is the letter beside a word such as "answer", else the last one that is a word of its own, else the text of the
    choice.
    """
    for pattern in _patterns(read, texts) if read else ():
        if places := list(re.finditer(pattern, answer)):
            start, end = places[-1].span("read")
            return [
                span
                for span in (Span(answer[:start]), Span(answer[start:end], "read"), Span(answer[end:]))
                if span.text
            ]
    return [Span(answer)]


def _patterns(read: str, texts: Sequence[str]) -> list[str]:
    letter = rf"(?<!\w)(?P<read>{re.escape(read)})(?!\w)"
    named = rf"(?i:answer|option|choice)\W{{0,4}}(?:(?i:is)\W{{0,4}})?(?<!\w)(?P<read>{re.escape(read)})(?!\w)"
    return [named, letter, *(rf"(?i)(?P<read>{re.escape(text)})" for text in texts if text.strip())]
