"""ROUGE-Lsum as the package rouge-score computes it: which words of the reference are in the same order in the answer?

The lines of a text are its sentences. For each sentence of the reference, the words that are in a longest common
subsequence with any sentence of the answer count, each word at most as often as both texts have it. Precision, recall
and F-measure follow as in ROUGE-1. With several references, the one with the largest F counts.

This is not `rouge_l`, which is coco-caption's: that one takes the text as a single sentence, has other words, weights
recall by beta = 1.2, and takes the best precision and the best recall of different references.

Reference:
    Lin (2004). ROUGE: A Package for Automatic Evaluation of Summaries. ACL workshop, section 3.2;
    the implementation is rouge-score 0.1.2, `rougeLsum`.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.evaluation.rouge_metric import RougeScore, Stemmer, one_text, rouge_texts, score_of, scores_of

__all__ = ["compute_rouge_lsum", "rouge_lsum"]


def rouge_lsum(candidate: str, references: Sequence[str], *, stemmer: bool = False) -> RougeScore:
    """ROUGE-Lsum of one text against its references."""
    return score_of(one_text("rouge_lsum", candidate, references, stemmer).summary_lcs())


def score_rouge_lsum(samples: Sequence[Sample], *, stemmer: bool = False) -> Scores:
    """ROUGE-Lsum of many samples."""
    return scores_of(rouge_texts(samples, stemmer).summary_lcs())


@metric("rouge_lsum", version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=score_rouge_lsum)
def compute_rouge_lsum(sample: Sample, *, stemmer: Stemmer = False) -> float:
    """F-measure of longest common subsequences, line by line, as rouge-score computes it. Parts: precision, recall."""
    return rouge_lsum(sample.generated_answer or "", sample.reference_texts, stemmer=stemmer).fmeasure
