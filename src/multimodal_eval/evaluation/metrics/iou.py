"""Intersection over union: how well does the box in the answer cover the gold box?

    IoU = area of (A and G) / area of (A or G)

The box A is read out of the answer by a rule. With several gold boxes, the best one counts.
"""

from __future__ import annotations

from typing import Annotated

from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.regions import best_overlap

__all__ = ["compute_iou"]

BoxRuleName = Annotated[str, "how boxes are read out of the answer", RuleFamily("box")]
UNREAD = "unread"  # the answer has no box


@metric("iou", version="1", needs=("generated_answer", "boxes"), bounds=(0, 1), placement="thread", blank=0.0)
def compute_iou(sample: Sample, *, rule: BoxRuleName = "mmeval@1") -> Score:
    """Overlap of the box in the answer with the gold box; 0 if the answer has no box."""
    overlap = best_overlap(sample, find_rule("box", rule).function)
    if isinstance(overlap, Score):
        return overlap
    value, box = overlap
    return Score(value, warning=UNREAD) if box is None else Score(value, details={"read": list(box.corners)})
