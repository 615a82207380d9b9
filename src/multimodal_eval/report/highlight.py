"""Mark the words that an answer and its references share.

The mark of a word is the length of the longest shared sequence of words that contains it, up to four words as in CIDEr
and BLEU. Case is ignored. The marks are a reading aid and do not show what a metric matched: metrics have their own
tokenizers, and some count stems, synonyms or meanings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

LONGEST = 4

# In scripts without spaces, each letter counts as a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
# `re` does not count combining marks as letters. In Indic scripts they share a block with the letters.
_SIGNS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_SIGNS}])"
_WORD = re.compile(rf"[{_UNSPACED}]|{_LETTER}+(?:['’\-]{_LETTER}+)*")

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text; `matched` is the length of the shared sequence in words, or 0."""

    text: str
    matched: int


@dataclass(frozen=True, slots=True)
class Highlighted:
    """An answer and its references, each split into spans that together are the whole text."""

    answer: list[Span]
    references: list[list[Span]]


def highlighted(answer: str, references: Sequence[str]) -> Highlighted:
    """Mark the words that the answer shares with any of its references."""
    return Highlighted(marked(answer, references), [marked(reference, [answer]) for reference in references])


def marked(text: str, others: Sequence[str]) -> list[Span]:
    """Mark the words that a text shares with any of the others."""
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
    """A text with its normalized words and their positions."""

    def __init__(self, text: str) -> None:
        self.text = text
        matches = list(_WORD.finditer(text))
        self.positions = [match.span() for match in matches]
        self.words = tuple(unicodedata.normalize("NFC", match[0]).casefold().replace("’", "'") for match in matches)

    def spans(self, other: set[Words]) -> list[Span]:
        """Split the text at every change of mark. Characters between two words with the same mark get that mark."""
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
        for (start, stop), matched in zip(self.positions, longest, strict=True):
            yield Span(self.text[end:start], matched if matched == before else 0)
            yield Span(self.text[start:stop], matched)
            end, before = stop, matched
        yield Span(self.text[end:], 0)


def _joined(pieces: Iterable[Span]) -> Iterator[Span]:
    """Merge neighbours with the same mark and drop empty pieces."""
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
