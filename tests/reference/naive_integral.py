"""The dialogue contest's integral score in plain fractions, with simple loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

WEIGHTS = {
    "Text2Text": Fraction(1, 10),
    "Image2Text": Fraction(2, 10),
    "Audio2Text": Fraction(3, 10),
    "Image-Audio2Text": Fraction(4, 10),
}


def meteor(answer: str, variants: Sequence[str]) -> Fraction:
    """The highest 10PR / (R + 9P) over the variants, with exact word matches only."""
    best = Fraction(0)
    for variant in variants:
        words, expected = answer.split(), variant.split()
        matches = sum((Counter(words) & Counter(expected)).values())
        if matches:
            precision, recall = Fraction(matches, len(words)), Fraction(matches, len(expected))
            best = max(best, 10 * precision * recall / (recall + 9 * precision))
    return best


def integral(dialogues: Sequence[Mapping[str, Any]], weights: Mapping[str, Fraction] = WEIGHTS) -> Fraction:
    """Sum over types of w/N * sum over dialogues of (METEOR_i + HM_i) / 2, where HM of a reply is 1/PPL."""
    total = Fraction(0)
    for name, weight in weights.items():
        values = []
        for dialogue in dialogues:
            if dialogue["type"] != name:
                continue
            meteors = [meteor(reply["answer"], reply["variants"]) for reply in dialogue["replies"]]
            hidden = [1 / Fraction(reply["perplexity"]) for reply in dialogue["replies"]]
            values.append((sum(meteors, Fraction(0)) / len(meteors) + sum(hidden, Fraction(0)) / len(hidden)) / 2)
        total += weight * sum(values, Fraction(0)) / len(values)
    return total
