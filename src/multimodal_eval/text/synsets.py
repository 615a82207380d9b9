"""Synsets as numbers, shared by all synonym sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock
from typing import Generic, TypeVar

LONGEST_WORD = 100  # letters; the longest entry of WordNet has 71, and a longer token is not a word
CACHED_WORDS = 1 << 15  # size of a source's cache

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that the first call creates and all later calls share. Thread-safe."""

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
    """The sorted numbers, starting at `first`, of the groups that contain each word.

    Groups that do not change which words share a number are dropped: duplicates, and groups of one word that is also
    in a larger group. Other groups of one word stay, so that two forms of the word still share a number.
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
