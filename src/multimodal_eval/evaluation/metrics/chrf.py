"""chrF as sacrebleu computes it: how many character n-grams do text and reference share? 0 to 100.

With the n-grams of order i of the text (h), of the reference (r) and shared (m), and N orders that both texts have:

    P = 1/N * sum_i m_i / h_i        R = 1/N * sum_i m_i / r_i
    chrF = 100 * (1 + beta^2) P R / (beta^2 P + R),  beta = 2, orders 1 to 6

`word_order=2` adds words and pairs of words and is chrF++. With several references, the one with the largest score
counts. The corpus score comes from summed counts and is not the mean over samples.

Reference:
    Popović (2015). chrF: character n-gram F-score for automatic MT evaluation. WMT;
    Popović (2017). chrF++: words helping character n-grams. WMT; the implementation is sacrebleu 2.6.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from multimodal_eval._native import chrf as native_chrf
from multimodal_eval._native import chrf_of_sums
from multimodal_eval.core.metric import configured
from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.evaluation.sacrebleu_metric import MOST_ORDERS, SacrebleuMetric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval._native import TextLists, Texts

    Vector = NDArray[np.float64]

__all__ = ["chrf", "compute_chrf"]


class Chrf(SacrebleuMetric):
    """F-score of shared character n-grams, as sacrebleu computes it. With word_order=2 it is chrF++."""

    name = "chrf"
    version = "1"
    options = Options(
        char_order=Option(int, 6, help="the longest n-grams of characters"),
        word_order=Option(int, 0, help="the longest n-grams of words: 0 for chrF, 2 for chrF++"),
        beta=Option(int, 2, help="how much more recall weighs than precision"),
        lowercase=Option(bool, False, help="whether texts are compared in lower case", is_quiet=True),
        whitespace=Option(bool, False, help="whether white space counts as characters", is_quiet=True),
        eps_smoothing=Option(
            bool, False, help="whether orders that a text is too short for count as 0, as in chrF++.py", is_quiet=True
        ),
    )

    def settle(self) -> None:
        """Refuse orders and weights out of range."""
        self.check_range("char_order", 1, MOST_ORDERS)
        self.check_range("word_order", 0, MOST_ORDERS)
        self.check_range("beta", 0)

    def sentence_scores(self, candidates: Texts, references: TextLists) -> tuple[Vector, Vector]:
        """The score of each sample, and for each order the n-grams of the text, of the reference and shared."""
        return native_chrf(candidates, references, **self.options)

    def scores_of_sums(self, sums: Vector) -> Vector:
        """The F-score for each row of summed counts, 0 to 100."""
        return chrf_of_sums(sums, **self.options)

    def gradient(self, sums: Vector) -> Vector:
        """d chrF / d counts."""
        import numpy as np

        gradient = np.zeros(len(sums))
        factor: float = self.options["beta"] ** 2
        used = [(order, *counts) for order, counts in enumerate(self._counts(sums)) if counts[0] > 0 and counts[1] > 0]
        if not any(match for *_, match in used):
            return gradient
        if self.options["eps_smoothing"]:
            for order, hypothesis, reference, match in used:
                below = factor * reference + hypothesis
                scale = 100 * (1 + factor) / self._orders / below
                gradient[3 * order : 3 * order + 3] = (
                    -scale * match / below,
                    -scale * match * factor / below,
                    scale,
                )
            return gradient
        precision = sum(match / hypothesis for _, hypothesis, _, match in used) / len(used)
        recall = sum(match / reference for _, _, reference, match in used) / len(used)
        scale = 100 * (1 + factor) / (factor * precision + recall) ** 2 / len(used)
        by_precision, by_recall = scale * recall**2, scale * factor * precision**2
        for order, hypothesis, reference, match in used:
            gradient[3 * order : 3 * order + 3] = (
                -by_precision * match / hypothesis**2,
                -by_recall * match / reference**2,
                by_precision / hypothesis + by_recall / reference,
            )
        return gradient

    @property
    def _orders(self) -> int:
        return int(self.options["char_order"] + self.options["word_order"])

    def _counts(self, sums: Vector) -> list[tuple[float, float, float]]:
        values = sums[: 3 * self._orders].tolist()
        return list(zip(values[::3], values[1::3], values[2::3], strict=True))

    def origin_settings(self) -> Mapping[str, object]:
        """The settings in sacrebleu's signature."""
        return {
            "case": "lc" if self.options["lowercase"] else "mixed",
            "eff": not self.options["eps_smoothing"],
            "nc": self.options["char_order"],
            "nw": self.options["word_order"],
            "space": self.options["whitespace"],
        }


compute_chrf = Chrf()
register(compute_chrf)


def chrf(candidate: str, references: Sequence[str], **options: bool | int) -> float:
    """chrF of one text against its references, 0 to 100. The options are those of the metric."""
    return configured(compute_chrf, options).score_text(candidate, references)
