"""Read the reply of a judge: a JSON object, alone or at the end of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.judges.form import UnreadableVerdictError

__all__ = ["number_in", "object_in"]

_FENCED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)


def object_in(answer: Answer, fields: Sequence[str]) -> dict[str, Any]:
    """The JSON object of a reply with all these fields. Several objects that differ are no verdict."""
    text = (answer.text or "").strip()
    found = [value for value in map(_decoded, [text, *_FENCED.findall(text)]) if value is not None]
    if not found:
        start, end = text.find("{"), text.rfind("}")
        value = _decoded(text[start : end + 1]) if 0 <= start < end else None
        found = [] if value is None else [value]
    if not found:
        raise UnreadableVerdictError(f"the reply has no JSON object: {shorten(text)}")
    if any(value != found[0] for value in found):
        raise UnreadableVerdictError(f"the reply has several JSON objects: {shorten(text)}")
    missing = [field for field in fields if field not in found[0]]
    if missing:
        raise UnreadableVerdictError(f"the reply lacks {', '.join(missing)}: {shorten(text)}")
    return found[0]


def number_in(value: object, low: float, high: float) -> float:
    """A number of a reply, which must be within the scale."""
    number = float(value) if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value.strip()) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise UnreadableVerdictError(f"the verdict is not a number: {shorten(value)}")
    if not low <= number <= high:
        raise UnreadableVerdictError(f"the verdict {number:g} is not on the scale from {low:g} to {high:g}")
    return float(number)


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None
