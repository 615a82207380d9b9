"""ROUGE-L as coco-caption computes it: how long is the word sequence that caption and reference share?

With LCS the longest common subsequence of tokens, and each maximum taken separately over the references:

    P = max_j LCS(c, s_j) / |c|        R = max_j LCS(c, s_j) / |s_j|
    ROUGE-L = (1 + beta^2) P R / (R + beta^2 P),  beta = 1.2

Reference:
    Lin (2004). ROUGE: A Package for Automatic Evaluation of Summaries. ACL workshop;
    the implementation is coco-caption's class Rouge.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Scores
from multimodal_eval.text.captions import captions_of, score_of_texts
from multimodal_eval.text.tokenizers import TokenizerName

__all__ = ["compute_rouge_l", "rouge_l"]


@metric("rouge_l", version="1", needs=("generated_answer", "references"), bounds=(0, 1), batch=True)
def compute_rouge_l(samples: Sequence[Sample], *, tokenizer: TokenizerName = "ptb") -> Scores:
    """F-score of the longest common subsequence of words, with the best precision and recall over the references."""
    return Scores.of_values(captions_of(samples, tokenizer).rouge_l())


def rouge_l(candidate: str, references: Sequence[str], **options: str) -> float:
    """ROUGE-L of one caption against its references. The options are those of the metric."""
    return float(score_of_texts(compute_rouge_l, candidate, references, options).value or 0)
