"""Invented interview answers with CLARITY's evasion labels, made by a small grammar: data for the examples here.

Every label has its own ways of answering, but answers begin and end with phrases that any of them may use, some are of
another kind than their label says, and annotators err. So a classifier first learns the ways, then the errors.
"""

from __future__ import annotations

import random
from typing import NamedTuple

WAYS = {
    "Explicit": [
        "yes, we will {act} the {thing} {when}",
        "no, the {thing} stays as it is",
        "I voted to {act} it {when}",
    ],
    "Implicit": ["you saw what happened to the {thing} {when}", "nobody builds a {thing} in order to lose it"],
    "General": ["people want a fair {thing}", "all of us care about every {thing} in this country"],
    "Partial/half-answer": ["the first half of the {thing} comes {when}", "on the {thing} yes, the rest is open"],
    "Dodging": [
        "let me speak about jobs instead",
        "what matters today is growth",
        "there are greater matters than that",
    ],
    "Deflection": ["ask the opposition about the {thing}", "those before us ruined the {thing}, not us"],
    "Declining to answer": ["I will not comment on the {thing}", "that stays between me and the cabinet"],
    "Claims ignorance": ["I do not know about the {thing}", "I have not seen that report", "nobody told me of it"],
    "Clarification": ["which {thing} do you mean", "do you ask about {when} or about now"],
}
THINGS = "budget tax school hospital railway pension treaty bridge harbour".split()
ACTS = "raise cut sell close open repair".split()
TIMES = ["next year", "last spring", "in March", "before the vote", "after the summer"]
OPENINGS = ["well, ", "look, ", "thank you, ", "you know, ", "as I said, ", "", ""]
ENDINGS = ["", "", ", and people know it", ", to be honest", ", that is all", ", as you know"]


class Row(NamedTuple):
    """One question and answer; `annotators` has three labels, "" where one of them did not answer."""

    question: str
    answer: str
    label: str
    annotators: tuple[str, str, str]


def rows(number: int, seed: int, label_noise: float = 0.3, annotator_noise: float = 0.25) -> list[Row]:
    """`number` rows, the labels in turn."""
    draw = random.Random(seed)
    labels = list(WAYS)
    return [_row(draw, labels[index % len(labels)], label_noise, annotator_noise) for index in range(number)]


def _row(draw: random.Random, kind: str, label_noise: float, annotator_noise: float) -> Row:
    words = {"thing": draw.choice(THINGS), "act": draw.choice(ACTS), "when": draw.choice(TIMES)}
    answer = draw.choice(OPENINGS) + draw.choice(WAYS[kind]).format(**words) + draw.choice(ENDINGS)
    question = f"will you {words['act']} the {words['thing']}?"
    first, second, third = (_heard(draw, kind, annotator_noise) for _ in range(3))
    return Row(question, answer, _heard(draw, kind, label_noise), (first, second, "" if draw.random() < 0.3 else third))


def _heard(draw: random.Random, kind: str, noise: float) -> str:
    return draw.choice(list(WAYS)) if draw.random() < noise else kind
