"""Synonym sources by name. A source's label is part of the signature of every metric that uses it.

Add a source with `register_synonyms`, or as an entry point in the group `multimodal_eval.synonyms`.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from multimodal_eval.core.errors import ConfigError, DuplicateNameError, UnavailableError, UnknownNameError, shorten
from multimodal_eval.core.machine import package_version
from multimodal_eval.core.metric_table import origin
from multimodal_eval.core.registry import installed_entry_points
from multimodal_eval.resources.catalogue import PackageArchive, get_resource
from multimodal_eval.resources.store import folder_with, is_intact
from multimodal_eval.text.wordnet import CACHED_WORDS, LONGEST_WORD, Lazy, numbered

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pymorphy3 import MorphAnalyzer

__all__ = [
    "Rows",
    "RussianSynonyms",
    "SynonymSource",
    "folded",
    "get_synonyms",
    "list_synonyms",
    "open_morphology",
    "open_ruwordnet",
    "open_wiktionary",
    "register_synonyms",
]


ENTRY_POINT_GROUP = "multimodal_eval.synonyms"
DEFAULTS = {"en": "wordnet", "ru": "wiktionary"}


@runtime_checkable
class SynonymSource(Protocol):
    """A source of synonyms: two words are synonyms if they share a synset."""

    label: str  # for signatures

    def synsets(self, words: Sequence[str]) -> list[Sequence[int]]:
        """Sorted synset numbers of each lower-case word; empty for an unknown word."""
        ...


Factory = Callable[..., SynonymSource]  # arguments: the language and, if the source takes one, the argument


class NoSynonyms:
    """A source without synonyms."""

    label = "none"

    def synsets(self, words: Sequence[str]) -> list[Sequence[int]]:
        """An empty list of synsets for each word."""
        return [() for _ in words]


@dataclass(frozen=True, slots=True)
class _Registered:
    factory: Factory
    languages: tuple[str, ...] | None = None  # None: any
    argument: str | None = None

    def shown(self, name: str) -> str:
        return f"{name}:{self.argument}" if self.argument else name


_registered: dict[str, _Registered] = {}
_opened: dict[tuple[object, ...], SynonymSource] = {}
_lock = RLock()


def register_synonyms(
    name: str, factory: Factory, *, languages: Collection[str] | None = None, argument: str | None = None
) -> None:
    """Add a source: `factory(language)` opens it, or `factory(language, argument)` for names such as 'mine:FILE'.

    `languages` are the languages of its words (default: all). `argument` is the placeholder after the colon in the
    help text. The same factory may be registered again (a notebook cell), another one with the same name may not.
    """
    if not name.replace("_", "").replace("-", "").isalnum() or name == "default":
        raise ConfigError(
            f"{name!r} cannot name a synonym source: use letters, digits, '_' and '-', and a name other than 'default'"
        )
    old = _registered.get(name)
    if old is not None and origin(old.factory) != origin(factory):
        raise DuplicateNameError(
            f"a synonym source named {name!r} is already registered, by {'.'.join(origin(old.factory))}. "
            "Give yours another name."
        )
    _registered[name] = _Registered(factory, None if languages is None else tuple(languages), argument)


def get_synonyms(name: str, language: str) -> SynonymSource:
    """The source with that name ('default', 'none', 'wordnet', 'ruwordnet:words.db', …), opened once per process."""
    if not isinstance(name, str):
        raise UnknownNameError("synonym source", name, _names())
    chosen = DEFAULTS.get(language, name) if name == "default" else name
    kind, colon, argument = chosen.partition(":")
    source = _find(kind)
    if source is None and name != "default":
        raise UnknownNameError("synonym source", kind, _names())
    if source is None or (source.languages is not None and language not in source.languages):
        fitting = ", ".join(list_synonyms(language))
        raise ConfigError(
            f"the option `synonyms` must be a source for the language {language!r}: {fitting}. Got {name!r} instead."
        )
    if bool(argument) != bool(source.argument) or bool(colon) != bool(source.argument):
        raise ConfigError(f"the option `synonyms` must be {source.shown(kind)!r}. Got {shorten(name)} instead.")
    return _open(source, language, argument)


def list_synonyms(language: str | None = None) -> list[str]:
    """The sorted names of all sources, or of those for a language."""
    fitting = {
        source.shown(name)
        for name, source in _registered.items()
        if language is None or source.languages is None or language in source.languages
    }
    default = {"default"} if language is None or language in DEFAULTS else set()
    return sorted(fitting | default | (entry_points().keys() - _registered.keys()))


@cache
def entry_points() -> dict[str, EntryPoint]:
    """The sources of installed distributions by name, not imported yet."""
    taken = {name: source.factory for name, source in _registered.items()}
    return installed_entry_points(ENTRY_POINT_GROUP, "synonym source", taken)


def _names() -> set[str]:
    return {"default"} | _registered.keys() | entry_points().keys()


def _find(name: str) -> _Registered | None:
    if name not in _registered and name in entry_points():
        factory = entry_points()[name].load()  # the import may register it, with its languages
        if name not in _registered:
            register_synonyms(name, factory)
    return _registered.get(name)


def _open(source: _Registered, language: str, argument: str) -> SynonymSource:
    key = (source.factory, language, argument, _stamp(argument))
    with _lock:
        if key not in _opened:
            opened = source.factory(language, argument) if source.argument else source.factory(language)
            if not isinstance(opened, SynonymSource):
                raise ConfigError(f"a synonym source must have `label` and `synsets`. Got {shorten(opened)} instead.")
            _opened[key] = opened
        return _opened[key]


def _stamp(argument: str) -> tuple[int, int] | None:
    """Modification time and size of the file that an argument names; None if there is no argument or no file."""
    if not argument:
        return None
    try:
        stat = Path(argument).expanduser().stat()
    except (OSError, ValueError, RuntimeError):
        return None
    return stat.st_mtime_ns, stat.st_size


def _none(language: str) -> SynonymSource:
    return NoSynonyms()


def _wordnet(language: str) -> SynonymSource:
    from multimodal_eval.text.wordnet import open_wordnet

    return open_wordnet()


def _wiktionary(language: str) -> SynonymSource:

    return open_wiktionary()


def _ruwordnet(language: str, path: str) -> SynonymSource:

    return open_ruwordnet(path)


register_synonyms("none", _none)
register_synonyms("wordnet", _wordnet, languages=["en"])
register_synonyms("wiktionary", _wiktionary, languages=["ru"])
register_synonyms("ruwordnet", _ruwordnet, languages=["ru"], argument="PATH")


# Russian words: their base forms, by pymorphy3, and their synonyms in the Russian Wiktionary or RuWordNet.

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
