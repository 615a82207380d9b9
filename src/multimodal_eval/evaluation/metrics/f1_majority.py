"""Majority-vote macro F1: is the predicted label the one that most annotators gave?

The gold label is the mode of the annotators' labels, every annotator counting, ties broken alphabetically; samples
without one are unscored. Macro F1 is then the usual one (see f1_strict.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from multimodal_eval.core.registry import register
from multimodal_eval.data.labels.taxonomy import Taxonomy
from multimodal_eval.evaluation.label_metric import MacroF1Metric


class F1Majority(MacroF1Metric):
    """Macro F1 of the predicted label against the annotators' majority vote."""

    name = "f1_majority"
    version = "1"
    needs = ("generated_answer", "annotations")
    summary = __doc__ or ""

    def golds(self, predicted: int, gold: int, annotations: Sequence[int], taxonomy: Taxonomy) -> list[int]:
        """The label given most often; of several the alphabetically first."""
        votes = Counter(code for code in annotations if code >= 0)
        return sorted(votes, key=lambda code: (-votes[code], taxonomy.labels[code]))[:1]


compute_f1_majority = F1Majority()
register(compute_f1_majority)
