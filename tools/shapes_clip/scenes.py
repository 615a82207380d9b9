"""The content of an image: one or two groups of equal shapes, their relation, and the background.

A `Scene` holds only facts. Exact positions and shades are chosen when it is drawn (drawing.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

SHAPES = ("circle", "square", "triangle", "star", "ring", "cross", "heart", "hexagon", "diamond", "crescent")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white")
BACKGROUND_COLOURS = (*COLOURS, "gray")
TEXTURES = ("plain", "striped", "dotted", "checked")
SIZES = ("small", "medium", "big")  # captions never mention "medium"
RELATIONS = ("left", "above", "inside")  # of the first group to the second; the others are their inverses
INVERSE = {"left": "right", "above": "below", "inside": "around"}
KINDS = ("single", "group", "pair", "two groups", "inside")
CHANGES = ("colour", "shape", "texture", "count", "size", "relation", "roles", "exchange", "background")
ENCLOSING = ("circle", "square", "ring", "hexagon", "diamond", "heart")  # large enough for something inside
MAX_COUNT = 5
MAX_COUNT_EACH = 3  # per group, if two groups share the image

_ALIKE = [{"red", "orange"}, {"red", "pink"}, {"pink", "purple"}, {"orange", "brown"}, {"orange", "yellow"}]
_ALIKE += [{"red", "brown"}, {"black", "brown"}, {"white", "yellow"}, {"blue", "purple"}, {"white", "pink"}]


@dataclass(frozen=True, slots=True)
class Group:
    """`count` equal things."""

    shape: str
    colour: str
    texture: str = "plain"
    size: str = "medium"
    count: int = 1


@dataclass(frozen=True, slots=True)
class Background:
    """The background of the things."""

    colour: str = "white"
    texture: str = "plain"


@dataclass(frozen=True, slots=True)
class Scene:
    """One group, or two groups with the relation of the first to the second."""

    groups: tuple[Group, ...]
    relation: str | None = None
    background: Background = Background()

    def holds(self, relation: str, first: int, second: int) -> bool:
        """Whether group `first` is `relation` ("left", "right", ...) group `second`."""
        return (relation == self.relation and first < second) or (
            self.relation is not None and relation == INVERSE[self.relation] and first > second
        )


def alike(first: str, second: str) -> bool:
    """Whether one colour is hard to see on the other."""
    return first == second or {first, second} in _ALIKE


def drawable(scene: Scene) -> bool:
    """Whether the scene can be drawn with all its facts visible."""
    if any(alike(group.colour, scene.background.colour) for group in scene.groups):
        return False
    if len(scene.groups) == 1:
        return scene.groups[0].count == 1 or scene.groups[0].size == "medium"
    first, second = scene.groups
    if _coincide(scene):
        return False
    if scene.relation == "inside":
        sizes_fit = (first.size, second.size, first.count, second.count) == ("small", "big", 1, 1)
        return sizes_fit and second.shape in ENCLOSING and not alike(first.colour, second.colour)
    return all(group.count <= MAX_COUNT_EACH and (group.count == 1 or group.size == "medium") for group in scene.groups)


def random_scene(random: Random, kind: str | None = None) -> Scene:
    """A drawable scene of the given kind (from `KINDS`), or of any kind."""
    kind = kind or random.choices(KINDS, weights=(22, 20, 30, 18, 10))[0]
    while True:
        scene = _draft(random, kind)
        if drawable(scene):
            return scene


def _draft(random: Random, kind: str) -> Scene:
    texture = random.choice(TEXTURES) if random.random() < 0.45 else "plain"
    background = Background(random.choice(BACKGROUND_COLOURS), texture)
    if kind == "single":
        return Scene((_group(random, random.choice(SIZES)),), None, background)
    if kind == "group":
        return Scene((replace(_group(random), count=random.randint(2, MAX_COUNT)),), None, background)
    if kind == "inside":
        outer = replace(_group(random, "big"), shape=random.choice(ENCLOSING))
        return Scene((_group(random, "small"), outer), "inside", background)
    groups = [_group(random, random.choice(SIZES)) for _ in range(2)]
    if kind == "two groups":
        groups = [replace(group, size="medium", count=random.randint(1, MAX_COUNT_EACH)) for group in groups]
    return Scene(tuple(groups), random.choice(("left", "above")), background)


def _group(random: Random, size: str = "medium") -> Group:
    texture = random.choice(TEXTURES) if random.random() < 0.6 else "plain"
    return Group(random.choice(SHAPES), random.choice(COLOURS), texture, size)


def vary(scene: Scene, change: str, random: Random) -> Scene | None:
    """The scene with one change from `CHANGES`. None if there is nothing to change, or the groups would coincide.

    "roles" swaps the positions of the groups, "exchange" swaps one attribute between them.
    """
    varied = _vary(scene, change, random)
    return None if varied is None or _coincide(varied) else varied


def _coincide(scene: Scene) -> bool:
    """Whether two groups have the same shape and colour, which makes captions ambiguous."""
    return len({(group.shape, group.colour) for group in scene.groups}) < len(scene.groups)


def _vary(scene: Scene, change: str, random: Random) -> Scene | None:
    if change == "background":
        return _vary_background(scene, random)
    if change == "roles":
        return replace(scene, groups=scene.groups[::-1]) if len(scene.groups) == 2 else None
    if change == "relation":
        return _vary_relation(scene, random)
    if change == "exchange":
        return _exchange(scene, random)
    which = random.randrange(len(scene.groups))
    group = _vary_group(scene.groups[which], change, random)
    if group is None:
        return None
    return replace(scene, groups=tuple(group if at == which else old for at, old in enumerate(scene.groups)))


def _other(values: tuple[str, ...], value: str, random: Random) -> str:
    return random.choice([other for other in values if other != value])


def _vary_group(group: Group, change: str, random: Random) -> Group | None:
    if change == "colour":
        return replace(group, colour=_other(COLOURS, group.colour, random))
    if change == "shape":
        return replace(group, shape=_other(SHAPES, group.shape, random))
    if change == "texture":
        return replace(group, texture=_other(TEXTURES, group.texture, random))
    if change == "count":
        count = random.choice([count for count in range(1, MAX_COUNT + 1) if count != group.count])
        return replace(group, count=count, size="medium" if count > 1 else group.size)
    if group.size == "medium":
        return None
    return replace(group, size="big" if group.size == "small" else "small")


def _vary_background(scene: Scene, random: Random) -> Scene:
    background = scene.background
    if random.random() < 0.5:
        texture = _other(TEXTURES, background.texture, random)
        return replace(scene, background=replace(background, texture=texture))
    return replace(scene, background=replace(background, colour=_other(BACKGROUND_COLOURS, background.colour, random)))


def _vary_relation(scene: Scene, random: Random) -> Scene | None:
    if scene.relation is None:
        return None
    if scene.relation == "inside":  # beside or above instead
        return replace(scene, relation=random.choice(("left", "above")))
    groups = random.choice((scene.groups, scene.groups[::-1]))
    return replace(scene, groups=groups, relation="above" if scene.relation == "left" else "left")


def _exchange(scene: Scene, random: Random) -> Scene | None:
    if len(scene.groups) == 1:
        return None
    first, second = scene.groups
    attribute = random.choice(("colour", "texture", "shape"))
    first_value, second_value = getattr(first, attribute), getattr(second, attribute)
    if first_value == second_value:
        return None
    groups = (replace(first, **{attribute: second_value}), replace(second, **{attribute: first_value}))
    return replace(scene, groups=groups)
