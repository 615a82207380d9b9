"""The words of a text that describe an image: its nouns, verbs and adjectives."""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.text.pos import split_words, tag
from multimodal_eval.text.text_cache import cached_by_text
from multimodal_eval.text.wordnet import open_wordnet

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
