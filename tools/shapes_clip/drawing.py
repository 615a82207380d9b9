"""Draws scenes as antialiased images. The same seed gives the same image."""

from __future__ import annotations

from math import ceil, cos, radians, sin
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tools.shapes_clip.layout import Placed, lay_out
from tools.shapes_clip.outlines import CIRCLE, RING_HOLE, TURNS, Polygon, outline
from tools.shapes_clip.scenes import Background, Group, Scene

RGB = tuple[int, int, int]

PAINT: dict[str, RGB] = {
    "red": (218, 32, 38),
    "orange": (247, 132, 16),
    "yellow": (250, 214, 30),
    "green": (38, 158, 66),
    "blue": (34, 88, 214),
    "purple": (124, 46, 168),
    "pink": (250, 140, 186),
    "brown": (122, 74, 36),
    "black": (22, 22, 26),
    "white": (250, 250, 248),
    "gray": (142, 146, 152),
}
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
FINER = 3  # scale at which things are drawn before they are reduced
# The second colour of a pattern: the share of black or white that is mixed into the first.
CONTRAST = {"yellow": (BLACK, 0.72), "white": (BLACK, 0.38), "black": (WHITE, 0.48), "pink": (BLACK, 0.7)}
DEFAULT_CONTRAST = (WHITE, 0.88)


def draw(scene: Scene, seed: int, size: int = 224) -> Image.Image:
    """The scene as an RGB image of `size` x `size`; the seed chooses positions, rotations and shades."""
    random = Random(seed)
    canvas = _background(scene.background, size, random)
    shades = [_shade(PAINT[group.colour], random) for group in scene.groups]
    lined = random.random() < 0.5
    angles = [random.uniform(0, 180) for _ in scene.groups]
    for thing in lay_out(scene, random):
        group = scene.groups[thing.group]
        _paint(canvas, group, thing, shades[thing.group], angles[thing.group], lined, random)
    return canvas


def _shade(colour: RGB, random: Random, spread: int = 14) -> RGB:
    light = random.uniform(-spread, spread)
    red, green, blue = (round(min(255, max(0, value + light + random.uniform(-5, 5)))) for value in colour)
    return red, green, blue


def _mix(colour: RGB, other: RGB, share: float) -> RGB:
    red, green, blue = (round(first + (second - first) * share) for first, second in zip(colour, other, strict=True))
    return red, green, blue


def pattern(texture: str, side: int, cell: float, angle: float, shift: float) -> NDArray[np.bool_]:
    """A mask of the second colour of a texture, on a square of `side` pixels, with cells of `cell` pixels."""
    turn = radians(angle)
    along = np.arange(side, dtype=np.float32) + np.float32(shift)
    u = (along[None, :] * np.float32(cos(turn)) + along[:, None] * np.float32(sin(turn))) / np.float32(cell)
    if texture == "striped":
        return np.asarray(u % 2 < 1)
    v = (along[:, None] * np.float32(cos(turn)) - along[None, :] * np.float32(sin(turn))) / np.float32(cell)
    if texture == "checked":
        return np.asarray((np.floor(u) + np.floor(v)) % 2 < 1)
    return np.asarray((u % 2 - 1) ** 2 + (v % 2 - 1) ** 2 < 0.36)


def _background(background: Background, size: int, random: Random) -> Image.Image:
    colour = _shade(PAINT[background.colour], random, 10)
    if background.texture == "plain":
        light = random.uniform(-0.08, 0.08)  # a slight gradient from above or below
        ends = [_mix(colour, WHITE if share > 0 else BLACK, abs(share)) for share in (light, -light)]
        column: Any = Image.new("RGB", (1, 2))
        column.putdata(ends)
        resized: Image.Image = column.resize((size, size), Image.Resampling.BILINEAR)
        return resized
    dark = sum(colour) < 300
    second = _mix(colour, WHITE if dark else BLACK, random.uniform(0.2, 0.3))
    angle = random.uniform(-8, 8) + (random.choice((0, 45, 90, 135)) if background.texture == "striped" else 0)
    cell = size * 2 * random.uniform(0.035, 0.055)
    mask = pattern(background.texture, size * 2, cell, angle, random.uniform(0, 99))
    canvas = Image.new("RGB", (size, size), colour)
    canvas.paste(second, (0, 0), Image.fromarray(mask).convert("L").reduce(2))
    return canvas


def _paint(
    canvas: Image.Image, group: Group, thing: Placed, colour: RGB, angle: float, lined: bool, random: Random
) -> None:
    size = canvas.width
    radius = thing.radius * size
    half = ceil(radius * 1.3)
    left, top = round(thing.x * size) - half, round(thing.y * size) - half
    middle = ((thing.x * size - left) * FINER, (thing.y * size - top) * FINER)
    side = 2 * half * FINER
    allowed = TURNS.get(group.shape, 30)
    corners = _turned(outline(group.shape), random.uniform(-allowed, allowed), radius * FINER, middle)
    hole = _turned(CIRCLE, 0, RING_HOLE * radius * FINER, middle) if group.shape == "ring" else None
    mask = _mask(side, corners, hole)
    patch = Image.new("RGB", (side, side), colour)
    if group.texture != "plain":
        share = random.uniform(0.26, 0.34) if group.texture != "checked" else random.uniform(0.3, 0.38)
        tilt = angle if group.texture == "striped" else angle / 12
        marks = pattern(group.texture, side, share * radius * FINER, tilt, random.uniform(0, 99))
        patch.paste(
            _mix(colour, *CONTRAST.get(group.colour, DEFAULT_CONTRAST)), (0, 0), Image.fromarray(marks).convert("L")
        )
    if lined:
        _line(patch, (corners, hole), _mix(colour, BLACK, 0.35), round(max(1.0, radius * 0.05) * FINER))
    canvas.paste(patch.reduce(FINER), (left, top), mask.reduce(FINER))


def _turned(polygon: Polygon, degrees: float, scale: float, middle: tuple[float, float]) -> Polygon:
    c, s = cos(radians(degrees)) * scale, sin(radians(degrees)) * scale
    return [(middle[0] + c * x - s * y, middle[1] + s * x + c * y) for x, y in polygon]


def _mask(side: int, corners: Polygon, hole: Polygon | None) -> Image.Image:
    mask = Image.new("L", (side, side), 0)
    pen = ImageDraw.Draw(mask)
    pen.polygon(corners, fill=255)
    if hole is not None:
        pen.polygon(hole, fill=0)
    return mask


def _line(patch: Image.Image, polygons: tuple[Polygon | None, ...], colour: RGB, width: int) -> None:
    pen = ImageDraw.Draw(patch)
    for polygon in polygons:
        if polygon is not None:
            pen.line([*polygon, polygon[0], polygon[1]], fill=colour, width=2 * width, joint="curve")
