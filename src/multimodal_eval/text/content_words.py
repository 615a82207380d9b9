"""The words of a text that say something of a picture: its nouns, verbs and adjectives."""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.text.pos import split_words, tag
from multimodal_eval.text.remembered import remembered
from multimodal_eval.text.wordnet import open_wordnet

# Universal tags of content words. A name is a noun here; auxiliaries and copulas (AUX) are none.
_PARTS = {"NOUN": "NOUN", "PROPN": "NOUN", "VERB": "VERB", "ADJ": "ADJ"}


@dataclass(frozen=True, slots=True)
class ContentWord:
    """A content word in lower case, its part of speech (NOUN, VERB or ADJ) and the base forms it may have."""

    word: str
    part: str
    lemmas: tuple[str, ...]


@remembered
def content_words(text: str) -> tuple[ContentWord, ...]:
    """The content words of an English text in order; those that share a base form with an earlier one are left out."""
    words = split_words(text)
    found: list[ContentWord] = []
    said: set[tuple[str, str]] = set()
    for word, name in zip(words, tag(words), strict=True):
        part = _PARTS.get(name)
        if part is None:
            continue
        content = ContentWord(word.lower(), part, _lemmas(word.lower(), part))
        forms = {(part, lemma) for lemma in content.lemmas}
        if said.isdisjoint(forms):
            found.append(content)
            said |= forms
    return tuple(found)


def _lemmas(word: str, part: str) -> tuple[str, ...]:
    return open_wordnet().lemmas(word, part) or (word,)
