"""Boxes and points of answers in the unit of the gold boxes, and how they overlap."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Annotated

from multimodal_eval.core.rules import RuleFamily
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.evaluation.rules.box import BoxRule, Corners, PlacedBox, Unit
from multimodal_eval.evaluation.rules.point import PlacedPoint

__all__ = ["BoxRuleName", "best_overlap", "gold_boxes", "intersection_over_union", "point_of", "scale_of"]

# The type of an option that names a rule for boxes.
BoxRuleName = Annotated[str, "how boxes are read out of the answer", RuleFamily("box")]

_PARTS = {"fraction": 1.0, "percent": 100.0, "thousandth": 1000.0}
_SIZES = (("width", "height"), ("image_width", "image_height"), ("img_width", "img_height"))
NO_SIZE = (
    "the answer gives parts of the image and the gold boxes are in pixels: add the columns `width` and `height`, or "
    "gold boxes as fractions"
)
Scale = tuple[float, float]


def gold_boxes(sample: Sample) -> list[Corners]:
    """The gold boxes; any of them is right."""
    return [box.box for box in sample.boxes or ()]


def scale_of(unit: Unit, golds: Sequence[Corners], sample: Sample) -> Scale | None:
    """The factors that bring coordinates to the unit of the gold boxes; None if the size of the image is unknown.

    Gold boxes whose coordinates are all at most 1 are fractions of the image.
    """
    if unit == "gold":
        return 1.0, 1.0
    parts = _PARTS[unit]
    if max(max(box) for box in golds) <= 1:
        return 1 / parts, 1 / parts
    size = _size(sample)
    return None if size is None else (size[0] / parts, size[1] / parts)


def _size(sample: Sample) -> Scale | None:
    for names in _SIZES:
        width, height = (sample.metadata.get(name) for name in names)
        try:
            size = float(width), float(height)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        if all(isfinite(side) and side > 0 for side in size):
            return size
    return None


def intersection_over_union(first: Corners, second: Corners) -> float:
    """The common area divided by the area of both together; 0 if a box has no area."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    common = max(0.0, width) * max(0.0, height)
    union = _area(first) + _area(second) - common
    return common / union if union > 0 else 0.0


def _area(box: Corners) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def best_overlap(sample: Sample, rule: BoxRule) -> tuple[float, PlacedBox | None] | Score:
    """The largest overlap of a box of the answer with a gold box, and that box; a Score if it cannot be computed."""
    golds = gold_boxes(sample)
    if not golds:
        return unscored("missing_input", "boxes: there is no gold box")
    best: tuple[float, PlacedBox | None] = (0.0, None)
    for box in rule(sample.generated_answer or ""):
        scale = scale_of(box.unit, golds, sample)
        if scale is None:
            return unscored("missing_input", NO_SIZE)
        corners = _scaled(box.corners, scale)
        overlap = max(intersection_over_union(corners, gold) for gold in golds)
        if best[1] is None or overlap > best[0]:
            best = overlap, PlacedBox(corners, "gold")
    return best


def _scaled(box: Corners, scale: Scale) -> Corners:
    return box[0] * scale[0], box[1] * scale[1], box[2] * scale[0], box[3] * scale[1]


def point_of(sample: Sample, point: PlacedPoint) -> tuple[float, float] | None:
    """The point in the unit of the gold boxes; None if the size of the image is unknown."""
    scale = scale_of(point.unit, gold_boxes(sample), sample)
    return None if scale is None else (point.x * scale[0], point.y * scale[1])
