"""CIDEr, CIDEr-D and CIDEr-R: does a caption say what people say about the same image?

CIDEr is the mean tf-idf cosine between the caption and each reference, over n-gram orders 1 to 4, in [0, 1]:

    g_k(s)  = h_k(s) / sum_l h_l(s) * ln( |I| / max(1, df_k) )
    CIDEr_n = 1/m * sum_j  g^n(c) · g^n(s_j) / ( |g^n(c)| |g^n(s_j)| )
    CIDEr   = 1/4 * sum_n CIDEr_n

A cosine with a zero norm is 0, and the mean is always over four orders: three words that match perfectly score .75 at
most.

CIDEr-D, 0 to 10, is what coco-caption and the leaderboards that use it report as CIDEr. With raw counts as term
frequencies, g_k(s) = h_k(s) * (ln |I| - ln max(1, df_k)), lengths l in bigrams and sigma 6:

    CIDEr-D_n = 1/m * sum_j  exp( -(l_c - l_j)^2 / (2 sigma^2) )
                             * sum_k min(g_k(c), g_k(s_j)) g_k(s_j) / ( |g^n(c)| |g^n(s_j)| )
    CIDEr-D   = 10 * 1/4 * sum_n CIDEr-D_n

Clipping and the length penalty prevent a caption from gaining score by repetition.

CIDEr-R, 0 to 10, is for long texts and few references. It has two other penalties instead of the fixed one for length:

    length(c, s)     = exp( -(l_c - l_s)^2 / l_s^2 )                        l: words
    repetition(c, s) = geometric mean over the words w of c of 1 / (1 + d_w)
    d_w              = |count(w, c) - count(w, s)| if w is in s, else count(w, c) - 1
    CIDEr-R_n        = 1/m * sum_j  repetition^0.8 * length^0.2
                                    * sum_k min(g_k(c), g_k(s_j)) g_k(s_j) / ( |g^n(c)| |g^n(s_j)| )
    CIDEr-R          = 10 * 1/4 * sum_n CIDEr-R_n

References:
    Vedantam, Zitnick and Parikh (2015). CIDEr: Consensus-based Image Description
    Evaluation. CVPR. arXiv:1411.5726, equations 1 to 3, and section 6 for CIDEr-D, whose implementation is
    coco-caption's class Cider.
    Oliveira dos Santos, Colombini and Avila (2021). CIDEr-R: Robust Consensus-based Image Description Evaluation.
    W-NUT. arXiv:2109.13701; penalties and weights as in the authors' code, with lengths in words as in sacreeos 1.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.function_metric import FunctionMetric
from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Scores
from multimodal_eval.text.captions import (
    FrequenciesName,
    ImageKey,
    LongestNgram,
    captions_of,
    document_frequencies,
    image_groups,
    named_frequencies,
    score_of_texts,
)
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from multimodal_eval.text.tokenizers import TokenizerName

__all__ = ["cider", "cider_d", "cider_r", "compute_cider", "compute_cider_d", "compute_cider_r"]


def _registered(name: str, version: str, highest: float, summary: str) -> FunctionMetric:
    """The metric that the compiled core computes under this name."""

    def compute(
        samples: Sequence[Sample],
        corpus: DocumentFrequencies,
        *,
        tokenizer: TokenizerName = "ptb",
        df: FrequenciesName = "corpus",
        n: LongestNgram = 4,
        image_key: ImageKey = None,
    ) -> Scores:
        return Scores.of_values(getattr(captions_of(samples, tokenizer), name)(corpus.fit_for(tokenizer).table, n))

    compute.__name__ = compute.__qualname__ = f"compute_{name}"
    compute.__doc__ = summary
    return metric(
        name,
        version=version,
        needs=("generated_answer", "references"),
        bounds=(0, highest),
        corpus=document_frequencies,
        corpus_groups=image_groups,
        default_corpus=named_frequencies,
        batch=True,
    )(compute)


compute_cider = _registered(
    "cider", "2", 1, "Mean tf-idf cosine between the answer and each reference, over n-grams of 1 to 4 words."
)
compute_cider_d = _registered(
    "cider_d", "1", 10, "CIDEr as coco-caption computes it: clipped tf-idf similarity with a length penalty, times 10."
)
compute_cider_r = _registered(
    "cider_r",
    "1",
    10,
    "CIDEr-D with penalties for repeated words and for a length that differs in proportion to the reference.",
)


def cider(
    candidate: str, references: Sequence[str], corpus: DocumentFrequencies | None = None, **options: str | int | None
) -> float:
    """CIDEr of one caption against its references, with the idf of a corpus: by default COCO val2014.

    The options are those of the metric.
    """
    return _value(compute_cider, candidate, references, corpus, **options)


def cider_d(
    candidate: str, references: Sequence[str], corpus: DocumentFrequencies | None = None, **options: str | int | None
) -> float:
    """CIDEr-D of one caption, as `cider`."""
    return _value(compute_cider_d, candidate, references, corpus, **options)


def cider_r(
    candidate: str, references: Sequence[str], corpus: DocumentFrequencies | None = None, **options: str | int | None
) -> float:
    """CIDEr-R of one caption, as `cider`."""
    return _value(compute_cider_r, candidate, references, corpus, **options)


def _value(
    metric: FunctionMetric,
    candidate: str,
    references: Sequence[str],
    corpus: DocumentFrequencies | None,
    **options: str | int | None,
) -> float:
    return float(score_of_texts(metric, candidate, references, options, corpus).value or 0)
