"""BLEU as sacrebleu computes it: the standard score of machine translation. 0 to 100.

With matching n-grams m, n-grams g, length c and closest reference length r (ties: the shorter), summed over the corpus:

    BLEU = exp( min(0, 1 - r/c) ) * exp( 1/4 * sum_{n<=4} ln( 100 m_n / g_n ) )

An order without a match gets 100 / (2^k g_n) instead, with k = 1, 2, … (smoothing `exp`), if another order has one. The
score of a sample uses only the orders that its text is long enough for, as `sacrebleu.sentence_bleu` does.

Reference:
    Papineni, Roukos, Ward and Zhu (2002). BLEU: a Method for Automatic Evaluation of Machine Translation. ACL;
    Post (2018). A Call for Clarity in Reporting BLEU Scores. WMT; the implementation is sacrebleu 2.6.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from multimodal_eval._native import bleu_of_sums, sentence_bleu
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import configured
from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.evaluation.sacrebleu_metric import MOST_ORDERS, SacrebleuMetric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval._native import TextLists, Texts

    Vector = NDArray[np.float64]

__all__ = ["compute_sacrebleu", "sacrebleu"]

TOKENIZERS = ("13a", "intl", "char", "zh", "none")
SMOOTHING = {"exp": None, "floor": 0.1, "add-k": 1, "none": None}  # method -> its default value


class Sacrebleu(SacrebleuMetric):
    """Corpus BLEU with the tokenizers and the smoothing of sacrebleu."""

    name = "sacrebleu"
    version = "1"
    options = Options(
        tokenizer=Option(
            str, "13a", choices=TOKENIZERS, help="how texts are split; those of sacrebleu that need no other package"
        ),
        smooth_method=Option(
            str, "exp", choices=tuple(SMOOTHING), help="what replaces the precision of an order without a match"
        ),
        smooth_value=Option(
            float | None, None, help="the value for floor (default 0.1) and add-k (default 1)", is_quiet=True
        ),
        lowercase=Option(bool, False, help="whether texts are compared in lower case"),
        max_ngram_order=Option(int, 4, help="the longest n-grams", is_quiet=True),
        effective_order=Option(
            bool,
            False,
            help="whether the corpus score, too, uses only n-gram orders for which the texts are long enough",
            is_quiet=True,
        ),
    )

    def settle(self) -> None:
        """Refuse a smoothing value that is negative or that the method does not have."""
        self.check_range("max_ngram_order", 1, MOST_ORDERS)
        method = self.options["smooth_method"]
        if self.options["smooth_value"] is None:
            return
        self.check_range("smooth_value", 0)
        if SMOOTHING[method] is None:
            raise ConfigError(f"the option `smooth_value` of {self.name} is for floor and add-k. Got {method!r}.")

    @property
    def smooth_value(self) -> float:
        """The value of the smoothing method; 0 if it has none."""
        value = self.options["smooth_value"]
        return float(SMOOTHING[self.options["smooth_method"]] or 0) if value is None else float(value)

    @property
    def _orders(self) -> int:
        return int(self.options["max_ngram_order"])

    def sentence_scores(self, candidates: Texts, references: TextLists) -> tuple[Vector, Vector]:
        """The score of each sample, its length, the closest reference length, and matches and n-grams per order."""
        return sentence_bleu(
            candidates,
            references,
            self.options["tokenizer"],
            self.options["lowercase"],
            self.options["smooth_method"],
            self.smooth_value,
            self._orders,
            effective_order=True,
        )

    def scores_of_sums(self, sums: Vector) -> Vector:
        """BLEU for each row of summed counts."""
        return bleu_of_sums(
            sums,
            self.options["smooth_method"],
            self.smooth_value,
            self._orders,
            effective_order=self.options["effective_order"],
        )

    def gradient(self, sums: Vector) -> Vector:
        """d BLEU / d counts; a count that is 0 in the whole corpus is skipped, since BLEU is not smooth there."""
        import numpy as np

        gradient, value = np.zeros(len(sums)), self.corpus_score(sums)
        if value == 0:
            return gradient
        length, reference, *counts = sums.tolist()
        adds = self.options["smooth_method"] == "add-k"
        pairs = [
            (counts[n] + more, counts[self._orders + n] + more)
            for n in range(self._orders)
            for more in [self.smooth_value if adds and n > 0 else 0]
        ]
        used = sum(grams > 0 for _, grams in pairs)  # a score above 0 has n-grams of every order that enters it
        for n, (hits, grams) in enumerate(pairs[:used]):
            if hits:
                gradient[2 + n] = value / used / hits
            gradient[2 + self._orders + n] = -value / used / grams
        if length < reference:  # of exp(1 - r/c)
            gradient[0], gradient[1] = value * reference / length**2, -value / length
        return gradient

    def origin_settings(self) -> Mapping[str, object]:
        """The settings in sacrebleu's signature."""
        method = self.options["smooth_method"]
        return {
            "case": "lc" if self.options["lowercase"] else "mixed",
            "eff": self.options["effective_order"],
            "tok": self.options["tokenizer"],
            "smooth": method if SMOOTHING[method] is None else f"{method}[{self.smooth_value:.2f}]",
        }


compute_sacrebleu = Sacrebleu()
register(compute_sacrebleu)


def sacrebleu(candidate: str, references: Sequence[str], **options: bool | float | str) -> float:
    """BLEU of one sentence against its references, 0 to 100. The options are those of the metric."""
    return configured(compute_sacrebleu, options).score_text(candidate, references)
