"""Mark the content words that texts share and those in which they differ.

A content word of an answer is `shared` if a reference has it too, and `only` if no reference has it. Function words
("a", "and", "is") are never marked. Case and endings are ignored: "Dogs" is shared with "dog". The marks are a reading
aid and do not show what a metric matched: metrics have their own rules.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from multimodal_eval._native import stem
from multimodal_eval.text.word_classes import function_words_among

# In scripts without spaces, each letter counts as a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
# `re` does not count combining marks as letters. In Indic scripts they share a block with the letters.
_SIGNS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_SIGNS}])"
_WORD = re.compile(rf"[{_UNSPACED}]|{_LETTER}+(?:['’\-]{_LETTER}+)*")

Mark = Literal["", "shared", "only", "read"]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text; `mark` is empty for function words, punctuation and unmarked words."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Highlighted:
    """An answer and its references, each split into spans that together are the whole text."""

    answer: list[Span]
    references: list[list[Span]]


def highlighted(answer: str, references: Sequence[str]) -> Highlighted:
    """Mark the content words that the answer shares with its references, and those of the answer that none has."""
    text, others = _Text(answer), [_Text(reference) for reference in references]
    grammar = _grammar([text, *others])
    return Highlighted(
        text.spans(others, grammar, differing=True), [other.spans([text], grammar, differing=False) for other in others]
    )


def differences(first: str, second: str) -> tuple[list[Span], list[Span]]:
    """Mark in each of two answers the content words that the other has too, and those that the other has not."""
    left, right = _Text(first), _Text(second)
    grammar = _grammar([left, right])
    return left.spans([right], grammar, differing=True), right.spans([left], grammar, differing=True)


def marked(text: str, others: Sequence[str], *, differing: bool) -> list[Span]:
    """Mark the content words that any of the others has; with `differing`, also those that none has."""
    words, texts = _Text(text), [_Text(other) for other in others]
    return words.spans(texts, _grammar([words, *texts]), differing=differing)


def both_ends(spans: Sequence[Span], longest: int) -> list[Span]:
    """Marked text without its middle if it has more than `longest` characters: an answer is often at the end."""
    if sum(len(span.text) for span in spans) <= longest:
        return list(spans)
    backwards = beginning([Span(span.text[::-1], span.mark) for span in reversed(spans)], longest - longest // 2)
    end = [Span(span.text[::-1], span.mark) for span in reversed(backwards[:-1])]
    return [*beginning(spans, longest // 2)[:-1], Span(" … "), *end]


def beginning(spans: Iterable[Span], longest: int) -> list[Span]:
    """The first `longest` characters of marked text, with an ellipsis if something is left out."""
    kept: list[Span] = []
    left = longest
    for span in spans:
        if len(span.text) > left:
            return [*kept, Span(span.text[:left], span.mark), Span(" …")]
        kept.append(span)
        left -= len(span.text)
    return kept


def _grammar(texts: Iterable[_Text]) -> Collection[str]:
    """The function words of the language that the texts are in."""
    return function_words_among(word for text in texts for word in text.words)


class _Text:
    """A text with its normalized words, their stems and their positions."""

    def __init__(self, text: str) -> None:
        self.text = text
        matches = list(_WORD.finditer(text))
        self.positions = [match.span() for match in matches]
        self.words = [_normal(match[0]) for match in matches]
        self.stems = stem(stem(self.words, "english"), "russian")

    def spans(self, others: Sequence[_Text], grammar: Collection[str], *, differing: bool) -> list[Span]:
        """Split the text at every change of mark. Spaces between two words with the same mark get that mark."""
        shared = {word for other in others for word in other.stems}
        missing: Mark = "only" if differing and shared else ""
        marks: list[Mark] = [
            "" if word in grammar else "shared" if form in shared else missing
            for word, form in zip(self.words, self.stems, strict=True)
        ]
        return list(_joined(self._pieces(marks)))

    def _pieces(self, marks: Sequence[Mark]) -> Iterator[Span]:
        end, before = 0, ""
        for (start, stop), mark in zip(self.positions, marks, strict=True):
            between = self.text[end:start]
            yield Span(between, mark if mark == before and between.isspace() else "")
            yield Span(self.text[start:stop], mark)
            end, before = stop, mark
        yield Span(self.text[end:])


def _normal(word: str) -> str:
    return word.lower() if word.isascii() else unicodedata.normalize("NFC", word).casefold().replace("’", "'")


def _joined(pieces: Iterable[Span]) -> Iterator[Span]:
    """Merge neighbours with the same mark and drop empty pieces."""
    texts: list[str] = []
    mark: Mark = ""
    for piece in pieces:
        if not piece.text:
            continue
        if texts and piece.mark != mark:
            yield Span("".join(texts), mark)
            texts = []
        texts.append(piece.text)
        mark = piece.mark
    if texts:
        yield Span("".join(texts), mark)
