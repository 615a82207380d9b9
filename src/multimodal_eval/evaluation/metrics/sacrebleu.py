"""BLEU, chrF and TER as sacrebleu computes them: sentence scores per sample, and a corpus score from summed statistics.

sacrebleu, 0 to 100: with matching n-grams m, n-grams g, length c and closest reference length r (ties: the shorter),
summed over the corpus:

    BLEU = exp( min(0, 1 - r/c) ) * exp( 1/4 * sum_{n<=4} ln( 100 m_n / g_n ) )

An order without a match gets 100 / (2^k g_n) instead, with k = 1, 2, … (smoothing `exp`), if another order has one. The
score of a sample uses only the orders that its text is long enough for, as `sacrebleu.sentence_bleu` does.

chrf, 0 to 100: how many character n-grams do text and reference share? With the n-grams of order i of the text (h), of
the reference (r) and shared (m), and N orders that both texts have:

    P = 1/N * sum_i m_i / h_i        R = 1/N * sum_i m_i / r_i
    chrF = 100 * (1 + beta^2) P R / (beta^2 P + R),  beta = 2, orders 1 to 6

`word_order=2` adds words and pairs of words and is chrF++. With several references, the one with the largest score
counts.

ter, in percent: how many edits turn the text into a reference, per word of the reference? Edits are insertions,
deletions and substitutions of words, and shifts of a sequence of words to another place:

    TER = 100 * edits / length of the reference

With several references, the fewest edits count, and the mean length.

References:
    Papineni, Roukos, Ward and Zhu (2002). BLEU: a Method for Automatic Evaluation of Machine Translation. ACL;
    Post (2018). A Call for Clarity in Reporting BLEU Scores. WMT.
    Popović (2015). chrF: character n-gram F-score for automatic MT evaluation. WMT;
    Popović (2017). chrF++: words helping character n-grams. WMT.
    Snover, Dorr, Schwartz, Micciulla and Makhoul (2006). A Study of Translation Edit Rate with Targeted Human
    Annotation. AMTA. The implementation of all is sacrebleu 2.6.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval._native import bleu_of_sums, chrf_of_sums, sentence_bleu
from multimodal_eval._native import chrf as native_chrf
from multimodal_eval._native import ter as native_ter
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import Bounds, Metric, Scorer, configured, require_references
from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Rows, Scores, Summed
from multimodal_eval.text.captions import texts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval._native import TextLists, Texts

    Vector = NDArray[np.float64]

__all__ = ["chrf", "compute_chrf", "compute_sacrebleu", "compute_ter", "sacrebleu", "ter"]

SACREBLEU = "2.6.0"  # the version whose scores and signatures we reproduce
MOST_ORDERS = 100


class SacrebleuMetric(Metric):
    """A metric with the scale, the scores and the signature of sacrebleu.

    Each sample has statistics that are summed over the corpus, and as the last one the number of its references.
    """

    needs = ("generated_answer", "references")
    bounds: Bounds = (0, 100)

    def sentence_scores(self, candidates: Texts, references: TextLists) -> tuple[Vector, Vector]:
        """The score and the statistics of each sample."""
        raise NotImplementedError

    def scores_of_sums(self, sums: Vector) -> Vector:
        """The corpus score for each row of summed statistics."""
        raise NotImplementedError

    def corpus_score(self, sums: Vector) -> float:
        """The score from summed statistics."""
        return float(self.scores_of_sums(sums[None, :])[0])

    def gradient(self, sums: Vector) -> Vector:
        """d score / d statistics."""
        raise NotImplementedError

    def origin_settings(self) -> Mapping[str, object]:
        """The settings in sacrebleu's signature, between `nrefs` and `version`."""
        raise NotImplementedError

    def score_text(self, candidate: str, references: Sequence[str]) -> float:
        """The score of one text against its references."""
        require_references(self.name, references)
        return float(self.sentence_scores([candidate], [list(references)])[0][0])

    def open(self, state: Any) -> Scorer:
        """A scorer of batches."""
        return _SampleScorer(self)

    def aggregate(self, rows: Rows) -> Estimate:
        """The corpus score with the influence of each sample on it, and sacrebleu's signature."""
        from dataclasses import replace

        from multimodal_eval.stats.estimates import function_of_sums

        estimate = function_of_sums(rows, self.corpus_score, self.gradient)
        if rows.stats is None:
            return estimate
        summed = Summed(rows.stats, self.scores_of_sums)
        return replace(estimate, summed=summed, origin_signature=self._origin_signature(rows.stats))

    def _origin_signature(self, stats: Vector) -> str:
        """The signature that sacrebleu prints for the same settings and references."""
        counts = set(stats[:, -1].tolist())
        references = f"{counts.pop():g}" if len(counts) == 1 else "var"
        pairs = {"nrefs": references, **self.origin_settings(), "version": SACREBLEU}
        return "|".join(f"{key}:{_word(value)}" for key, value in pairs.items())

    def check_range(self, option: str, low: float, high: float | None = None) -> None:
        """Refuse a number outside of its range."""
        value = self.options[option]
        if not (low <= value and (high is None or value <= high)):
            allowed = f"at least {low}" if high is None else f"from {low} to {high}"
            raise ConfigError(f"the option `{option}` of {self.name} must be {allowed}. Got {value!r} instead.")


class _SampleScorer:
    def __init__(self, metric: SacrebleuMetric) -> None:
        self.metric = metric

    def score(self, batch: Sequence[Sample]) -> Scores:
        values, stats = self.metric.sentence_scores(*texts_of(batch))
        return Scores.of_values(values, stats=stats)


def _word(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


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
