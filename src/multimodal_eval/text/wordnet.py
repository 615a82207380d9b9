"""English synonyms: the single words of WordNet 3.0 and their inflected forms.

WordNet's rules give the base forms of a form: by its lists of irregular forms, and by detaching endings, separately for
each part of speech. If one step of detaching finds no word, another follows. A base form counts with all its synsets of
any part of speech, as in METEOR itself ("covered" is a form of the verb "cover" and therefore matches the noun too).

`lemmas` is stricter and checks the English spelling of regular forms (plurals, -s, -ed, -ing, -er and -est): "riding"
can only come from "ride", because "rid" would double its last letter, and "rides" only from "ride", because "rid" does
not take -es. The stress of longer words is not known: "admit" is expected to become "admiting".

Reference:
    Fellbaum (1998). WordNet: An Electronic Lexical Database. MIT Press. The rules: morphy(7WN) of WordNet 3.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import RLock
from typing import Generic, TypeVar

from multimodal_eval.text.packed import unpacked

# Synsets as numbers, shared by all synonym sources.

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


PARTS = ("NOUN", "VERB", "ADJ", "ADV")  # universal tags, in the table's order

Endings = Mapping[str, Sequence[tuple[str, str]]]

# Endings and their replacements, by the last letter of the form: nouns, verbs, adjectives, adverbs.
_ENDINGS: Sequence[Endings] = (
    {
        "s": (
            ("s", ""),
            ("ses", "s"),
            ("ves", "f"),
            ("xes", "x"),
            ("zes", "z"),
            ("ches", "ch"),
            ("shes", "sh"),
            ("ies", "y"),
        ),
        "n": (("men", "man"),),
    },
    {
        "s": (("s", ""), ("ies", "y"), ("es", "e"), ("es", "")),
        "d": (("ed", "e"), ("ed", "")),
        "g": (("ing", "e"), ("ing", "")),
    },
    {"r": (("er", ""), ("er", "e")), "t": (("est", ""), ("est", "e"))},
    {},
)

_DOUBLES_LAST_LETTER = re.compile(r"(?:[^aeiou]|qu)*[aeiou][^aeiouwxy]")  # one syllable with a short vowel: rid, star
_TAKES_ES = re.compile(r".*(?:s|x|z|ch|sh|o)")
_ENDS_IN_Y = re.compile(r".*[^aeiou]y")


class WordNet:
    """Synonyms of English words. The table is read on first use."""

    label = "wordnet-3.0"

    def __init__(self) -> None:
        self._parts = Lazy(_read_table)
        self._cached_synsets = lru_cache(maxsize=CACHED_WORDS)(self._look_up)
        self._cached_lemmas = lru_cache(maxsize=CACHED_WORDS)(self._lemmas)

    def synsets(self, words: Sequence[str]) -> list[Sequence[int]]:
        """Sorted synset numbers of each lower-case word; empty for an unknown word."""
        return [self._cached_synsets(word) if len(word) <= LONGEST_WORD else () for word in words]

    def lemmas(self, word: str, part: str) -> tuple[str, ...]:
        """The base forms of a lower-case word as NOUN, VERB, ADJ or ADV; empty if it is unknown as such.

        Base forms with a different regular spelling are dropped if others remain: "riding" comes from "ride", not
        from "rid". METEOR's synonyms skip this check.
        """
        return self._cached_lemmas(word, part) if len(word) <= LONGEST_WORD else ()

    def forms_of(self, word: str, part: str) -> list[str]:
        """The base forms of a word as NOUN, VERB, ADJ or ADV by WordNet's rules alone, without a check of spelling."""
        return self._parts()[PARTS.index(part)].lemmas(word) if len(word) <= LONGEST_WORD else []

    def senses(self, lemma: str, part: str) -> int:
        """In how many synsets a base form is, as NOUN, VERB, ADJ or ADV."""
        return len(self.lemma_synsets(lemma, part))

    def lemma_synsets(self, lemma: str, part: str) -> tuple[int, ...]:
        """The synset numbers of a base form as NOUN, VERB, ADJ or ADV; empty if it is unknown as such."""
        return tuple(map(int, self._parts()[PARTS.index(part)].numbers.get(lemma, "").split()))

    def _lemmas(self, word: str, part: str) -> tuple[str, ...]:
        table = self._parts()[PARTS.index(part)]
        lemmas = tuple(dict.fromkeys(table.lemmas(word)))
        irregular = table.irregular.get(word, "").split()
        return tuple(lemma for lemma in lemmas if lemma in irregular or is_regular_form(word, lemma)) or lemmas

    def _look_up(self, word: str) -> tuple[int, ...]:
        lemmas = {lemma for part in self._parts() for lemma in part.lemmas(word)}
        numbers = [part.numbers[lemma] for part in self._parts() for lemma in lemmas if lemma in part.numbers]
        return tuple(sorted(set(map(int, " ".join(numbers).split()))))


@cache
def open_wordnet() -> WordNet:
    """The WordNet that the whole process shares."""
    return WordNet()


@dataclass(frozen=True, slots=True)
class _PartOfSpeech:
    """One part of speech: word -> synset numbers, irregular form -> base forms, both as strings of the table."""

    numbers: dict[str, str]
    irregular: dict[str, str]
    endings: Endings

    def lemmas(self, form: str) -> list[str]:
        """The possible base forms of a form."""
        lemmas = [form] if form in self.numbers else []
        if form in self.irregular:
            lemmas += self.irregular[form].split()
        if form[-1:] in self.endings:
            shorter = self._shortened([form])
            lemmas += [word for word in shorter if word in self.numbers]
            while shorter and not lemmas:
                shorter = self._shortened(shorter)
                lemmas = [word for word in shorter if word in self.numbers]
        return lemmas

    def _shortened(self, forms: Iterable[str]) -> list[str]:
        """The forms with their endings replaced, without duplicates, in a stable order."""
        shorter = (
            form[: -len(ending)] + base
            for form in forms
            for ending, base in self.endings.get(form[-1:], ())
            if form.endswith(ending)
        )
        return list(dict.fromkeys(shorter))


def _read_table() -> tuple[_PartOfSpeech, ...]:
    blocks = [_read_block(block) for block in unpacked("wordnet.tsv.br").decode("ascii").rstrip("\n").split("\n\n")]
    words, irregular = blocks[: len(_ENDINGS)], blocks[len(_ENDINGS) :]
    return tuple(_PartOfSpeech(*part) for part in zip(words, irregular, _ENDINGS, strict=True))


def _read_block(text: str) -> dict[str, str]:
    cells = iter(text.replace("\n", "\t").split("\t"))
    return dict(zip(cells, cells, strict=True))


def is_regular_form(form: str, lemma: str) -> bool:
    """Whether the form is the lemma itself or one of its regular forms."""
    return form == lemma or form in _with_s(lemma) or form in _with_vowel(lemma)


def _with_s(lemma: str) -> set[str]:
    if _ENDS_IN_Y.fullmatch(lemma):
        return {f"{lemma[:-1]}ies"}
    if not _TAKES_ES.fullmatch(lemma):
        return {f"{lemma}s"}
    return {f"{lemma}es", f"{lemma}s"} if lemma.endswith("o") else {f"{lemma}es"}


def _with_vowel(lemma: str) -> set[str]:
    """The forms with -ed, -er, -est and -ing."""
    if lemma.endswith("e"):
        stem, before_ing = lemma[:-1], lemma if lemma.endswith(("ee", "oe", "ye")) else lemma[:-1]
    elif _ENDS_IN_Y.fullmatch(lemma):
        stem, before_ing = f"{lemma[:-1]}i", lemma
    else:
        stem = before_ing = lemma + lemma[-1] if _DOUBLES_LAST_LETTER.fullmatch(lemma) else lemma
    return {f"{stem}ed", f"{stem}er", f"{stem}est", f"{before_ing}ing"}
