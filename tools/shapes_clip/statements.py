"""The statement of a caption as data, so that its truth can be checked."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from random import Random

from tools.shapes_clip.scenes import INVERSE, Group, Scene


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of things. None leaves out an attribute; a count of None means "some", that is two or more."""

    count: int | None
    shape: str | None = None
    colour: str | None = None
    texture: str | None = None
    size: str | None = None

    def fits(self, group: Group) -> bool:
        """Whether every mentioned attribute is that of the group."""
        return (
            self.shape in (None, group.shape)
            and self.colour in (None, group.colour)
            and self.texture in (None, group.texture)
            and self.size in (None, group.size)
        )


@dataclass(frozen=True, slots=True)
class Statement:
    """One or two mentions, the relation of the first to the second, and the background. None leaves out a part."""

    mentions: tuple[Mention, ...]
    relation: str | None = None
    background_colour: str | None = None
    background_texture: str | None = None


def is_true(statement: Statement, scene: Scene) -> bool:
    """Whether the statement can be read as true for the scene.

    Counts are exact, but a mention may refer to any group that fits it or to all of them together: for a red and a
    blue circle, "a circle" and "two circles" are both true. Two mentions refer to different things.
    """
    background = scene.background
    if statement.background_colour not in (None, background.colour):
        return False
    if statement.background_texture not in (None, background.texture):
        return False
    readings = [_meant(mention, scene) for mention in statement.mentions]
    if len(readings) == 1:
        return bool(readings[0])
    return any(_related(statement, scene, first, second) for first, second in product(*readings))


def is_ambiguous(statement: Statement, scene: Scene) -> bool:
    """Whether a mention fits more than one group."""
    return any(sum(mention.fits(group) for group in scene.groups) > 1 for mention in statement.mentions)


def _meant(mention: Mention, scene: Scene) -> list[tuple[int, ...]]:
    fitting = [at for at, group in enumerate(scene.groups) if mention.fits(group)]
    choices = [choice for size in (1, 2) for choice in combinations(fitting, size)]
    totals = {choice: sum(scene.groups[at].count for at in choice) for choice in choices}
    if mention.count is None:
        return [choice for choice in choices if totals[choice] > 1]
    return [choice for choice in choices if totals[choice] == mention.count]


def _related(statement: Statement, scene: Scene, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    if set(first) & set(second):
        return False
    return statement.relation is None or all(
        scene.holds(statement.relation, left, right) for left, right in product(first, second)
    )


def describe(scene: Scene, random: Random, detail: float = 0.9) -> Statement:
    """A true statement that mentions each attribute with a probability of about `detail`."""
    while True:
        statement = _draft(scene, random, detail)
        if not is_ambiguous(statement, scene):
            return statement


def _draft(scene: Scene, random: Random, detail: float) -> Statement:
    mentions = [_mention(group, random, detail) for group in scene.groups]
    relation = None
    if len(mentions) == 2:
        relation = scene.relation if random.random() < max(detail, 0.7) else None
        if random.random() < 0.5:
            mentions.reverse()
            relation = INVERSE[relation] if relation else None
        if random.random() > max(detail, 0.5):
            mentions, relation = mentions[:1], None
    colour = texture = None
    if random.random() < (0.6 if scene.background.texture != "plain" else 0.35) * detail:
        colour = scene.background.colour if random.random() < 0.85 else None
        texture = scene.background.texture if scene.background.texture != "plain" or random.random() < 0.15 else None
        texture = texture if colour is None or random.random() < detail else None
    return Statement(tuple(mentions), relation, colour, texture)


def _mention(group: Group, random: Random, detail: float) -> Mention:
    shape = group.shape if random.random() < max(detail, 0.6) else None
    colour = group.colour if random.random() < detail or shape is None else None
    probability = detail if group.texture != "plain" else 0.15  # few people say "plain"
    texture = group.texture if random.random() < probability else None
    size = group.size if group.size != "medium" and random.random() < 0.6 * detail else None
    count = group.count if group.count == 1 or random.random() < max(detail, 0.7) else None
    return Mention(count, shape, colour, texture, size)
