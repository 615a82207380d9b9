"""Rules for relaxed accuracy: whether an answer equals a reference, numbers with a tolerance of 5%.

A rule takes the answer and a reference, and says whether the answer is right; any reference is enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import TypeAlias

from multimodal_eval.core.rules import rule

__all__ = ["RelaxedRule", "plain_number"]

RelaxedRule: TypeAlias = Callable[[str, str], bool]
TOLERANCE = 0.05
_UNITS = re.compile(r"^[$€£¥]\s*|\s*(?:%|percent)$", re.IGNORECASE)
_LONG_NUMBER = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def _number(text: str) -> float | None:
    """The number that the text is; a percentage is divided by 100."""
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


@rule("relaxed", "relaxed@pix2struct", origin="relaxed_correctness of pix2struct (google-research/pix2struct)")
def pix2struct(answer: str, reference: str) -> bool:
    """Two numbers may differ by 5% of the reference; other texts must be equal apart from case.

    The whole answer must be a number, a percentage is divided by 100, and white space counts in texts. A reference of 0
    is compared as text, so "0.0" is wrong. Years have the tolerance too.
    """
    predicted, target = _number(answer), _number(reference)
    if predicted is not None and target:
        return abs(predicted - target) / abs(target) <= TOLERANCE
    return answer.lower() == reference.lower()


@rule("relaxed", "lmms-eval@0.7.3/chartqa", origin="relaxed_correctness in the task chartqa of lmms-eval 0.7.3")
def lmms_eval(answer: str, reference: str) -> bool:
    """The same as `relaxed@pix2struct`."""
    return pix2struct(answer, reference)


@rule("relaxed", "vlmevalkit@e8e78f05/relaxed", origin="process_line and relaxed_correctness of VLMEvalKit at e8e78f05")
def vlmevalkit(answer: str, reference: str) -> bool:
    """As `relaxed@pix2struct`, after white space around the answer is removed."""
    return pix2struct(answer.strip(), reference)


@rule("relaxed", "mmeval@1", origin="multimodal-eval")
def mmeval(answer: str, reference: str) -> bool:
    """As `relaxed@pix2struct`, with the differences that change no number.

    White space and a full stop at the end are ignored, "1,000" is 1000, and a currency sign before the number is
    dropped. A percent sign (or "percent") divides by 100 only if the other text has one too: "45" and "45%" are equal.
    A reference of 0 needs a 0, and a year (a whole number from 1000 to 2100) needs the same year.
    """
    text, target_text = _trimmed(answer), _trimmed(reference)
    predicted, target = plain_number(text), plain_number(target_text)
    if predicted is None or target is None:
        return text.casefold() == target_text.casefold()
    if target == 0 or (target.is_integer() and 1000 <= target <= 2100 and target_text.isdigit()):
        return predicted == target
    return abs(predicted - target) / abs(target) <= TOLERANCE


def _trimmed(text: str) -> str:
    return " ".join(text.split()).removesuffix(".")


def plain_number(text: str) -> float | None:
    """The number without separators, currency and percent signs."""
    try:
        number = float(_LONG_NUMBER.sub("", _UNITS.sub("", text)))
    except ValueError:
        return None
    return number if isfinite(number) else None
