"""The shapes as polygons around the origin, with a radius of about one and y downward."""

from __future__ import annotations

from math import cos, pi, sin

Polygon = list[tuple[float, float]]


def outline(shape: str) -> Polygon:
    """The corners of a shape. The hole of a ring is drawn separately (`RING_HOLE`)."""
    return OUTLINES[shape]


def _regular(corners: int, radius: float = 1.0, turn: float = -pi / 2) -> Polygon:
    angles = [turn + 2 * pi * at / corners for at in range(corners)]
    return [(radius * cos(angle), radius * sin(angle)) for angle in angles]


def _star() -> Polygon:
    outer, inner = _regular(5, 1.12), _regular(5, 0.47, -pi / 2 + pi / 5)
    return [point for pair in zip(outer, inner, strict=True) for point in pair]


def _cross(arm: float = 0.32) -> Polygon:
    quarter = [(arm, -1.0), (arm, -arm), (1.0, -arm)]
    points: Polygon = []
    for _ in range(4):
        points += quarter
        quarter = [(-y, x) for x, y in quarter]
    return points


def _heart() -> Polygon:
    angles = [2 * pi * at / 60 for at in range(60)]
    curve = [(16 * sin(t) ** 3, 13 * cos(t) - 5 * cos(2 * t) - 2 * cos(3 * t) - cos(4 * t)) for t in angles]
    return [(x / 16, -(y + 2.5) / 15) for x, y in curve]


def _crescent() -> Polygon:
    """The area between two circles: along the rim of the moon and back along the shadow."""
    rim = [(cos(t), sin(t)) for t in (pi / 3 + (4 * pi / 3) * at / 40 for at in range(41))]
    # The shadow passes through both tips (0.5, ±0.866) with its centre at (0.62, 0).
    radius, tip = 0.8743, 1.7085
    back = [
        (0.62 + radius * cos(t), radius * sin(t)) for t in (-tip - (2 * pi - 2 * tip) * at / 40 for at in range(41))
    ]
    return [(x + 0.2, y) for x, y in rim + back]


RING_HOLE = 0.52
CIRCLE = _regular(64)
OUTLINES: dict[str, Polygon] = {
    "circle": CIRCLE,
    "square": [(-0.86, -0.86), (0.86, -0.86), (0.86, 0.86), (-0.86, 0.86)],
    "triangle": [(0.0, -1.0), (1.0, 0.8), (-1.0, 0.8)],
    "star": _star(),
    "ring": CIRCLE,
    "cross": _cross(),
    "heart": _heart(),
    "hexagon": _regular(6),
    "diamond": [(0.0, -1.1), (0.68, 0.0), (0.0, 1.1), (-0.68, 0.0)],
    "crescent": _crescent(),
}
# The largest rotation in degrees at which a shape does not look like another one.
TURNS = {"square": 12, "diamond": 10, "cross": 14, "heart": 18, "triangle": 18, "star": 36, "crescent": 180}
