"""Places for media in a rendered text."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

__all__ = ["FENCED", "EmptyFieldError", "Slot", "with_slots"]

FENCED = "fenced"  # the kind of a place for a text that no filter may change
_NONCE = secrets.randbits(64)  # so that no text of a sample looks like a place for media
_MARK = re.compile(f"\ue000{_NONCE}:([a-z]+):([0-9]+)\ue000")


class EmptyFieldError(Exception):
    """A field of the sample that is empty, where the template writes it."""


@dataclass(frozen=True)
class Slot:
    """A place in a rendered text: `{{ image }}`. `numbers` are those of the sample's media, or texts, of that kind."""

    kind: str
    numbers: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def __str__(self) -> str:
        return "".join(f"\ue000{_NONCE}:{self.kind}:{number}\ue000" for number in self.numbers)


def with_slots(text: str) -> list[str | Slot]:
    """A rendered text, split at its media."""
    pieces = _MARK.split(text)  # text, kind, number, text, kind, number, …, text
    parts: list[str | Slot] = [pieces[0]]
    for kind, number, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        parts += [Slot(kind, (int(number),)), after]
    return parts
