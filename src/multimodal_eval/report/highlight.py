"""Which words of an answer stand in its references, and which of the references' words it has.

A word is marked with the length of the longest sequence of words, up to four as CIDEr and BLEU count them, that it
belongs to and that the other side has too. Case does not matter. This is a help for the eye, not what a metric
matched: metrics have tokenizers of their own, and some count stems, synonyms or meanings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

LONGEST = 4

# Letters of scripts that are written without spaces are words of their own.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
# Signs above and below letters are no letters to `re`; those of India stand with its letters.
_SIGNS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_SIGNS}])"
_WORD = re.compile(rf"[{_UNSPACED}]|{_LETTER}+(?:['’\-]{_LETTER}+)*")

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text; `matched` is 0 where the other side lacks it, else a number of words in sequence."""

    text: str
    matched: int


@dataclass(frozen=True, slots=True)
class Highlighted:
    """An answer and its references, each cut into spans that together are the whole text."""

    answer: list[Span]
    references: list[list[Span]]


def highlighted(answer: str, references: Sequence[str]) -> Highlighted:
    """Mark what the answer and any of its references have in common."""
    return Highlighted(marked(answer, references), [marked(reference, [answer]) for reference in references])


def marked(text: str, others: Sequence[str]) -> list[Span]:
    """Mark what a text and any of the others have in common."""
    return _Text(text).spans(_sequences(_Text(other).words for other in others))


def _sequences(texts: Iterable[Words]) -> set[Words]:
    """Every sequence of one to four words."""
    return {
        words[start : start + length]
        for words in texts
        for length in range(1, LONGEST + 1)
        for start in range(len(words) - length + 1)
    }


class _Text:
    """A text, its words as they are compared, and where each stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        places = list(_WORD.finditer(text))
        self.places = [place.span() for place in places]
        self.words = tuple(unicodedata.normalize("NFC", place[0]).casefold().replace("’", "'") for place in places)

    def spans(self, other: set[Words]) -> list[Span]:
        """The text cut where its marks change; what stands between two words of one mark belongs to it."""
        return list(_joined(self._pieces(self._matches(other))))

    def _matches(self, other: set[Words]) -> list[int]:
        longest = [0] * len(self.words)
        for length in range(1, LONGEST + 1):
            for start in range(len(self.words) - length + 1):
                if self.words[start : start + length] in other:
                    longest[start : start + length] = [length] * length
        return longest

    def _pieces(self, longest: Sequence[int]) -> Iterator[Span]:
        end = before = 0
        for (start, stop), matched in zip(self.places, longest, strict=True):
            yield Span(self.text[end:start], matched if matched == before else 0)
            yield Span(self.text[start:stop], matched)
            end, before = stop, matched
        yield Span(self.text[end:], 0)


def _joined(pieces: Iterable[Span]) -> Iterator[Span]:
    """Neighbours of one mark as one; nothing empty."""
    texts: list[str] = []
    matched = 0
    for piece in pieces:
        if not piece.text:
            continue
        if texts and piece.matched != matched:
            yield Span("".join(texts), matched)
            texts = []
        texts.append(piece.text)
        matched = piece.matched
    if texts:
        yield Span("".join(texts), matched)
