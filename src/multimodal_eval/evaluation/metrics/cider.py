"""CIDEr: does a caption say what people say about the same image?

The mean tf-idf cosine between the caption and each reference, over n-gram orders 1 to 4, in [0, 1]:

    g_k(s)  = h_k(s) / sum_l h_l(s) * ln( |I| / max(1, df_k) )
    CIDEr_n = 1/m * sum_j  g^n(c) · g^n(s_j) / ( |g^n(c)| |g^n(s_j)| )
    CIDEr   = 1/4 * sum_n CIDEr_n

A cosine with a zero norm is 0, and the mean is always over four orders: three words that match perfectly score .75 at
most. What coco-caption calls CIDEr is CIDEr-D, a different metric (0 to 10): see `cider_d`.

Reference:
    Vedantam, Zitnick and Parikh (2015). CIDEr: Consensus-based Image Description
    Evaluation. CVPR. arXiv:1411.5726, equations 1 to 3.
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

__all__ = ["cider", "compute_cider"]


def cider(
    candidate: str,
    references: Sequence[str],
    corpus: DocumentFrequencies | None = None,
    *,
    tokenizer: str = "ptb",
    n: int = 4,
) -> float:
    """CIDEr of one caption against its references, with the idf of a corpus: by default COCO val2014."""
    captions = one_caption("cider", candidate, references, tokenizer)
    return float(captions.cider(corpus_or_coco(corpus, tokenizer).table, check_n("cider", n))[0])


def score_cider(
    samples: Sequence[Sample],
    corpus: DocumentFrequencies,
    *,
    tokenizer: str = "ptb",
    df: str = "corpus",
    n: int = 4,
    image_key: str | None = None,
) -> Scores:
    """CIDEr of many samples."""
    return Scores.of_values(captions_of(samples, tokenizer).cider(corpus.table, n))


@metric(
    "cider",
    version="2",
    needs=("generated_answer", "references"),
    bounds=(0, 1),
    corpus=document_frequencies,
    corpus_groups=image_groups,
    default_corpus=named_frequencies,
    batch=score_cider,
)
def compute_cider(
    sample: Sample,
    corpus: DocumentFrequencies | None = None,
    *,
    tokenizer: TokenizerName = "ptb",
    df: FrequenciesName = "corpus",
    n: LongestNgram = 4,
    image_key: ImageKey = None,
) -> float:
    """Mean tf-idf cosine between the answer and each reference, over n-grams of 1 to 4 words."""
    table = named_frequencies(df, tokenizer) if corpus is None else corpus
    return cider(sample.generated_answer or "", sample.reference_texts, table, tokenizer=tokenizer, n=n)
