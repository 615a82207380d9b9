"""Rules that read boxes and points out of an answer.

A rule takes the answer and returns the boxes that it may mean, each with the unit of its coordinates; the metric takes
the one that fits best. A rule that returns at most one box therefore commits to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from multimodal_eval.core.rules import rule

__all__ = ["BoxRule", "Corners", "PlacedBox", "PlacedPoint", "PointRule", "Unit"]


# `gold`: the unit of the gold boxes; the others are parts of the width and height of the image.
Unit: TypeAlias = Literal["gold", "fraction", "percent", "thousandth"]
Corners: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


class PlacedBox(NamedTuple):
    """A box with the unit of its coordinates."""

    corners: Corners
    unit: Unit


BoxRule: TypeAlias = Callable[[str], list[PlacedBox]]

_NUMBER = r"-?\d+(?:\.\d+)?"
_FOUR = rf"\s*({_NUMBER}),\s*({_NUMBER}),\s*({_NUMBER}),\s*({_NUMBER})\s*"
_SQUARE = re.compile(rf"\[{_FOUR}\]")
_SQUARE_OR_ROUND = re.compile(rf"[\[(]{_FOUR}[\])]")
_CORNERS = re.compile(rf"\(\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\)\s*,?\s*\(\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\)")
_LOOSE = re.compile(rf"\[?\s*({_NUMBER})\s*[,\s]\s*({_NUMBER})\s*[,\s]\s*({_NUMBER})\s*[,\s]\s*({_NUMBER})\s*\]?")
_CODE_BLOCK = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL | re.IGNORECASE)
_KEYS = ("bbox_2d", "bbox", "box", "coordinates", "coord", "location", "position")
_TAGS = ("<box>", "<|box_start|>")  # of Qwen-VL and InternVL, whose coordinates are thousandths
SEARCHED = 1_000_000  # letters of an answer that are searched


def _corners(match: re.Match[str]) -> Corners:
    left, top, right, bottom = map(float, match.groups())
    return left, top, right, bottom


@rule("box", "mmeval@1", origin="multimodal-eval")
def default_box(answer: str) -> list[PlacedBox]:
    """The first box of the answer, in any of the common forms.

    JSON (a list of four numbers, or an object with bbox_2d, bbox, box, …, also in a code block), four numbers in
    brackets, or two corners as (x, y), (x, y). After `<box>` or `<|box_start|>`, coordinates are thousandths of the
    image; otherwise numbers of at most 1 are fractions of it, and others have the unit of the gold boxes.
    Five numbers in brackets are not a box.
    """
    text = answer[:SEARCHED]
    tagged = max((text.find(tag) for tag in _TAGS), default=-1)
    match = None
    if tagged >= 0:
        match = _CORNERS.search(text, tagged) or _SQUARE_OR_ROUND.search(text, tagged)
        return [] if match is None else [PlacedBox(_corners(match), "thousandth")]
    boxes = list(_boxes_of(_json(text)))
    if not boxes:
        places = [match for pattern in (_SQUARE_OR_ROUND, _CORNERS) if (match := pattern.search(text))]
        boxes = [_corners(place) for place in sorted(places, key=lambda place: place.start())[:1]]
    return [PlacedBox(boxes[0], "fraction" if max(map(abs, boxes[0])) <= 1 else "gold")] if boxes else []


@rule("box", "lmms-eval@0.7.3/refcoco", origin="tasks/refcoco/utils_rec.py of lmms-eval 0.7.3")
def refcoco(answer: str) -> list[PlacedBox]:
    """The first four numbers in square brackets, separated by commas, as fractions of the image."""
    match = _SQUARE.search(answer[:SEARCHED])
    return [] if match is None else [PlacedBox(_corners(match), "fraction")]


@rule("box", "lmms-eval@0.7.3/screenspot", origin="tasks/screenspot/utils_rec.py of lmms-eval 0.7.3")
def screenspot(answer: str) -> list[PlacedBox]:
    """The first four numbers in square or round brackets; thousandths if one is above 1, else fractions."""
    match = _SQUARE_OR_ROUND.search(answer[:SEARCHED])
    if match is None:
        return []
    corners = _corners(match)
    return [PlacedBox(corners, "thousandth" if max(corners) > 1 else "fraction")]


@rule("box", "lmms-eval@0.7.3/refcoco_grounding", origin="tasks/refcoco_grounding/utils.py of lmms-eval 0.7.3")
def refcoco_grounding(answer: str) -> list[PlacedBox]:
    """All boxes of the answer, each both as pixels and as thousandths of the image; the best of them counts.

    Boxes are read from JSON; if there are none, any four numbers in a row are a box. A model that lists many boxes has
    many chances.
    """
    text = answer[:SEARCHED]
    boxes = list(_boxes_of(_json(text))) or [_corners(match) for match in _LOOSE.finditer(text)]
    return [PlacedBox(box, unit) for box in boxes for unit in ("gold", "thousandth")]


@rule("box", "qwen-vl@2023", origin="Bai et al. (2023), Qwen-VL, arXiv:2308.12966, section 2")
def qwen_vl(answer: str) -> list[PlacedBox]:
    """The first two corners as (x, y),(x, y), in thousandths of the image."""
    match = _CORNERS.search(answer[:SEARCHED])
    return [] if match is None else [PlacedBox(_corners(match), "thousandth")]


def _json(text: str) -> Any:
    """The JSON value of the answer: of its first code block, of all of it, or between its outermost brackets."""
    stripped = text.strip()
    block = _CODE_BLOCK.search(stripped)
    candidates = [block.group(1)] if block else []
    candidates.append(stripped)
    for first, last in ("[]", "{}"):
        start, end = stripped.find(first), stripped.rfind(last)
        if start != -1 and end > start:
            candidates.append(stripped[start : end + 1])
    for candidate in candidates:
        try:
            return msgspec.json.decode(candidate)
        except (msgspec.DecodeError, RecursionError):
            continue
    return None


def _boxes_of(value: Any) -> Iterator[Corners]:
    """The boxes in a JSON value, from left to right."""
    if isinstance(value, list):
        corners = _as_corners(value)
        if corners is not None:
            yield corners
        else:
            for item in value:
                yield from _boxes_of(item)
    elif isinstance(value, dict):
        for key in _KEYS:
            corners = _as_corners(value.get(key))
            if corners is not None:
                yield corners
                return
        for item in value.values():
            yield from _boxes_of(item)


def _as_corners(value: Any) -> Corners | None:
    if not isinstance(value, list) or len(value) != 4 or not all(isinstance(item, int | float) for item in value):
        return None
    left, top, right, bottom = map(float, value)
    return left, top, right, bottom


# Rules that read a point out of an answer.
#
# A rule takes the answer and returns the point that it states, with the unit of its coordinates, or None.


class PlacedPoint(NamedTuple):
    """A point with the unit of its coordinates."""

    x: float
    y: float
    unit: Unit


PointRule: TypeAlias = Callable[[str], PlacedPoint | None]

_COORDINATE = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)"
_PAIR = re.compile(rf"[\[(]\s*({_COORDINATE})\s*,\s*({_COORDINATE})\s*[\])]")
_ROUND_PAIR = re.compile(r"\(([-+]?\d*\.?\d+)\s*,\s*([-+]?\d*\.?\d+)\)")
_MOLMO = re.compile(rf"\bx1?\s*=\s*\"?\s*({_COORDINATE})\s*\"?\s*,?\s*y1?\s*=\s*\"?\s*({_COORDINATE})")


def _centre(boxes: list[PlacedBox]) -> PlacedPoint | None:
    if not boxes:
        return None
    (left, top, right, bottom), unit = boxes[0]
    return PlacedPoint((left + right) / 2, (top + bottom) / 2, unit)


@rule("point", "mmeval@1", origin="multimodal-eval")
def default_point(answer: str) -> PlacedPoint | None:
    """The first point of the answer, or the centre of its first box.

    `x="61.5" y="40.4"` are percentages (as Molmo writes them). A pair of numbers in brackets is a fraction of the image
    if both are at most 1, else it has the unit of the gold boxes. Boxes are read by the rule `mmeval@1` for boxes.
    """
    text = answer[:SEARCHED]
    tag = _MOLMO.search(text)
    if tag is not None:
        return PlacedPoint(float(tag.group(1)), float(tag.group(2)), "percent")
    box = _centre(default_box(text))
    if box is not None:
        return box
    pair = _PAIR.search(text)
    if pair is None:
        return None
    x, y = float(pair.group(1)), float(pair.group(2))
    return PlacedPoint(x, y, "fraction" if max(abs(x), abs(y)) <= 1 else "gold")


@rule("point", "lmms-eval@0.7.3/refcoco_center", origin="Center_ACC in tasks/refcoco/utils_rec.py of lmms-eval 0.7.3")
def refcoco_centre(answer: str) -> PlacedPoint | None:
    """The centre of the box that `lmms-eval@0.7.3/refcoco` reads. Without a box it is the corner (0, 0)."""
    return _centre(refcoco(answer)) or PlacedPoint(0.0, 0.0, "fraction")


@rule("point", "lmms-eval@0.7.3/screenspot_center", origin="tasks/screenspot/utils_rec.py of lmms-eval 0.7.3")
def screenspot_centre(answer: str) -> PlacedPoint | None:
    """The centre of the box that `lmms-eval@0.7.3/screenspot` reads. Without a box it is the corner (0, 0)."""
    return _centre(screenspot(answer)) or PlacedPoint(0.0, 0.0, "fraction")


@rule("point", "lmms-eval@0.7.3/pointbench", origin="_text_to_points in tasks/pointbench/utils.py of lmms-eval 0.7.3")
def pointbench(answer: str) -> PlacedPoint | None:
    """The first pair in round brackets: fractions from 0 to 1, else thousandths from 0 to 1000, else pixels.

    PointBench also rounds to whole pixels and looks them up in a mask, which is not done here.
    """
    pair = _ROUND_PAIR.search(answer[:SEARCHED])
    if pair is None:
        return None
    x, y = float(pair.group(1)), float(pair.group(2))
    for limit, unit in ((1, "fraction"), (1000, "thousandth")):
        if 0 <= x <= limit and 0 <= y <= limit:
            return PlacedPoint(x, y, "fraction" if unit == "fraction" else "thousandth")
    return PlacedPoint(x, y, "gold")


@rule("point", "molmo@2024", origin="Deitke et al. (2024), Molmo and PixMo, arXiv:2409.17146")
def molmo(answer: str) -> PlacedPoint | None:
    """The first point of a tag such as `<point x="61.5" y="40.4">`, in percent of the image."""
    tag = _MOLMO.search(answer[:SEARCHED])
    return None if tag is None else PlacedPoint(float(tag.group(1)), float(tag.group(2)), "percent")
