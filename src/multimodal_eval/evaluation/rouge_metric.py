"""What the ROUGE metrics share: texts as the words of rouge-score, and scores with precision and recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from multimodal_eval._native import RougeTexts
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.text.captions import require_references, texts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The type of the option `stemmer`.
Stemmer = Annotated[bool, "whether words of more than three letters are compared by their Porter stems"]


class RougeScore(NamedTuple):
    """Precision, recall and F-measure, as rouge-score returns them."""

    precision: float
    recall: float
    fmeasure: float


def rouge_texts(samples: Sequence[Sample], stemmer: bool) -> RougeTexts:
    """The words of answers and references; the ROUGE metrics of a run share them."""
    batch = Batch.of(samples)
    return batch.shared(("rouge", stemmer), lambda: RougeTexts(*texts_of(batch), stemmer))


def one_text(metric: str, candidate: str, references: Sequence[str], stemmer: bool) -> RougeTexts:
    """One text with its references."""
    require_references(metric, references)
    return RougeTexts([candidate], [list(references)], stemmer)


def score_of(columns: NDArray[np.float64]) -> RougeScore:
    """The score of a single row."""
    fmeasure, precision, recall = columns[0].tolist()
    return RougeScore(precision, recall, fmeasure)


def scores_of(columns: NDArray[np.float64]) -> Scores:
    """The F-measures as values, with precision and recall as parts."""
    parts = {"precision": columns[:, 1].copy(), "recall": columns[:, 2].copy()}
    return Scores.of_values(columns[:, 0].copy(), parts)
