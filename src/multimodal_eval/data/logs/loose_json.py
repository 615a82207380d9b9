"""JSON as Python writes it: with NaN and Infinity, which are not JSON and which the fast decoder refuses."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

__all__ = ["finite", "loosely"]


def loosely(text: bytes) -> Any:
    """The value of a text. NaN, and numbers that are too large, are None; so is a text that is not JSON."""
    try:
        return json.loads(text, parse_constant=lambda _: None, parse_float=finite)
    except (ValueError, RecursionError):
        return None


def finite(text: str) -> float | None:
    """A number; None if it is too large to be finite."""
    value = float(text)
    return value if isfinite(value) else None
