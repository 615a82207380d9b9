"""Majority-vote macro F1: is the predicted label the one that most annotators gave?

The gold label is the mode of the annotators' labels. Every annotator counts, and ties are broken alphabetically.
Samples without labels are unscored. Macro F1 is then computed as usual (see f1_strict.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multimodal_eval.core.registry import register
from multimodal_eval.data.labels.taxonomy import Taxonomy
from multimodal_eval.evaluation.label_metric import MacroF1Metric

if TYPE_CHECKING:
    from multimodal_eval.data.labels.taxonomy import Codes

__all__ = ["compute_f1_majority"]


class F1Majority(MacroF1Metric):
    """Macro F1 of the predicted label against the annotators' majority vote."""

    name = "f1_majority"
    version = "1"
    needs = ("generated_answer", "annotations")

    def golds(self, predicted: Codes, labels: Codes, taxonomy: Taxonomy) -> Codes:
        """The most frequent label; ties go to the alphabetically first."""
        from multimodal_eval.stats.multi_annotator import majority_codes

        return majority_codes(labels, taxonomy.labels)[:, None]


compute_f1_majority = F1Majority()
register(compute_f1_majority)
