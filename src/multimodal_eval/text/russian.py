"""Russian words: their forms and base forms, as pymorphy3 analyses them, and their synonyms in RuWordNet."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import struct
import sys
from array import array
from binascii import a2b_base64
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.resources.catalogue import PackageArchive, PackageWheel, get_resource
from multimodal_eval.resources.store import folder_with, is_intact
from multimodal_eval.text.wordnet import CACHED_WORDS, LONGEST_WORD, Lazy, numbered

# Read-only dictionaries from words to records, in the file format of dawgdic and the package DAWG.
#
# A file holds a directed acyclic word graph over UTF-8 bytes: `units`, one 32-bit word per node, and a `guide`, the
# labels of each node's first child and next sibling. A key is a word, the byte 1, and a record in base64.
#
# Reference:
#     Yata, Morita, Fuketa and Aoe (2008). Fast String Matching with Space-efficient Word Graphs. Innovations.

_SEPARATOR = b"\x01"
_LABEL = 1 << 31 | 0xFF
_HAS_LEAF = 1 << 8
_EXTENSION = 1 << 9
_MASK = 0xFFFFFFFF

Match = tuple[str, list[tuple[int, ...]]]  # a word and its records


class Dawg:
    """A dictionary in memory; `record` is the layout of a record for the module `struct`."""

    def __init__(self, path: Path, record: str) -> None:
        content = path.read_bytes()
        end = 4 + 4 * int.from_bytes(content[:4], "little")
        self._units = array("I", content[4:end])
        if sys.byteorder == "big":
            self._units.byteswap()
        self._guide = content[end + 4 :]
        self._record = struct.Struct(record)

    def similar_items(self, word: str, substitutes: Mapping[str, str]) -> list[Match]:
        """The records of the word (first) and of the words in which letters are replaced by their substitutes."""
        return self._similar_items("", word, 0, substitutes)

    def _similar_items(self, prefix: str, word: str, index: int, substitutes: Mapping[str, str]) -> list[Match]:
        matches: list[Match] = []
        start = len(prefix)
        for position in range(start, len(word)):
            letter = word[position]
            if letter in substitutes:
                after = self._follow(substitutes[letter].encode(), index)
                if after:
                    replaced = prefix + word[start:position] + substitutes[letter]
                    matches += self._similar_items(replaced, word, after, substitutes)
            index = self._follow(letter.encode(), index)
            if not index:
                return matches
        index = self._follow(_SEPARATOR, index)
        if index:
            records = [self._record.unpack(a2b_base64(key)) for key in self._keys(index, b"")]
            matches.insert(0, (prefix + word[start:], records))
        return matches

    def _follow(self, labels: bytes, index: int) -> int:
        """The node that the labels lead to; 0, the root, if there is none."""
        units = self._units
        for label in labels:
            unit = units[index]
            offset = (unit >> 10) << ((unit & _EXTENSION) >> 6)
            index = (index ^ offset ^ label) & _MASK
            if units[index] & _LABEL != label:
                return 0
        return index

    def _keys(self, index: int, key: bytes) -> Iterator[bytes]:
        """The keys below a node, in the order of their bytes."""
        if self._units[index] & _HAS_LEAF:
            yield key
        label = self._guide[2 * index]
        while label:
            child = self._follow(bytes((label,)), index)
            yield from self._keys(child, key + bytes((label,)))
            label = self._guide[2 * child + 1]


# Normal forms of Russian words: the dictionary of OpenCorpora, and the rules of pymorphy3 2.0.6 for unknown words.
#
# Only the data of the package pymorphy3-dicts-ru is read. The normal forms equal those of pymorphy3; probabilities,
# which only change their order, are left out.
#
# Reference:
#     Korobov (2015). Morphological Analyzer and Generator for Russian and Ukrainian Languages. AIST.

RULES = "pymorphy3-2.0.6"
CACHED_PARSES = 4096
LONGEST_SUFFIX = 5
LONGEST_PREFIX = 5
SHORTEST_REST = 3  # letters after a prefix
SHORTEST_PREDICTED = 4  # letters of a word whose ending is compared with those of known words

PARADIGM_PREFIXES = ("", "по", "наи")
SUBSTITUTES = {"е": "ё"}  # ё is often written as е, but not the other way round
PARTICLES = ("-то", "-ка", "-таки", "-де", "-тко", "-тка", "-с", "-ста")
PREFIXES = tuple(
    """
    авиа авто аква анти анти- антропо архи арт арт- астро аудио аэро без бес био вело взаимо вне внутри видео вице-
    вперед впереди гекто гелио гео гетеро гига гигро гипер гипо гомо дву двух де дез дека деци дис до евро за зоо интер
    инфра квази квази- кило кино контр контр- космо космо- крипто лейб- лже лже- макро макси макси- мало меж медиа
    медиа- мега мета мета- метео метро микро милли мини мини- моно мото много мульти нано нарко не небез недо нейро нео
    низко обер- обще одно около орто палео пан пара пента пере пиро поли полу после пост пост- порно пра пра- пред
    пресс- противо противо- прото псевдо псевдо- радио разно ре ретро ретро- само санти сверх сверх- спец суб супер
    супер- супра теле тетра топ- транс транс- ультра унтер- штаб- экзо эко эндо эконом- экс экс- экстра экстра- электро
    энерго этно
    """.split()
)
_PARTS_OF_SPEECH = frozenset(
    "NOUN ADJF ADJS COMP VERB INFN PRTF PRTS GRND NUMR ADVB NPRO PRED PREP CONJ PRCL INTJ".split()
)
# Grammemes in which both parts of a hyphenated word must agree: part of speech, number, case, person, tense.
_AGREEING = _PARTS_OF_SPEECH | frozenset(
    "sing plur nomn gent datv accs ablt loct voct gen1 gen2 acc2 loc1 loc2 1per 2per 3per pres past futr".split()
)
_SAME = {"gen1": "gent", "loc1": "loct"}
_UNPRODUCTIVE = frozenset("NUMR NPRO PRED PREP CONJ PRCL INTJ Apro".split())
_ADVERB_BASE = frozenset(("ADJF", "sing", "datv"))

Tag = tuple[str, ...]
Steps = tuple[Any, ...]  # how a parse was found; the third item of the first step identifies its paradigm


class Parse(NamedTuple):
    """One reading of a word."""

    word: str
    tag: Tag
    normal_form: str
    steps: Steps

    @property
    def key(self) -> tuple[str, Tag, Any]:
        """Parses with the same key count once."""
        first = self.steps[0]
        return self.word, self.tag, first[2] if len(first) > 2 else None


Seen = set[tuple[str, Tag, Any]]


class RussianMorphology:
    """The dictionary in a folder with the files of pymorphy3-dicts-ru. Several threads may use it."""

    def __init__(self, folder: Path) -> None:
        self._words = Dawg(folder / "words.dawg", ">HH")  # paradigm, form
        self._endings = [  # count, paradigm, form; of words with each of the paradigm prefixes
            Dawg(folder / f"prediction-suffixes-{number}.dawg", ">IHH") for number in range(len(PARADIGM_PREFIXES))
        ]
        self._paradigms = list(_paradigms((folder / "paradigms.array").read_bytes()))
        self._suffixes: list[str] = json.loads((folder / "suffixes.json").read_bytes())
        tags: list[str] = json.loads((folder / "gramtab-opencorpora-int.json").read_bytes())
        self._tags = [tuple(tag.replace(" ", ",").split(",")) for tag in tags]
        self._parse = lru_cache(maxsize=CACHED_PARSES)(self._parse_anew)

    def normal_forms(self, word: str) -> list[str]:
        """The possible dictionary forms of a word of lower-case Russian letters and hyphens."""
        return list(dict.fromkeys(parse.normal_form for parse in self._parse(word)))

    def _parse_anew(self, word: str) -> tuple[Parse, ...]:
        """The parses by the first rule that finds any."""
        return (
            tuple(self._known(word))
            or _punctuation(word)
            or tuple(self._with_particle(word))
            or self._adverb(word)
            or tuple(self._hyphenated(word))
            or tuple(self._with_known_prefix(word))
            or self._predicted(word)
            or (Parse(word, ("UNKN",), word, (("unknown", word),)),)
        )

    def _known(self, word: str) -> Iterator[Parse]:
        """A word of the dictionary."""
        for fixed, records in self._words.similar_items(word, SUBSTITUTES):
            for paradigm, form in records:
                yield self._form(fixed, paradigm, form, "known")

    def _form(self, word: str, number: int, form: int, rule: str) -> Parse:
        """A form of a paradigm, which lists the suffixes, then the tags, then the prefixes of its forms.

        The first form is the normal one.
        """
        paradigm = self._paradigms[number]
        count = len(paradigm) // 3
        tag = self._tags[paradigm[count + form]]
        normal = word
        if form:
            prefix, suffix = PARADIGM_PREFIXES[paradigm[2 * count + form]], self._suffixes[paradigm[form]]
            stem = word[len(prefix) : len(word) - len(suffix)]
            normal = PARADIGM_PREFIXES[paradigm[2 * count]] + stem + self._suffixes[paradigm[0]]
        return Parse(word, tag, normal, ((rule, word, number, form),))

    def _with_particle(self, word: str) -> Iterator[Parse]:
        """A word with a particle after a hyphen: смотри-ка."""
        particle = next((end for end in PARTICLES if word.endswith(end) and len(word) > len(end)), None)
        if particle is None:
            return
        seen: Seen = set()
        for word_, tag, normal, steps in self._parse(word[: -len(particle)]):
            parse = Parse(word_ + particle, tag, normal + particle, (*steps, ("particle", particle)))
            yield from _unseen(parse, seen)

    def _adverb(self, word: str) -> tuple[Parse, ...]:
        """An adverb from an adjective: по-западному."""
        if len(word) < 5 or not word.startswith("по-"):
            return ()
        if not any(_ADVERB_BASE.issubset(parse.tag) for parse in self._parse(word[3:])):
            return ()
        return (Parse(word, ("ADVB",), word, (("adverb", word),)),)

    def _hyphenated(self, word: str) -> Iterator[Parse]:
        """Two words with a hyphen: both change (человек-гора), or only the second (интернет-магазин)."""
        if word.count("-") != 1 or word.strip("-") != word or word.startswith(PREFIXES):
            return
        left, right = word.split("-")
        rights = self._parse(right)
        for first in self._parse(left):
            if _is_unknown(first.tag):
                continue
            for second in rights:
                if _agreeing(first.tag) == _agreeing(second.tag):
                    normal = f"{first.normal_form}-{second.normal_form}"
                    both = (("hyphen", first.steps, second.steps),)
                    yield Parse(f"{first.word}-{second.word}", first.tag, normal, both)
        for second in rights:
            if not _is_unknown(second.tag):
                fixed = (("hyphen", left, second.steps),)
                yield Parse(f"{left}-{second.word}", second.tag, f"{left}-{second.normal_form}", fixed)

    def _with_known_prefix(self, word: str) -> Iterator[Parse]:
        """A prefix that changes nothing, and a word: псевдокошка. The longest prefix comes first."""
        seen: Seen = set()
        for prefix in sorted(filter(word.startswith, PREFIXES), key=len, reverse=True):
            if len(word) - len(prefix) >= SHORTEST_REST:
                for parse in self._parse(word[len(prefix) :]):
                    yield from _prefixed(prefix, parse, seen)

    def _predicted(self, word: str) -> tuple[Parse, ...]:
        """A word of the dictionary after an unknown prefix (байткод), and words with the same ending (бутявкать)."""
        seen: Seen = set()
        parses: list[Parse] = []
        for cut in range(1, 1 + min(LONGEST_PREFIX, len(word) - SHORTEST_REST)):
            for parse in self._known(word[cut:]):
                parses += _prefixed(word[:cut], parse, seen)
        if len(word) >= SHORTEST_PREDICTED:
            for number in reversed(range(len(PARADIGM_PREFIXES))):
                if word.startswith(PARADIGM_PREFIXES[number]):
                    parses += self._by_ending(word, self._endings[number], seen)
        return tuple(parses)

    def _by_ending(self, word: str, endings: Dawg, seen: Seen) -> Iterator[Parse]:
        """Parses by the longest ending of the word that productive words have."""
        for length in reversed(range(1, LONGEST_SUFFIX + 1)):
            productive = False
            start, end = word[:-length], word[-length:]
            for ending, records in endings.similar_items(end, SUBSTITUTES):
                for _, paradigm, form in records:
                    parse = self._form(start + ending, paradigm, form, "ending")
                    if _UNPRODUCTIVE.isdisjoint(parse.tag):
                        productive = True
                        yield from _unseen(parse._replace(steps=(*parse.steps, ("like", ending))), seen)
            if productive:
                return


def _paradigms(content: bytes) -> Iterator[array[int]]:
    """Lists of 16-bit numbers, each after its length; first the number of lists."""
    (count,) = struct.unpack_from("<H", content)
    position = 2
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, position)
        position += 2
        yield array("H", struct.unpack_from(f"<{length}H", content, position))
        position += 2 * length


def _unseen(parse: Parse, seen: Seen) -> Iterator[Parse]:
    if parse.key not in seen:
        seen.add(parse.key)
        yield parse


def _prefixed(prefix: str, parse: Parse, seen: Seen) -> Iterator[Parse]:
    """The parse with a prefix, unless its part of speech takes none."""
    word, tag, normal, steps = parse
    if _UNPRODUCTIVE.isdisjoint(tag):
        yield from _unseen(Parse(prefix + word, tag, prefix + normal, (*steps, ("prefix", prefix))), seen)


def _punctuation(word: str) -> tuple[Parse, ...]:
    return () if word.strip("-") else (Parse(word, ("PNCT",), word, (("punctuation", word),)),)


def _is_unknown(tag: Tag) -> bool:
    return tag[0] not in _PARTS_OF_SPEECH


@cache
def _agreeing(tag: Tag) -> frozenset[str]:
    return frozenset(_SAME.get(grammeme, grammeme) for grammeme in tag if grammeme in _AGREEING)


# Synonyms of Russian words from a dictionary of lemmas.
#
# A word matches its own entry and the entries of all its normal forms ("стекла": стекло and стечь), which come from
# the resource opencorpora-ru. The letters ё and е are equal, in words and in entries. There are two dictionaries: the
# Russian Wiktionary, the resource wiktionary-ru, an SQLite file that is read once; and a user's RuWordNet database,
# the SQLite file of `ruwordnet download`.
#
# Reference:
#     Loukachevitch, Lashevich, Gerasimova, Ivanov and Dobrov (2016). Creating Russian WordNet by Conversion. Dialogue.

_RUSSIAN = re.compile("[а-яё-]{1,40}")
_SENSES = "SELECT synset_id, lemma FROM sense WHERE synset_id IS NOT NULL AND lemma IS NOT NULL"

Rows = Iterable[tuple[Hashable, str]]  # a synset and one of its entries, in any order


class RussianSynonyms:
    """Synonyms from the rows of a dictionary. Rows and word forms are loaded on first use."""

    def __init__(self, dictionary: str, read_rows: Callable[[], Rows]) -> None:
        word_forms, version = _data("opencorpora-ru")
        self.label = f"{dictionary}+{RULES}+dicts-{version}"
        self._numbers = Lazy(lambda: _numbers_of_entries(read_rows()))
        self._morphology = Lazy(lambda: RussianMorphology(word_forms))
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
        raise UnavailableError(f"{resource.about}: not on this machine. Get what Russian needs with: mmeval fetch ru")
    if not is_intact(folder, resource.files):
        message = f"the files of {name} in {folder} have changed since they were fetched: a checksum differs."
        raise UnavailableError(f"{message} Get them again with: mmeval fetch {name}")
    assert isinstance(resource.source, PackageWheel | PackageArchive)
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
