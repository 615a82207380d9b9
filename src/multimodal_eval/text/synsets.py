"""Synsets as numbers: what every synonym source is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Generic, TypeVar

LONGEST_WORD = 100  # letters; the longest entry of WordNet has 71, and a longer token is no word
REMEMBERED_WORDS = 1 << 15  # look-ups that a source keeps at hand

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that the first call makes and all others share, whichever threads call."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._lock = RLock()
        self._value: T

    def __call__(self) -> T:
        """The value."""
        if self._make is not None:
            with self._lock:
                if self._make is not None:
                    self._value = self._make()
                    self._make = None
        return self._value


def numbered(groups: Iterable[Iterable[str]], first: int = 0) -> dict[str, tuple[int, ...]]:
    """The sorted numbers, from `first` on, of the groups that each word is in.

    Which words have a number in common is the same as with all groups, yet fewer are kept: a group of one
    word only for a word that is in no larger one (so that two forms of this word still meet), and none twice.
    """
    larger: set[tuple[str, ...]] = set()
    single: set[str] = set()
    for group in groups:
        words = set(group)
        if len(words) > 1:
            larger.add(tuple(sorted(words)))
        else:
            single |= words
    numbers: dict[str, tuple[int, ...]] = {}
    for number, members in enumerate(sorted(larger), first):
        for word in members:
            numbers[word] = (*numbers.get(word, ()), number)
    alone = sorted(single.difference(numbers))
    return numbers | {word: (number,) for number, word in enumerate(alone, first + len(larger))}
