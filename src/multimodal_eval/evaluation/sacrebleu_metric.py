"""The corpus metrics of sacrebleu: sentence scores per sample, and a corpus score from their summed statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import Bounds, Metric, Scorer
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Rows, Summed
from multimodal_eval.core.scores import Scores
from multimodal_eval.text.captions import require_references, texts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval._native import TextLists, Texts

    Vector = NDArray[np.float64]

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
