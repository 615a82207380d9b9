"""Places the things of a scene so that its facts are visible and no other facts are suggested."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from random import Random

from tools.shapes_clip.scenes import Group, Scene

Box = tuple[float, float, float, float]  # left, top, right, bottom; the image is the unit square

ALONE = {"small": (0.11, 0.14), "medium": (0.19, 0.24), "big": (0.32, 0.38)}
BESIDE = {"small": (0.085, 0.105), "medium": (0.135, 0.16), "big": (0.195, 0.22)}
OF_COUNT = {2: (0.12, 0.17), 3: (0.11, 0.15), 4: (0.1, 0.13), 5: (0.09, 0.12)}
OF_COUNT_BESIDE = {2: (0.09, 0.12), 3: (0.085, 0.105)}


@dataclass(frozen=True, slots=True)
class Placed:
    """One thing: its group, centre and radius."""

    group: int
    x: float
    y: float
    radius: float


def lay_out(scene: Scene, random: Random) -> list[Placed]:
    """The scene's things in the order of drawing."""
    if len(scene.groups) == 1:
        group = scene.groups[0]
        sizes = ALONE[group.size] if group.count == 1 else OF_COUNT[group.count]
        return _place(0, group.count, random.uniform(*sizes), (0.02, 0.02, 0.98, 0.98), random)
    if scene.relation == "inside":
        return _nested(random)
    return _side_by_side(scene, random)


def _nested(random: Random) -> list[Placed]:
    outer = random.uniform(0.34, 0.4)
    x, y = (random.uniform(outer + 0.02, 0.98 - outer) for _ in range(2))
    inner = random.uniform(0.1, 0.12)
    return [Placed(1, x, y, outer), Placed(0, x + random.uniform(-0.03, 0.03), y + random.uniform(-0.03, 0.03), inner)]


def _side_by_side(scene: Scene, random: Random) -> list[Placed]:
    split = random.uniform(0.47, 0.53)
    level = random.uniform(0.35, 0.65)  # the position of both groups on the other axis
    placed: list[Placed] = []
    for which, group in enumerate(scene.groups):
        low, high = ((0.02, split - 0.02), (split + 0.02, 0.98))[which]
        radius = _radius_beside(group, random)
        reach = radius + 0.06 if group.count == 1 else 0.45
        across = (max(0.02, level - reach), min(0.98, level + reach))
        if scene.relation == "left":
            placed += _place(which, group.count, radius, (low, across[0], high, across[1]), random)
        else:
            placed += _place(which, group.count, radius, (across[0], low, across[1], high), random)
    return placed


def _radius_beside(group: Group, random: Random) -> float:
    return random.uniform(*(BESIDE[group.size] if group.count == 1 else OF_COUNT_BESIDE[group.count]))


def _place(group: int, count: int, radius: float, box: Box, random: Random) -> list[Placed]:
    """`count` things in a box without overlap. They shrink until they fit."""
    left, top, right, bottom = box
    while True:
        for _ in range(12):
            spots: list[tuple[float, float]] = []
            for _ in range(12 * count):
                x = random.uniform(left + radius, max(left + radius, right - radius))
                y = random.uniform(top + radius, max(top + radius, bottom - radius))
                if all(hypot(x - a, y - b) > 2.15 * radius for a, b in spots):
                    spots.append((x, y))
                if len(spots) == count:
                    return [Placed(group, x, y, radius) for x, y in spots]
        radius *= 0.96
