"""Any-match macro F1: did any annotator give the predicted label?

With p the predicted label and G the labels of the taxonomy that annotators gave, a sample counts for the gold label

    p                               if p in G
    the alphabetically first of G   otherwise (option `charge: first`); every label of G with `charge: all`

and is unscored if G is empty. Macro F1 is then computed as usual (see f1_strict.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.data.labels.taxonomy import Taxonomy
from multimodal_eval.evaluation.label_metric import LabelMetric, MacroF1Metric

if TYPE_CHECKING:
    from multimodal_eval.data.labels.taxonomy import Codes

__all__ = ["compute_f1_any_match"]

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
