"""Labels: is the predicted label the one that the annotators gave?

f1_strict: macro F1, is the predicted label the gold label?

    F_k = 2 TP_k / (gold_k + predicted_k),   macro F1 = (1/K) sum_k F_k over all K labels; absent labels count as 0

f1_majority: is it the label that most annotators gave? The gold label is the mode of the annotators' labels. Every
annotator counts, and ties are broken alphabetically. Samples without labels are unscored.

f1_any_match: did any annotator give it? With p the predicted label and G the labels of the taxonomy that annotators
gave, a sample counts for the gold label

    p                               if p in G
    the alphabetically first of G   otherwise (option `charge: first`); every label of G with `charge: all`

and is unscored if G is empty.

soft_score: what share of the annotators gave it? The score is the mean over samples of

    |{annotators who gave p}| / |{annotators who gave a label of the taxonomy}|

Reference:
    Opitz and Burst (2019). Macro F1 and Macro F1. arXiv:1911.03347: use the mean of the F_k.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.score import Score
from multimodal_eval.data.labels.taxonomy import Taxonomy
from multimodal_eval.evaluation.label_metric import LabelMetric, MacroF1Metric

if TYPE_CHECKING:
    from multimodal_eval.data.labels.taxonomy import Codes

__all__ = ["compute_f1_any_match", "compute_f1_majority", "compute_f1_strict", "compute_soft_score"]

CHARGES = ("first", "all")


class F1AnyMatch(MacroF1Metric):
    """Macro F1 of the predicted label, which is right if any annotator gave it."""

    name = "f1_any_match"
    version = "1"
    needs = ("generated_answer", "annotations")
    options = Options(
        LabelMetric.options,
        charge=Option(
            str, "first", choices=CHARGES, help="the gold label of a miss: the alphabetically first one, or all of them"
        ),
    )

    def golds(self, predicted: Codes, labels: Codes, taxonomy: Taxonomy) -> Codes:
        """The prediction if an annotator gave it, else the labels that the miss counts for."""
        from multimodal_eval.stats.multi_annotator import any_match_golds

        return any_match_golds(predicted, labels, taxonomy.labels, charge=self.options["charge"])


compute_f1_any_match = F1AnyMatch()
register(compute_f1_any_match)


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
