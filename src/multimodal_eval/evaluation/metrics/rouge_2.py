"""ROUGE-2 as the package rouge-score computes it: how many pairs of neighbouring words do answer and reference share?

Each pair of neighbouring words counts at most as often as both texts have it. With the number of pairs that are
shared, of the answer and of the reference:

    P = shared / answer        R = shared / reference        F = 2 P R / (P + R)

With several references, the one with the largest F counts. Words are runs of a-z and 0-9 in lower case.

Reference:
    Lin (2004). ROUGE: A Package for Automatic Evaluation of Summaries. ACL workshop;
    the implementation is rouge-score 0.1.2, `rouge2`.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.evaluation.rouge_metric import RougeScore, Stemmer, one_text, rouge_texts, score_of, scores_of

__all__ = ["compute_rouge_2", "rouge_2"]


def rouge_2(candidate: str, references: Sequence[str], *, stemmer: bool = False) -> RougeScore:
    """ROUGE-2 of one text against its references."""
    return score_of(one_text("rouge_2", candidate, references, stemmer).pairs())


def score_rouge_2(samples: Sequence[Sample], *, stemmer: bool = False) -> Scores:
    """ROUGE-2 of many samples."""
    return scores_of(rouge_texts(samples, stemmer).pairs())


@metric("rouge_2", version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=score_rouge_2)
def compute_rouge_2(sample: Sample, *, stemmer: Stemmer = False) -> float:
    """F-measure of shared pairs of neighbouring words, as rouge-score computes it. Parts: precision and recall."""
    return rouge_2(sample.generated_answer or "", sample.reference_texts, stemmer=stemmer).fmeasure
