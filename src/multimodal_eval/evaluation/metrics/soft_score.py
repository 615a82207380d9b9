"""Soft score: which share of the annotators gave the predicted label?

soft score = |{annotators who gave p}| / |{annotators who gave a label of the taxonomy}|,  averaged over samples
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import register
from multimodal_eval.core.score import Score
from multimodal_eval.data.labels.taxonomy import Taxonomy
from multimodal_eval.evaluation.label_metric import LabelMetric


class SoftScore(LabelMetric):
    """The share of annotators who gave the predicted label."""

    name = "soft_score"
    version = "1"
    needs = ("generated_answer", "annotations")
    summary = __doc__ or ""

    def fixed_settings(self) -> dict[str, int]:
        """A mean has none."""
        return {}

    def score_codes(self, predicted: int, gold: int, annotations: Sequence[int], taxonomy: Taxonomy) -> Score | None:
        """The share; None where no annotator gave a label."""
        given = [code for code in annotations if code >= 0]
        return Score(given.count(predicted) / len(given)) if given else None


compute_soft_score = SoftScore()
register(compute_soft_score)
