"""Captions of scenes in many wordings, and captions with one error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tools.shapes_clip.scenes import CHANGES, Scene, vary
from tools.shapes_clip.statements import Statement, describe, is_true
from tools.shapes_clip.wording import phrase

DETAILS = (1.0, 1.0, 1.0, 0.93, 0.93, 0.93, 0.8, 0.8, 0.5)  # from a full description to a few words


@dataclass(frozen=True, slots=True)
class Caption:
    """A text and the statement that it makes."""

    text: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class Distractor:
    """A caption that is false for a scene, and the change (from `CHANGES`) that made it false."""

    text: str
    statement: Statement
    change: str


def caption(scene: Scene, random: Random, detail: float | None = None) -> Caption:
    """A true caption. `detail` 1 mentions everything, but sizes and backgrounds only sometimes."""
    statement = describe(scene, random, random.choice(DETAILS) if detail is None else detail)
    return Caption(phrase(statement, random), statement)


def hard_distractors(
    scene: Scene, n: int, random: Random, detail: float | None = None, focus: Sequence[float] | None = None
) -> list[Distractor]:
    """`n` different captions, each true for a scene that differs in one thing, and false for this one.

    `detail` sets how much they mention (default: random), `focus` weights the changes.
    """
    distractors: dict[str, Distractor] = {}
    while len(distractors) < n:
        change = random.choices(CHANGES, weights=focus)[0]
        other = vary(scene, change, random)
        if other is None:
            continue
        statement = describe(other, random, random.choice(DETAILS) if detail is None else detail)
        if is_true(statement, scene):
            continue
        text = phrase(statement, random)
        distractors.setdefault(text, Distractor(text, statement, change))
    return list(distractors.values())
