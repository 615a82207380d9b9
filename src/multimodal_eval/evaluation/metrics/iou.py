"""Intersection over union: how well does the box in the answer cover the gold box?

    IoU = area of (A and G) / area of (A or G)

The box A is read out of the answer by a rule. With several gold boxes, the best one counts.
"""

from __future__ import annotations

from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import UNREAD, Score
from multimodal_eval.evaluation.regions import BoxRuleName, best_overlap

__all__ = ["compute_iou"]


@metric("iou", version="1", needs=("generated_answer", "boxes"), bounds=(0, 1), placement="thread", blank=0.0)
def compute_iou(sample: Sample, *, rule: BoxRuleName = "mmeval@1") -> Score:
    """Overlap of the box in the answer with the gold box; 0 if the answer has no box."""
    overlap = best_overlap(sample, find_rule("box", rule).function)
    if isinstance(overlap, Score):
        return overlap
    value, box = overlap
    return Score(value, warning=UNREAD) if box is None else Score(value, details={"read": list(box.corners)})
