"""TER as sacrebleu computes it: how many edits turn the text into a reference, per word of the reference? In percent.

Edits are insertions, deletions and substitutions of words, and shifts of a sequence of words to another place:

    TER = 100 * edits / length of the reference

With several references, the fewest edits count, and the mean length. The corpus score is the ratio of the sums.

Reference:
    Snover, Dorr, Schwartz, Micciulla and Makhoul (2006). A Study of Translation Edit Rate with Targeted Human
    Annotation. AMTA; the implementation is sacrebleu 2.6.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from multimodal_eval._native import ter as native_ter
from multimodal_eval.core.metric import configured
from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.evaluation.sacrebleu_metric import SacrebleuMetric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval._native import TextLists, Texts

    Vector = NDArray[np.float64]

__all__ = ["compute_ter", "ter"]


class Ter(SacrebleuMetric):
    """Edits per 100 words of the reference, with shifts of words, as sacrebleu computes it."""

    name = "ter"
    version = "1"
    bounds = (0, None)
    direction = "lower"
    options = Options(
        normalized=Option(bool, False, help="whether punctuation is split off, as Tercom does"),
        no_punct=Option(bool, False, help="whether punctuation is removed"),
        asian_support=Option(
            bool, False, help="whether these two also split Han characters and handle their punctuation"
        ),
        case_sensitive=Option(bool, False, help="whether upper and lower case differ"),
    )

    def sentence_scores(self, candidates: Texts, references: TextLists) -> tuple[Vector, Vector]:
        """The score of each sample, the fewest edits and the mean length of the references."""
        return native_ter(candidates, references, **self.options)

    def scores_of_sums(self, sums: Vector) -> Vector:
        """Edits per 100 words; without any words, 100 if there are edits."""
        import numpy as np

        edits, lengths = sums[:, 0], sums[:, 1]
        rates: Vector = 100 * np.divide(edits, lengths, where=lengths > 0, out=(edits > 0).astype(np.float64))
        return rates

    def gradient(self, sums: Vector) -> Vector:
        """d TER / d edits and d TER / d length."""
        import numpy as np

        gradient = np.zeros(len(sums))
        edits, length = float(sums[0]), float(sums[1])
        if length > 0:
            gradient[:2] = 100 / length, -100 * edits / length**2
        return gradient

    def origin_settings(self) -> Mapping[str, object]:
        """The settings in sacrebleu's signature."""
        return {
            "case": "mixed" if self.options["case_sensitive"] else "lc",
            "tok": "tercom",
            "norm": self.options["normalized"],
            "punct": not self.options["no_punct"],
            "asian": self.options["asian_support"],
        }


compute_ter = Ter()
register(compute_ter)


def ter(candidate: str, references: Sequence[str], **options: bool) -> float:
    """TER of one text against its references, in percent. The options are those of the metric."""
    return configured(compute_ter, options).score_text(candidate, references)
