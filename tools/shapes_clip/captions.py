"""Captions of scenes in many wordings, and captions that are wrong in one thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tools.shapes_clip.scenes import CHANGES, Scene, vary
from tools.shapes_clip.statements import Statement, describe, is_true
from tools.shapes_clip.wording import phrase

DETAILS = (1.0, 1.0, 1.0, 0.93, 0.93, 0.93, 0.8, 0.8, 0.5)  # from all there is to say to a few words


@dataclass(frozen=True, slots=True)
class Caption:
    """Words and what they claim."""

    text: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class Distractor:
    """A caption that is false of a scene, and the change (of `CHANGES`) that made it so."""

    text: str
    statement: Statement
    change: str


def caption(scene: Scene, random: Random, detail: float | None = None) -> Caption:
    """A true caption; `detail` 1 says all but sizes and backgrounds, which are said now and then."""
    statement = describe(scene, random, random.choice(DETAILS) if detail is None else detail)
    return Caption(phrase(statement, random), statement)


def hard_distractors(
    scene: Scene, n: int, random: Random, detail: float | None = None, focus: Sequence[float] | None = None
) -> list[Distractor]:
    """`n` captions of different wording, each true of a scene that differs in one thing, none true of this one.

    They say as much as `detail` asks for, or now more, now less; `focus` weighs the changes.
    """
    found: dict[str, Distractor] = {}
    while len(found) < n:
        change = random.choices(CHANGES, weights=focus)[0]
        other = vary(scene, change, random)
        if other is None:
            continue
        statement = describe(other, random, random.choice(DETAILS) if detail is None else detail)
        if is_true(statement, scene):
            continue
        text = phrase(statement, random)
        found.setdefault(text, Distractor(text, statement, change))
    return list(found.values())
