"""ANLS, the average normalised Levenshtein similarity: how close is the answer to the nearest reference?

With the edit distance d and the length |.| of normalised texts:

    ANLS(c) = max_j s(c, r_j),   s(c, r) = 1 - d(c, r) / max(|c|, |r|) if that quotient is below 0.5, else 0

The rules differ in the normalisation, in the lengths and at exactly 0.5.

Reference:
    Biten et al. (2019). Scene Text Visual Question Answering. ICCV. arXiv:1905.13648; equation 1 of
    ICDAR 2019 Competition on Scene Text Visual Question Answering, arXiv:1907.00490.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from multimodal_eval._native import folded_edit_distances
from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.evaluation.rules.anls import SIMILARITIES, AnlsRule, EditSimilarity
from multimodal_eval.text.captions import require_references, texts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["anls", "compute_anls"]

AnlsRuleName = Annotated[str, "how an answer is compared with a reference", RuleFamily("anls")]


def anls(candidate: str, references: Sequence[str], *, rule: str = "anls@2019") -> float:
    """ANLS of one answer against its references."""
    require_references("anls", references)
    return _best(find_rule("anls", rule).function, candidate, references)


def _best(similarity: AnlsRule, candidate: str, references: Sequence[str]) -> float:
    return max(float(similarity(candidate, reference)) for reference in references)


@metric("anls", version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=True)
def compute_anls(samples: Sequence[Sample], *, rule: AnlsRuleName = "anls@2019") -> Scores:
    """Edit similarity to the nearest reference, 0 below one half."""
    import numpy as np

    named = find_rule("anls", rule)
    if named.is_built_in:
        return Scores.of_values(_of_columns(samples, SIMILARITIES[rule]))
    answers = ((sample.generated_answer or "", sample.reference_texts) for sample in samples)
    return Scores.of_values(np.array([_best(named.function, *answer) for answer in answers], np.float64))


def _of_columns(samples: Sequence[Sample], similarity: EditSimilarity) -> NDArray[np.float64]:
    """The compiled core handles ASCII texts, whose lower case needs no tables; other rows are scored one by one."""
    import numpy as np

    pairs, counts = folded_edit_distances(*texts_of(samples), similarity.collapses)
    lengths = pairs[:, 1:3] if similarity.length_of.startswith("folded") else pairs[:, 3:5]
    values = similarity.similarity(pairs[:, 0] / np.maximum(lengths.max(axis=1), 1))
    scores = np.zeros(len(counts))
    is_ascii = counts > 0
    starts = np.concatenate([[0], np.cumsum(counts[is_ascii])[:-1]]).astype(np.int64)
    if len(values):
        scores[is_ascii] = np.maximum.reduceat(values, starts)
    for row in np.flatnonzero(counts < 0).tolist():
        sample = samples[row]
        scores[row] = _best(similarity, sample.generated_answer or "", sample.reference_texts)
    return scores
