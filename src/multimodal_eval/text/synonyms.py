"""Synonym sources by name. A source's label is part of the signature of every metric that uses it.

Add a source with `register_synonyms`, or as an entry point in the group `multimodal_eval.synonyms`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from multimodal_eval.core.errors import ConfigError, DuplicateNameError, UnknownNameError, shorten
from multimodal_eval.core.metric_table import origin
from multimodal_eval.core.registry import installed_entry_points

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["SynonymSource", "get_synonyms", "list_synonyms", "register_synonyms"]

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
    from multimodal_eval.text.russian import open_wiktionary

    return open_wiktionary()


def _ruwordnet(language: str, path: str) -> SynonymSource:
    from multimodal_eval.text.russian import open_ruwordnet

    return open_ruwordnet(path)


register_synonyms("none", _none)
register_synonyms("wordnet", _wordnet, languages=["en"])
register_synonyms("wiktionary", _wiktionary, languages=["ru"])
register_synonyms("ruwordnet", _ruwordnet, languages=["ru"], argument="PATH")
