"""Boxes and points of answers, in the unit of the gold boxes: iou, acc_at_iou and point_in_box.

Intersection over union: how well does the box in the answer cover the gold box?

    IoU = area of (A and G) / area of (A or G)

The box A is read out of the answer by a rule. With several gold boxes, the best one counts.

Accuracy at an overlap: is the intersection over union of the boxes at least the threshold?

    Acc@t = 1 if IoU >= t, else 0

RefCOCO reports t = 0.5. The parts give the accuracy at 0.1, 0.3, 0.5, 0.7 and 0.9.

Point in box: is the point in the answer inside the gold box?

    point_in_box = 1 if left <= x <= right and top <= y <= bottom for any gold box, else 0

The point is read out of the answer by a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Annotated

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import UNREAD, Score, unscored
from multimodal_eval.evaluation.rules.box import BoxRule, Corners, PlacedBox, PlacedPoint, PointRule, Unit

__all__ = [
    "BoxRuleName",
    "best_overlap",
    "compute_acc_at_iou",
    "compute_iou",
    "compute_point_in_box",
    "gold_boxes",
    "intersection_over_union",
    "point_of",
    "scale_of",
]

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


@metric("iou", version="1", needs=("generated_answer", "boxes"), bounds=(0, 1), placement="thread", blank=0.0)
def compute_iou(sample: Sample, *, rule: BoxRuleName = "mmeval@1") -> Score:
    """Overlap of the box in the answer with the gold box; 0 if the answer has no box."""
    overlap = best_overlap(sample, find_rule("box", rule).function)
    if isinstance(overlap, Score):
        return overlap
    value, box = overlap
    return Score(value, warning=UNREAD) if box is None else Score(value, details={"read": list(box.corners)})


Threshold = Annotated[float, "the overlap from which a box is right, above 0 and at most 1"]
PARTS = (10, 30, 50, 70, 90)  # percent


@metric("acc_at_iou", version="1", needs=("generated_answer", "boxes"), bounds=(0, 1), placement="thread")
def compute_acc_at_iou(sample: Sample, *, rule: BoxRuleName = "mmeval@1", threshold: Threshold = 0.5) -> Score:
    """Whether the box in the answer overlaps the gold box enough; 0 if the answer has no box."""
    if not 0 < threshold <= 1:
        raise ConfigError(f"the option `threshold` of acc_at_iou must be above 0 and at most 1. Got {threshold!r}.")
    overlap = best_overlap(sample, find_rule("box", rule).function)
    if isinstance(overlap, Score):
        return overlap
    value, box = overlap
    parts = {f"at_{percent}": float(value >= percent / 100) for percent in PARTS}
    details = None if box is None else {"read": list(box.corners), "iou": value}
    return Score(float(value >= threshold), parts=parts, details=details, warning=UNREAD if box is None else None)


PointRuleName = Annotated[str, "how the point is read out of the answer", RuleFamily("point")]


@metric("point_in_box", version="1", needs=("generated_answer", "boxes"), bounds=(0, 1), placement="thread", blank=0.0)
def compute_point_in_box(sample: Sample, *, rule: PointRuleName = "mmeval@1") -> Score:
    """Whether the point in the answer is in a gold box; 0 if the answer has no point."""
    read: PointRule = find_rule("point", rule).function
    golds = gold_boxes(sample)
    if not golds:
        return unscored("missing_input", "boxes: there is no gold box")
    placed = read(sample.generated_answer or "")
    if placed is None:
        return Score(0.0, warning=UNREAD)
    point = point_of(sample, placed)
    if point is None:
        return unscored("missing_input", NO_SIZE)
    x, y = point
    hits = any(left <= x <= right and top <= y <= bottom for left, top, right, bottom in golds)
    return Score(float(hits), details={"read": [x, y]})
