"""Answers that have lost their end: what shows it, since nobody has the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from multimodal_eval.run.reproduction.answers import Row

__all__ = ["cut_off", "signs_of_cuts"]

_SHORTEST = 12  # characters of an answer that may be cut off
_FEWEST = 3  # answers
_MOST, _USUAL = 0.8, 0.4  # the share of the answers that end in the middle of a sentence, and of the others
_OPEN_MARKS = ",-([{/:;"


def cut_off(rows: Sequence[Row]) -> tuple[int, list[Row]]:
    """The length of the longest answers, and these answers if they are so many that all answers are cut off there."""
    lengths = [len(row.response or "") for row in rows]
    longest = max(lengths, default=0)
    cut = [row for row, length in zip(rows, lengths, strict=True) if length == longest]
    is_varied = 2 * len({row.response for row in cut}) >= len(cut)  # else the same answer, such as the text of a choice
    is_cut = longest >= _SHORTEST and len(cut) >= max(_FEWEST, len(rows) // 50) and is_varied
    return longest, cut if is_cut else []


def signs_of_cuts(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    """What shows that most of some answers have lost their end; empty if nothing does."""
    texts = [(row.response or "").strip() for row in rows]
    empty = sum(not text for text, row in zip(texts, rows, strict=True) if row.verdict)
    if 2 * empty > len(rows):
        return f": {empty:,} of these answers are empty, and right for the authors"
    these = {row.id for row in rows}
    _, cut = cut_off(all_rows)
    if 2 * (count := sum(row.id in these for row in cut)) > len(rows):
        return f": {count:,} of these answers are cut off"
    others = [(row.response or "").strip() for row in all_rows if row.id not in these]
    length, count = Counter(map(len, texts)).most_common(1)[0]
    starts = {text for text in texts if len(text) == length}  # one of them may be the text of a choice
    in_a_word = any(other[length : length + 1].isalnum() for other in others if other[:length] in starts)
    if length >= _SHORTEST and count >= _FEWEST and 2 * count > len(rows) and (2 * len(starts) > count or in_a_word):
        return f": {count:,} of these answers are cut off after {length:,} characters"
    count, usual = sum(map(_is_open, texts)), sum(map(_is_open, others)) / max(len(others), 1)
    if count >= _FEWEST and count > _MOST * len(rows) and usual < _USUAL:
        return f": {count:,} of these answers end in the middle of a sentence, and {usual:.0%} of the others"
    return ""


def _is_open(text: str) -> bool:
    """Whether a text of several words ends without a full stop."""
    return len(text) >= _SHORTEST and " " in text and (text[-1].isalnum() or text[-1] in _OPEN_MARKS)
