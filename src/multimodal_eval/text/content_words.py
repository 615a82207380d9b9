"""The words of a text that say something of a picture: its nouns, verbs and adjectives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from multimodal_eval.text.pos import split_words, tag
from multimodal_eval.text.wordnet import open_wordnet

# Universal tags of content words. A name is a noun here; auxiliaries and copulas (AUX) are none.
_PARTS = {"NOUN": "NOUN", "PROPN": "NOUN", "VERB": "VERB", "ADJ": "ADJ"}
_REMEMBERED_TEXTS = 1 << 12  # references come back: with every answer to the same picture


@dataclass(frozen=True, slots=True)
class ContentWord:
    """A content word in lower case, its part of speech (NOUN, VERB or ADJ) and the base forms it may have."""

    word: str
    part: str
    lemmas: tuple[str, ...]

    @property
    def base(self) -> str:
        """The word itself where it is a base form, else its first one."""
        return self.word if self.word in self.lemmas else self.lemmas[0]


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def content_words(text: str) -> tuple[ContentWord, ...]:
    """The content words of an English text, each base form of a part of speech once, in order."""
    words = split_words(text)
    found: dict[tuple[str, str], ContentWord] = {}
    for word, name in zip(words, tag(words), strict=True):
        part = _PARTS.get(name)
        if part is not None:
            content = ContentWord(word.lower(), part, _lemmas(word.lower(), part))
            found.setdefault((content.base, part), content)
    return tuple(found.values())


def _lemmas(word: str, part: str) -> tuple[str, ...]:
    return open_wordnet().lemmas(word, part) or (word,)
