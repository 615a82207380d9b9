"""Cache results by text: references repeat with every answer to the same image."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")

MAX_TEXTS = 1 << 12
MAX_LENGTH = 1000  # characters; thousands of texts of a megabyte would fill the memory


def cached_by_text(function: Callable[[str], T]) -> Callable[[str], T]:
    """The function with a cache for the last few thousand short texts."""
    cached = lru_cache(maxsize=MAX_TEXTS)(function)

    @wraps(function)
    def call(text: str) -> T:
        return cached(text) if len(text) <= MAX_LENGTH else function(text)

    return call
