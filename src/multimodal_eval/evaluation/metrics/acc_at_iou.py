"""Accuracy at an overlap: is the intersection over union of the boxes at least the threshold?

    Acc@t = 1 if IoU >= t, else 0

RefCOCO reports t = 0.5. The parts give the accuracy at 0.1, 0.3, 0.5, 0.7 and 0.9.
"""

from __future__ import annotations

from typing import Annotated

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import UNREAD, Score
from multimodal_eval.evaluation.regions import BoxRuleName, best_overlap

__all__ = ["compute_acc_at_iou"]

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
