"""Normal forms of Russian words: the dictionary of OpenCorpora, and the rules of pymorphy3 2.0.6 for unknown words.

Only the data of the package pymorphy3-dicts-ru is read. The normal forms equal those of pymorphy3; probabilities, which
only change their order, are left out.

Reference:
    Korobov (2015). Morphological Analyzer and Generator for Russian and Ukrainian Languages. AIST.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from multimodal_eval.text.dawg import Dawg

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
