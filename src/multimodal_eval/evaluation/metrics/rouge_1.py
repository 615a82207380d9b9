"""ROUGE-1 as the package rouge-score computes it: how many words do answer and reference share?

Each word counts at most as often as both texts have it. With the number of words that are shared, of the answer and of
the reference:

    P = shared / answer        R = shared / reference        F = 2 P R / (P + R)

With several references, the one with the largest F counts. Words are runs of a-z and 0-9 in lower case.

Reference:
    Lin (2004). ROUGE: A Package for Automatic Evaluation of Summaries. ACL workshop;
    the implementation is rouge-score 0.1.2, `rouge1`.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.evaluation.rouge_metric import RougeScore, Stemmer, one_text, rouge_texts, score_of, scores_of

__all__ = ["compute_rouge_1", "rouge_1"]


def rouge_1(candidate: str, references: Sequence[str], *, stemmer: bool = False) -> RougeScore:
    """ROUGE-1 of one text against its references."""
    return score_of(one_text("rouge_1", candidate, references, stemmer).words())


def score_rouge_1(samples: Sequence[Sample], *, stemmer: bool = False) -> Scores:
    """ROUGE-1 of many samples."""
    return scores_of(rouge_texts(samples, stemmer).words())


@metric("rouge_1", version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=score_rouge_1)
def compute_rouge_1(sample: Sample, *, stemmer: Stemmer = False) -> float:
    """F-measure of shared words, as rouge-score computes it. Parts: precision and recall."""
    return rouge_1(sample.generated_answer or "", sample.reference_texts, stemmer=stemmer).fmeasure
