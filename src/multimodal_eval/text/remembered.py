"""Remembering what was worked out for a text: references come back with every answer to the same picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")

TEXTS = 1 << 12
LONGEST = 1000  # characters; thousands of texts of a megabyte would fill the memory


def remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """The function, with the results for the last few thousand short texts kept at hand."""
    kept = lru_cache(maxsize=TEXTS)(function)

    @wraps(function)
    def call(text: str) -> T:
        return kept(text) if len(text) <= LONGEST else function(text)

    return call
