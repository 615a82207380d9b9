"""CIDEr-R: CIDEr-D for long texts and few references. 0 to 10.

The clipped tf-idf similarity of CIDEr-D, with two other penalties instead of its fixed one for length:

    length(c, s)     = exp( -(l_c - l_s)^2 / l_s^2 )                        l: words
    repetition(c, s) = geometric mean over the words w of c of 1 / (1 + d_w)
    d_w              = |count(w, c) - count(w, s)| if w is in s, else count(w, c) - 1
    CIDEr-R_n        = 1/m * sum_j  repetition^0.8 * length^0.2
                                    * sum_k min(g_k(c), g_k(s_j)) g_k(s_j) / ( |g^n(c)| |g^n(s_j)| )
    CIDEr-R          = 10 * 1/4 * sum_n CIDEr-R_n

Reference:
    Oliveira dos Santos, Colombini and Avila (2021). CIDEr-R: Robust Consensus-based Image Description Evaluation.
    W-NUT. arXiv:2109.13701; penalties and weights as in the authors' code, with lengths in words as in sacreeos 1.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.text.captions import (
    FrequenciesName,
    LongestNgram,
    captions_of,
    check_n,
    corpus_or_coco,
    document_frequencies,
    image_groups,
    named_frequencies,
    one_caption,
)
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from multimodal_eval.text.image_keys import ImageKey
from multimodal_eval.text.tokenizers import TokenizerName

__all__ = ["cider_r", "compute_cider_r"]


def cider_r(
    candidate: str,
    references: Sequence[str],
    corpus: DocumentFrequencies | None = None,
    *,
    tokenizer: str = "ptb",
    n: int = 4,
) -> float:
    """CIDEr-R of one caption against its references, with the idf of a corpus: by default COCO val2014."""
    captions = one_caption("cider_r", candidate, references, tokenizer)
    return float(captions.cider_r(corpus_or_coco(corpus, tokenizer).table, check_n("cider_r", n))[0])


def score_cider_r(
    samples: Sequence[Sample],
    corpus: DocumentFrequencies,
    *,
    tokenizer: str = "ptb",
    df: str = "corpus",
    n: int = 4,
    image_key: str | None = None,
) -> Scores:
    """CIDEr-R of many samples."""
    return Scores.of_values(captions_of(samples, tokenizer).cider_r(corpus.table, n))


@metric(
    "cider_r",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, 10),
    corpus=document_frequencies,
    corpus_groups=image_groups,
    default_corpus=named_frequencies,
    batch=score_cider_r,
)
def compute_cider_r(
    sample: Sample,
    corpus: DocumentFrequencies | None = None,
    *,
    tokenizer: TokenizerName = "ptb",
    df: FrequenciesName = "corpus",
    n: LongestNgram = 4,
    image_key: ImageKey = None,
) -> float:
    """CIDEr-D with penalties for repeated words and for a length that differs in proportion to the reference."""
    table = named_frequencies(df, tokenizer) if corpus is None else corpus
    return cider_r(sample.generated_answer or "", sample.reference_texts, table, tokenizer=tokenizer, n=n)
