"""Short and unique names for charts and sentences."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from multimodal_eval.report.plain_text import visible

__all__ = ["label", "labels"]

_LENGTH = 40  # characters


def label(text: str) -> str:
    """Shorten a name and show its invisible characters. Long names often differ at their ends."""
    shown = visible(text)
    return shown if len(shown) <= _LENGTH else f"{shown[: _LENGTH - 16]}…{shown[-15:]}"


def labels(texts: Iterable[str]) -> dict[str, str]:
    """A unique label for each name."""
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for text in dict.fromkeys(texts):
        short = label(text)
        numbered = (f"{short} ({number})" for number in count(2))
        shown[text] = short if short not in taken else next(name for name in numbered if name not in taken)
        taken.add(shown[text])
    return shown
