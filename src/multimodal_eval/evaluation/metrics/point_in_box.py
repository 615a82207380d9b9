"""Point in box: is the point in the answer inside the gold box?

    point_in_box = 1 if left <= x <= right and top <= y <= bottom for any gold box, else 0

The point is read out of the answer by a rule.
"""

from __future__ import annotations

from typing import Annotated

from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import UNREAD, Score, unscored
from multimodal_eval.evaluation.regions import NO_SIZE, gold_boxes, point_of
from multimodal_eval.evaluation.rules.point import PointRule

__all__ = ["compute_point_in_box"]

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
