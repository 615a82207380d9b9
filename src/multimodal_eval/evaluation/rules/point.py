"""Rules that read a point out of an answer.

A rule takes the answer and returns the point that it states, with the unit of its coordinates, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from multimodal_eval.core.rules import rule
from multimodal_eval.evaluation.rules.box import SEARCHED, PlacedBox, Unit, default_box, refcoco, screenspot

__all__ = ["PlacedPoint", "PointRule"]


class PlacedPoint(NamedTuple):
    """A point with the unit of its coordinates."""

    x: float
    y: float
    unit: Unit


PointRule: TypeAlias = Callable[[str], PlacedPoint | None]

_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)"
_PAIR = re.compile(rf"[\[(]\s*({_NUMBER})\s*,\s*({_NUMBER})\s*[\])]")
_ROUND_PAIR = re.compile(r"\(([-+]?\d*\.?\d+)\s*,\s*([-+]?\d*\.?\d+)\)")
_MOLMO = re.compile(rf"\bx1?\s*=\s*\"?\s*({_NUMBER})\s*\"?\s*,?\s*y1?\s*=\s*\"?\s*({_NUMBER})")


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
