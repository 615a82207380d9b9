"""Russian words: their base forms, by pymorphy3, and their synonyms in the Russian Wiktionary or RuWordNet."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.core.machine import package_version
from multimodal_eval.resources.catalogue import PackageArchive, get_resource
from multimodal_eval.resources.store import folder_with, is_intact
from multimodal_eval.text.wordnet import CACHED_WORDS, LONGEST_WORD, Lazy, numbered

if TYPE_CHECKING:
    from pymorphy3 import MorphAnalyzer

_INSTALL = "Get what Russian needs with: pip install 'multimodal-eval[ru]'"


def open_morphology() -> MorphAnalyzer:
    """pymorphy3 with the dictionary of OpenCorpora, whose `normal_forms` several threads may call."""
    from pymorphy3 import MorphAnalyzer

    return MorphAnalyzer(lang="ru")


def _morphology_label() -> str:
    """The versions of the rules and of the dictionary, which are in the extra `[ru]`."""
    try:
        return f"pymorphy3-{package_version('pymorphy3')}+dicts-{package_version('pymorphy3-dicts-ru')}"
    except ModuleNotFoundError as missing:
        raise UnavailableError(f"Russian word forms: {missing.name} is not installed. {_INSTALL}") from None


# Synonyms of Russian words from a dictionary of lemmas.
#
# A word matches its own entry and the entries of all its normal forms ("стекла": стекло and стечь). The letters ё and е
# are equal, in words and in entries. There are two dictionaries: the Russian Wiktionary, the resource wiktionary-ru, an
# SQLite file that is read once; and a user's RuWordNet database, the SQLite file of `ruwordnet download`.
#
# Reference:
#     Loukachevitch, Lashevich, Gerasimova, Ivanov and Dobrov (2016). Creating Russian WordNet by Conversion. Dialogue.

_RUSSIAN = re.compile("[а-яё-]{1,40}")
_SENSES = "SELECT synset_id, lemma FROM sense WHERE synset_id IS NOT NULL AND lemma IS NOT NULL"

Rows = Iterable[tuple[Hashable, str]]  # a synset and one of its entries, in any order


class RussianSynonyms:
    """Synonyms from the rows of a dictionary. Rows and word forms are loaded on first use."""

    def __init__(self, dictionary: str, read_rows: Callable[[], Rows]) -> None:
        self.label = f"{dictionary}+{_morphology_label()}"
        self._numbers = Lazy(lambda: _numbers_of_entries(read_rows()))
        self._morphology = Lazy(open_morphology)
        self._cached = lru_cache(maxsize=CACHED_WORDS)(self._look_up)

    def synsets(self, words: Sequence[str]) -> list[Sequence[int]]:
        """Sorted synset numbers of each lower-case word; empty for an unknown word."""
        return [self._cached(word) if len(word) <= LONGEST_WORD else () for word in words]

    def _look_up(self, word: str) -> tuple[int, ...]:
        numbers = self._numbers()
        lemmas = {folded(form) for form in (word, *self._normal_forms(word))}
        return tuple(sorted({number for lemma in lemmas for number in numbers.get(lemma, ())}))

    def _normal_forms(self, word: str) -> list[str]:
        return self._morphology().normal_forms(word) if _RUSSIAN.fullmatch(word) else []


def _data(name: str) -> tuple[Path, str]:
    """The folder of a resource, and the version of the package that it comes from."""
    resource = get_resource(name)
    folder = folder_with(resource)
    if folder is None:
        raise UnavailableError(f"{resource.about}: not on this machine. {_INSTALL}")
    if not is_intact(folder, resource.files):
        message = f"the files of {name} in {folder} have changed since they were fetched: a checksum differs."
        raise UnavailableError(f"{message} Get them again with: mmeval fetch {name}")
    assert isinstance(resource.source, PackageArchive)
    return folder, resource.source.version


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
    """The synonyms of the resource wiktionary-ru."""
    folder, version = _data("wiktionary-ru")
    return RussianSynonyms(f"wiktionary-{version}", partial(_read_wiktionary, folder / "wikiwordnet.db"))


def _read_wiktionary(database: Path) -> Rows:
    # Nothing writes to the file. `immutable` needs neither a lock nor a writable folder.
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
