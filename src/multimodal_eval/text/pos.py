"""Tag the parts of speech of English captions, with an averaged perceptron that reads from left to right.

`word_classes` limits the tags of a word; of several, the one with the largest sum of weights wins. The features are
the word, its endings and shape, its neighbours, the two tags before it, and the noun phrase that is open before it: a
plural cannot follow "a street light", so "lights" is a verb there. The tags are those of Universal Dependencies. The
weights were trained on this project's captions: tools/train_tagger.py.

Reference:
    Collins (2002). Discriminative Training Methods for Hidden Markov Models: Theory and Experiments with Perceptron
    Algorithms. EMNLP.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from hashlib import sha256
from importlib.resources import files
from typing import TypeVar

from multimodal_eval.text.word_classes import neighbours, possible_tags, shape
from multimodal_eval.text.wordnet import LONGEST_WORD, open_wordnet

Weights = Mapping[str, Mapping[str, int]]

LANGUAGES = frozenset({"en"})  # languages it can tag

_SINGULAR = frozenset("a an another every each one".split())
_PLURAL = frozenset("two three four five six several many these those some few both various".split())
_FORMS_OF_BE = frozenset("is are was were am be been being 're".split())
_SUBJECTS = frozenset("he she they we i who".split())
_OPENERS = frozenset("a an the my our your his its their every each".split())
_NOMINAL = frozenset("NOUN PROPN ADJ NUM".split())
_SENTENCE_ENDS = frozenset(".!?")
_WORD = re.compile(r"[^\W_]+(?:[-'’&][^\W_]+)*|[^\w\s]|_")
_CONTRACTION = re.compile(r"(.+?)(n['’]t|['’](?:s|re|ve|ll|d|m))", re.IGNORECASE)


def split_words(text: str) -> list[str]:
    """The words and punctuation marks of a text for `tag`: case kept, "dog's" and "isn't" split in two."""
    words: list[str] = []
    for match in _WORD.finditer(text):
        word = match[0]
        parts = _CONTRACTION.fullmatch(word)
        words += [parts[1], parts[2].replace("’", "'")] if parts else [word]
    return words


def tag(words: Sequence[str]) -> list[str]:
    """The universal part-of-speech tag of each word of a text. Sentences end at `.`, `!` and `?`."""
    tags: list[str] = []
    for sentence in _sentences(words):
        tags += tag_sentence(sentence, shipped_weights())
    return tags


@cache
def tagger_label() -> str:
    """This tagger's name in signatures."""
    return f"captions-1@{sha256(_packed()).hexdigest()[:8]}"


def tag_sentence(words: Sequence[str], weights: Weights) -> list[str]:
    """The tags of a sentence with the given weights."""
    sentence = Sentence(words)
    for index in range(len(words)):
        candidates = sentence.candidates(index)
        if len(candidates) == 1:
            sentence.add(candidates[0])
        else:
            sums = scores(sentence.features(index), candidates, weights)
            sentence.add(max(candidates, key=sums.__getitem__))
    return sentence.tags


def scores(features: Sequence[str], candidates: Sequence[str], weights: Weights) -> dict[str, int]:
    """The sum of weights of each candidate tag."""
    rows = [row for row in map(weights.get, features) if row]
    return {name: sum(row.get(name, 0) for row in rows) for name in candidates}


class Sentence:
    """A sentence while it is tagged: `tags` holds the tags so far.

    `add` updates the facts about distant words that features need, so that the cost per word does not depend on the
    sentence length.
    """

    def __init__(self, words: Sequence[str]) -> None:
        all_caps = not any(character.islower() for word in words for character in word)  # capitals carry no information
        self.words = [word[:LONGEST_WORD].lower() for word in words]
        self.capitals = [word[:1].isupper() and not all_caps for word in words]
        self.shapes = [shape(word) for word in self.words]
        self.tags: list[str] = []
        self._phrase_start, self._phrase_nouns = 0, 0  # of the open run of nouns and adjectives
        self._finite_before = False
        self._last_finite = max((index for index in range(len(words)) if self._is_surely_finite(index)), default=-1)

    def add(self, name: str) -> None:
        """Set the tag of the next word."""
        word = self.words[len(self.tags)]
        self.tags.append(name)
        if name in _NOMINAL and word not in _PLURAL:
            self._phrase_nouns += name in ("NOUN", "PROPN")
        else:
            self._phrase_start, self._phrase_nouns = len(self.tags), 0
        self._finite_before |= name == "AUX" or (name == "VERB" and not word.endswith("ing"))

    def _is_surely_finite(self, index: int) -> bool:
        """Whether a word can only be a finite verb."""
        return self.words[index] in _FORMS_OF_BE or self.shapes[index].startswith("-s")

    def candidates(self, index: int) -> tuple[str, ...]:
        """The possible tags of the word; a single one if a rule decides."""
        word = self.words[index]
        if word in _FORMS_OF_BE:  # "there is" is a verb, any other form of "be" an auxiliary or copula
            return ("VERB",) if self._word(index - 1) == "there" else ("AUX",)
        if word == "next":
            return ("ADV",) if self._word(index + 1) == "to" else ("ADJ",)
        tags = possible_tags(word, self.capitals[index])
        excluded = self._excluded_by_word_before(index)
        return tuple(name for name in tags if name != excluded) if len(tags) > 1 else tags

    def _excluded_by_word_before(self, index: int) -> str:
        """The impossible tag: NOUN after "they"; VERB, except for participles, after "the" and "his"."""
        before = self._word(index - 1)
        if before in _SUBJECTS and self.shapes[index][1] != "-":
            return "NOUN"
        if before in _OPENERS and self.shapes[index][1] in "0s":
            return "VERB"
        return ""

    def features(self, index: int) -> list[str]:
        """The features of a word and its context, as strings."""
        word, form = self.words[index], self.shapes[index]
        before, before_that = self._tag(index - 1), self._tag(index - 2)
        left, right = self._word(index - 1), self._word(index + 1)
        form_right, form_beyond = self._shape(index + 1), self._shape(index + 2)
        noun_or_verb, noun_or_verb_right = form[:2], form_right[:2]
        opened_by, nouns, number = self._open_noun_phrase(index)
        phrase = f"{opened_by}{nouns}{number}"
        finite = self._finite_verbs(index)
        features = [
            "bias",
            f"w {word}",
            f"s3 {word[-3:]}",
            f"s2 {word[-2:]}",
            f"f {form}",
            f"t-1 {before}",
            f"t-2 {before_that} {before}",
            f"t-1 f {before} {form}",
            f"t-1 w {before} {word}",
            f"w-1 {left}",
            f"w-2 {self._word(index - 2)}",
            f"w+1 {right}",
            f"f+1 {form_right}",
            f"f w+1 {form} {right}",
            f"f f+1 {form} {form_right}",
            f"t-1 f f+1 {before} {form} {form_right}",
            f"w-1 f {left} {form}",
            f"f+1 f+2 {form_right} {form_beyond}",
            f"t-1 w+1 {before} {right}",
            f"f-1 f {self._shape(index - 1)} {form}",
            f"t-1 n f+1 {before} {noun_or_verb} {noun_or_verb_right}",
            f"t-1 n w+1 {before} {noun_or_verb} {right}",
            f"np {phrase}",
            f"np f {phrase} {form}",
            f"np f f+1 {phrase} {form} {noun_or_verb_right}",
            f"np f w+1 {phrase} {form} {right}",
            f"np n {phrase} {noun_or_verb}",
            f"np v {opened_by}{number} {form[1]}",
            f"np n n+1 {opened_by}{number} {noun_or_verb} {noun_or_verb_right}",
            f"fin {finite} {form}",
            f"fin n {finite} {noun_or_verb} {number}",
            f"fin np {finite[0]} {phrase} {form}",
        ]
        if self.capitals[index]:
            features.append("first capital" if index == 0 else "capital")
        if "-" in word:
            features.append("hyphen")
        for place, share in enumerate(neighbours(word)):
            features.append(f"c{place} {share}")
            if share in "23":
                features.append(f"c{place} f {form}")
        features += [f"c+1 {place} {form}" for place, share in enumerate(neighbours(right)) if share in "23"]
        return features

    def _open_noun_phrase(self, index: int) -> tuple[str, int, str]:
        """What opened the noun phrase before a word, its count of nouns (at most 2), and the last noun's number."""
        start, nouns = self._phrase_start, self._phrase_nouns
        opener = self._word(start - 1)
        opened_by = "sg" if opener in _SINGULAR else "pl" if opener in _PLURAL else self._tag(start - 1)
        number = "-" if not nouns else "s" if self.shapes[index - 1][0] == "s" else "0"
        return opened_by, min(nouns, 2), number

    def _finite_verbs(self, index: int) -> str:
        """Whether a finite verb precedes the word, and whether one surely follows it, as two characters."""
        return ("f" if self._finite_before else "-") + ("f" if self._last_finite > index else "-")

    def _word(self, index: int) -> str:
        return self.words[index] if 0 <= index < len(self.words) else "|"

    def _shape(self, index: int) -> str:
        return self.shapes[index] if 0 <= index < len(self.shapes) else "|"

    def _tag(self, index: int) -> str:
        return self.tags[index] if index >= 0 else "|"


def _sentences(words: Sequence[str]) -> Iterator[Sequence[str]]:
    start = 0
    for end, word in enumerate(words, 1):
        if word in _SENTENCE_ENDS or end == len(words):
            yield words[start:end]
            start = end


@cache
def shipped_weights() -> Weights:
    """The trained weights, times 100."""
    return read_weights(gzip.decompress(_packed()).decode("utf-8"))


def read_weights(text: str) -> Weights:
    """Weights from lines `feature<TAB>TAG<TAB>weight<TAB>TAG<TAB>weight…`."""
    weights: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        feature, *cells = line.split("\t")
        weights[feature] = dict(zip(cells[::2], map(int, cells[1::2]), strict=True))
    return weights


def _packed() -> bytes:
    return (files("multimodal_eval.text") / "pos_english.tsv.gz").read_bytes()


# Cache results by text: references repeat with every answer to the same image.

T = TypeVar("T")

MAX_TEXTS = 1 << 12
MAX_LENGTH = 1000  # characters; thousands of texts of a megabyte would fill the memory


def cached_by_text(function: Callable[[str], T]) -> Callable[[str], T]:
    """The function with a cache for the last few thousand short texts."""
    cached = lru_cache(maxsize=MAX_TEXTS)(function)

    @wraps(function)
    def call(text: str) -> T:
        return cached(text) if len(text) <= MAX_LENGTH else function(text)

    return call


# The words of a text that describe an image: its nouns, verbs and adjectives.

# Universal tags of content words. Proper nouns count as nouns; auxiliaries and copulas (AUX) are not content words.
_PARTS = {"NOUN": "NOUN", "PROPN": "NOUN", "VERB": "VERB", "ADJ": "ADJ"}


@dataclass(frozen=True, slots=True)
class ContentWord:
    """A content word in lower case, its part of speech (NOUN, VERB or ADJ) and its possible base forms."""

    word: str
    part: str
    lemmas: tuple[str, ...]


@cached_by_text
def content_words(text: str) -> tuple[ContentWord, ...]:
    """The content words of an English text in order, without those that share a base form with an earlier one."""
    words = split_words(text)
    contents: list[ContentWord] = []
    seen: set[tuple[str, str]] = set()
    for word, name in zip(words, tag(words), strict=True):
        part = _PARTS.get(name)
        if part is None:
            continue
        content = ContentWord(word.lower(), part, _lemmas(word.lower(), part))
        forms = {(part, lemma) for lemma in content.lemmas}
        if seen.isdisjoint(forms):
            contents.append(content)
            seen |= forms
    return tuple(contents)


def _lemmas(word: str, part: str) -> tuple[str, ...]:
    return open_wordnet().lemmas(word, part) or (word,)
