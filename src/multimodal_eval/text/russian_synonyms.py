"""Synonyms of Russian words from a dictionary of lemmas.

A word leads to the entries of all its normal forms by pymorphy3 ("стекла": стекло and стечь), and to its own entry.
The letters ё and е are one, in words and in entries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from importlib.metadata import version
from threading import Lock
from typing import Protocol

from multimodal_eval.core.optional import require
from multimodal_eval.text.synsets import LONGEST_WORD, REMEMBERED_WORDS, Lazy, numbered

_RUSSIAN = re.compile("[а-яё-]{1,40}")  # pymorphy3 takes for ever over long heaps of prefixes ("недонедонедо…")
Rows = Iterable[tuple[Hashable, str]]  # a synset and one of its entries, in any order


class Analyzer(Protocol):
    """What is used of pymorphy3."""

    def normal_forms(self, word: str) -> list[str]:
        """The dictionary forms that a word may be a form of."""
        ...


class RussianSynonyms:
    """Synonyms by the rows of a dictionary; rows and analyzer are read on first use."""

    def __init__(self, dictionary: str, read_rows: Callable[[], Rows]) -> None:
        morphology = require("pymorphy3", extra="ru", purpose="Russian synonyms")
        versions = f"pymorphy3-{version('pymorphy3')}+dicts-{version('pymorphy3-dicts-ru')}"
        self.label = f"{dictionary}+{versions}"
        self._numbers = Lazy(lambda: _numbers_of_entries(read_rows()))
        self._analyzer: Lazy[Analyzer] = Lazy(lambda: morphology.MorphAnalyzer(lang="ru"))
        self._parsing = Lock()  # nothing says that an analyzer may be shared between threads
        self._remembered = lru_cache(maxsize=REMEMBERED_WORDS)(self._look_up)

    def synsets(self, words: Sequence[str]) -> list[Sequence[int]]:
        """Sorted synset numbers of each lower-case word; empty for an unknown word."""
        return [self._remembered(word) if len(word) <= LONGEST_WORD else () for word in words]

    def _look_up(self, word: str) -> tuple[int, ...]:
        numbers = self._numbers()
        lemmas = {folded(form) for form in (word, *self._normal_forms(word))}
        return tuple(sorted({number for lemma in lemmas for number in numbers.get(lemma, ())}))

    def _normal_forms(self, word: str) -> list[str]:
        if not _RUSSIAN.fullmatch(word):
            return []
        with self._parsing:
            return self._analyzer().normal_forms(word)


def folded(word: str) -> str:
    """Lower case, with е for ё."""
    return word.lower().replace("ё", "е")


def _numbers_of_entries(rows: Rows) -> dict[str, tuple[int, ...]]:
    groups: dict[Hashable, tuple[str, ...]] = {}  # most have one entry: tuples take a third of the space of sets
    for synset, entry in rows:
        if " " not in entry:
            groups[synset] = (*groups.get(synset, ()), folded(entry))
    return numbered(groups.values())
