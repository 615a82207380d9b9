"""Soft score: what share of the annotators gave the predicted label?

soft score = |{annotators who gave p}| / |{annotators who gave a label of the taxonomy}|,  averaged over samples
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from multimodal_eval.core.registry import register
from multimodal_eval.core.score import Score
from multimodal_eval.data.labels.taxonomy import Taxonomy
from multimodal_eval.evaluation.label_metric import LabelMetric

if TYPE_CHECKING:
    from multimodal_eval.data.labels.taxonomy import Codes

__all__ = ["compute_soft_score"]


class SoftScore(LabelMetric):
    """The share of annotators who gave the predicted label."""

    name = "soft_score"
    version = "1"
    needs = ("generated_answer", "annotations")

    def fixed_settings(self) -> dict[str, int]:
        """None: the aggregate is a mean."""
        return {}

    def score_codes(self, predicted: Codes, labels: Codes, taxonomy: Taxonomy) -> list[Score | None]:
        """The shares; None if no annotator gave a label."""
        from multimodal_eval.stats.multi_annotator import soft_shares

        return [None if isnan(share) else Score(share) for share in soft_shares(predicted, labels).tolist()]


compute_soft_score = SoftScore()
register(compute_soft_score)
