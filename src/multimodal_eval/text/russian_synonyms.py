"""Synonyms of Russian words from a dictionary of lemmas.

A word matches its own entry and the entries of all its normal forms by pymorphy3 ("стекла": стекло and стечь). The
letters ё and е are equal, in words and in entries. There are two dictionaries: the Russian Wiktionary from the package
wiki-ru-wordnet (only its SQLite file is read, once, because its loader keeps all definitions in memory), and a user's
RuWordNet database, the SQLite file of `ruwordnet download`.

Reference:
    Loukachevitch, Lashevich, Gerasimova, Ivanov and Dobrov (2016). Creating Russian WordNet by Conversion. Dialogue.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import closing
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Protocol

from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.core.optional import require
from multimodal_eval.text.synsets import CACHED_WORDS, LONGEST_WORD, Lazy, numbered

_RUSSIAN = re.compile("[а-яё-]{1,40}")  # pymorphy3 is very slow on long runs of prefixes ("недонедонедо…")
_SENSES = "SELECT synset_id, lemma FROM sense WHERE synset_id IS NOT NULL AND lemma IS NOT NULL"

Rows = Iterable[tuple[Hashable, str]]  # a synset and one of its entries, in any order


class Analyzer(Protocol):
    """The part of pymorphy3's analyzer that is used."""

    def normal_forms(self, word: str) -> list[str]:
        """The possible dictionary forms of a word."""
        ...


class RussianSynonyms:
    """Synonyms from the rows of a dictionary. Rows and analyzer are loaded on first use."""

    def __init__(self, dictionary: str, read_rows: Callable[[], Rows]) -> None:
        morphology = require("pymorphy3", extra="ru", purpose="Russian synonyms")
        versions = f"pymorphy3-{version('pymorphy3')}+dicts-{version('pymorphy3-dicts-ru')}"
        self.label = f"{dictionary}+{versions}"
        self._numbers = Lazy(lambda: _numbers_of_entries(read_rows()))
        self._analyzer: Lazy[Analyzer] = Lazy(lambda: morphology.MorphAnalyzer(lang="ru"))
        self._parsing = Lock()  # pymorphy3 does not document whether an analyzer is thread-safe
        self._cached = lru_cache(maxsize=CACHED_WORDS)(self._look_up)

    def synsets(self, words: Sequence[str]) -> list[Sequence[int]]:
        """Sorted synset numbers of each lower-case word; empty for an unknown word."""
        return [self._cached(word) if len(word) <= LONGEST_WORD else () for word in words]

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
    """The word in lower case, with е for ё."""
    return word.lower().replace("ё", "е")


def _numbers_of_entries(rows: Rows) -> dict[str, tuple[int, ...]]:
    groups: dict[Hashable, tuple[str, ...]] = {}  # most have one entry, and tuples take a third of the memory of sets
    for synset, entry in rows:
        if " " not in entry:
            groups[synset] = (*groups.get(synset, ()), folded(entry))
    return numbered(groups.values())


def open_wiktionary() -> RussianSynonyms:
    """The synonyms of the installed package wiki-ru-wordnet."""
    package = require("wiki_ru_wordnet", extra="ru", purpose="the synonym source 'wiktionary'")
    database = Path(str(package.__file__)).with_name("database") / "wikiwordnet.db"
    if not database.is_file():
        raise UnavailableError(
            f"the synonym source 'wiktionary' needs {database}, which does not exist. "
            "Reinstall it with: pip install --force-reinstall wiki-ru-wordnet"
        )
    return RussianSynonyms(f"wiktionary-{version('wiki-ru-wordnet')}", partial(_read_wiktionary, database))


def _read_wiktionary(database: Path) -> Rows:
    # Nothing writes to an installed package. `immutable` needs neither a lock nor a writable folder.
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute("SELECT synset_id, lemma FROM synsets").fetchall()


def open_ruwordnet(path: str) -> RussianSynonyms:
    """The synonyms of a database. The label contains the digest of the file."""
    database = Path(path).expanduser()
    try:
        with database.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:8]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"the RuWordNet database {path!r} cannot be read: {reason}") from None
    _read_ruwordnet(database, f"{_SENSES} LIMIT 1")  # a wrong file fails before anything is scored
    return RussianSynonyms(f"ruwordnet:{digest}", partial(_read_ruwordnet, database, _SENSES))


def _read_ruwordnet(database: Path, query: str) -> Rows:
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.Error as error:
        raise ConfigError(f"the RuWordNet database {str(database)!r} cannot be read: {error}") from None
