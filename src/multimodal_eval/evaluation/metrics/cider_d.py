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
    captions_of,
    document_frequencies,
    named_frequencies,
    one_caption,
)
from multimodal_eval.text.document_frequencies import DocumentFrequencies
from multimodal_eval.text.tokenizers import TokenizerName

__all__ = ["cider_d", "compute_cider_d"]


def cider_d(candidate: str, references: Sequence[str], corpus: DocumentFrequencies, *, tokenizer: str = "ptb") -> float:
    """CIDEr-D of one caption against its references, with the idf of a corpus."""
    captions = one_caption("cider_d", candidate, references, tokenizer)
    return float(captions.cider_d(corpus.fit_for(tokenizer).table)[0])


def score_cider_d(
    samples: Sequence[Sample], corpus: DocumentFrequencies, *, tokenizer: str = "ptb", df: str = "corpus"
) -> Scores:
    """CIDEr-D of many samples."""
    return Scores.of_values(captions_of(samples, tokenizer).cider_d(corpus.table))


@metric(
    "cider_d",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, 10),
    corpus=document_frequencies,
    default_corpus=named_frequencies,
    batch=score_cider_d,
)
def compute_cider_d(
    sample: Sample,
    corpus: DocumentFrequencies | None = None,
    *,
    tokenizer: TokenizerName = "ptb",
    df: FrequenciesName = "corpus",
) -> float:
    """CIDEr as coco-caption computes it: clipped tf-idf similarity with a length penalty, times 10."""
    table = named_frequencies(df, tokenizer) if corpus is None else corpus
    return cider_d(sample.generated_answer or "", sample.reference_texts, table, tokenizer=tokenizer)
