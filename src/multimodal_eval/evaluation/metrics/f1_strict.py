"""Strict macro F1: is the predicted label the gold label?

    F_k = 2 TP_k / (gold_k + predicted_k),   macro F1 = (1/K) sum_k F_k over all K labels; absent labels count as 0

Reference:
    Opitz and Burst (2019). Macro F1 and Macro F1. arXiv:1911.03347: use the mean of the F_k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multimodal_eval.core.registry import register
from multimodal_eval.data.labels.taxonomy import Taxonomy
from multimodal_eval.evaluation.label_metric import MacroF1Metric

if TYPE_CHECKING:
    from multimodal_eval.data.labels.taxonomy import Codes

__all__ = ["compute_f1_strict"]


class F1Strict(MacroF1Metric):
    """Macro F1 of the predicted label against the gold label."""

    name = "f1_strict"
    version = "1"
    needs = ("generated_answer", "expected_answer")
    uses_annotations = False

    def golds(self, predicted: Codes, labels: Codes, taxonomy: Taxonomy) -> Codes:
        """The gold label."""
        return labels


compute_f1_strict = F1Strict()
register(compute_f1_strict)
