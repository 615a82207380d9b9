"""JSON as Python writes it: with NaN and Infinity, which are not JSON and which the fast decoder refuses."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

__all__ = ["finite", "loosely"]

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def loosely(text: bytes) -> Any:
    """The value of a text. NaN, and numbers that are too large, are None; so is a text that is not JSON or Unicode."""
    try:
        value = json.loads(text.decode(), parse_constant=lambda _: None, parse_float=finite)
        if _SURROGATE.search(text):  # an error if it is half of a pair
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def finite(text: str) -> float | None:
    """A number; None if it is too large to be finite."""
    value = float(text)
    return value if isfinite(value) else None
