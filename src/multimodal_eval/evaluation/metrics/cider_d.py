"""CIDEr-D: what coco-caption and the leaderboards that use it report as CIDEr. 0 to 10.

With raw counts as term frequencies, g_k(s) = h_k(s) * (ln |I| - ln max(1, df_k)), lengths l in bigrams and sigma 6:

    CIDEr-D_n = 1/m * sum_j  exp( -(l_c - l_j)^2 / (2 sigma^2) )
                             * sum_k min(g_k(c), g_k(s_j)) g_k(s_j) / ( |g^n(c)| |g^n(s_j)| )
    CIDEr-D   = 10 * 1/4 * sum_n CIDEr-D_n

Clipping and the length penalty prevent a caption from gaining score by repetition.

Reference:
    Vedantam, Zitnick and Parikh (2015). CIDEr: Consensus-based Image Description
    Evaluation. CVPR. arXiv:1411.5726, section 6; the implementation is coco-caption's class Cider.
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

__all__ = ["cider_d", "compute_cider_d"]


def cider_d(
    candidate: str,
    references: Sequence[str],
    corpus: DocumentFrequencies | None = None,
    *,
    tokenizer: str = "ptb",
    n: int = 4,
) -> float:
    """CIDEr-D of one caption against its references, with the idf of a corpus: by default COCO val2014."""
    captions = one_caption("cider_d", candidate, references, tokenizer)
    return float(captions.cider_d(corpus_or_coco(corpus, tokenizer).table, check_n("cider_d", n))[0])


def score_cider_d(
    samples: Sequence[Sample],
    corpus: DocumentFrequencies,
    *,
    tokenizer: str = "ptb",
    df: str = "corpus",
    n: int = 4,
    image_key: str | None = None,
) -> Scores:
    """CIDEr-D of many samples."""
    return Scores.of_values(captions_of(samples, tokenizer).cider_d(corpus.table, n))


@metric(
    "cider_d",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, 10),
    corpus=document_frequencies,
    corpus_groups=image_groups,
    default_corpus=named_frequencies,
    batch=score_cider_d,
)
def compute_cider_d(
    sample: Sample,
    corpus: DocumentFrequencies | None = None,
    *,
    tokenizer: TokenizerName = "ptb",
    df: FrequenciesName = "corpus",
    n: LongestNgram = 4,
    image_key: ImageKey = None,
) -> float:
    """CIDEr as coco-caption computes it: clipped tf-idf similarity with a length penalty, times 10."""
    table = named_frequencies(df, tokenizer) if corpus is None else corpus
    return cider_d(sample.generated_answer or "", sample.reference_texts, table, tokenizer=tokenizer, n=n)
