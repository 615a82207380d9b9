"""What a rule reads out of an answer: a choice, nothing, or a choice that its origin draws at random."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

__all__ = ["UNREAD", "Options", "Reading", "drawn", "letters_of", "read"]

Options: TypeAlias = Mapping[str, str]  # letter -> text, in the order of the question


class Reading(NamedTuple):
    """The choice that an answer states.

    `choice` is a letter, or `yes` or `no`; None if nothing was read. `among` has the letters from which the origin
    of the rule draws one at random; it is empty for all other readings. The draw from a single letter is that letter.
    """

    choice: str | None = None
    among: tuple[str, ...] = ()

    @property
    def is_drawn(self) -> bool:
        """Whether the origin of the rule draws one of several letters."""
        return len(self.among) > 1

    @property
    def label(self) -> str:
        """The reading in one word, for tables: the choice, `unread` or `drawn`."""
        return self.choice or ("drawn" if self.is_drawn else "unread")


UNREAD = Reading()


@lru_cache(maxsize=256)
def read(choice: str) -> Reading:
    """The reading of a choice."""
    return Reading(choice)


@lru_cache(maxsize=1024)
def _drawn(letters: tuple[str, ...]) -> Reading:
    return Reading(letters[0] if len(letters) == 1 else None, letters)


def drawn(options: Options) -> Reading:
    """The reading of an answer for which the origin draws one of the letters."""
    return _drawn(tuple(options))


@lru_cache(maxsize=1024)
def letters_of(count: int) -> tuple[str, ...]:
    """The letters of a list of choices: A to Z, then AA, AB, …"""
    names: list[str] = []
    for number in range(count):
        name, rest = "", number
        while rest >= 0:
            rest, place = divmod(rest, 26)
            name, rest = chr(ord("A") + place) + name, rest - 1
        names.append(name)
    return tuple(names)
