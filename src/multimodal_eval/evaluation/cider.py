"""CIDEr: does a caption say what people say of the same image?

The mean tf-idf cosine between the caption and each reference, over n-gram orders 1 to 4, in [0, 1]:

    g_k(s)  = h_k(s) / sum_l h_l(s) * ln( |I| / max(1, df_k) )
    CIDEr_n = 1/m * sum_j  g^n(c) · g^n(s_j) / ( |g^n(c)| |g^n(s_j)| )
    CIDEr   = 1/4 * sum_n CIDEr_n

A cosine with a zero norm is 0, and the mean is always over four orders: three words that match perfectly
score .75 at most. What coco-caption calls CIDEr is CIDEr-D, another number (0 to 10).

Reference:
    Vedantam, Zitnick and Parikh (2015). CIDEr: Consensus-based Image Description
    Evaluation. CVPR. arXiv:1411.5726, equations 1 to 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.document_frequencies import ORDERS, DocumentFrequencies, coco_val2014, ngrams
from multimodal_eval.text.tokenizers import Tokenizer, get_tokenizer, ptb_approx

Vector = dict[str, float]


@dataclass(frozen=True, slots=True)
class CiderScore:
    """The score and its four parts, one an n-gram order."""

    value: float
    by_order: tuple[float, ...]


def cider(
    candidate: str, references: Sequence[str], corpus: DocumentFrequencies, tokenize: Tokenizer = ptb_approx
) -> CiderScore:
    """CIDEr of one caption against its references, with the idf of a corpus."""
    if not references:
        raise ConfigError("cider needs at least one reference. Got an empty list instead.")
    words = tokenize(candidate)
    reference_words = [tokenize(reference) for reference in references]
    by_order = tuple(
        fsum(_cosine(_tf_idf(words, order, corpus), _tf_idf(other, order, corpus)) for other in reference_words)
        / len(reference_words)
        for order in ORDERS
    )
    return CiderScore(fsum(by_order) / len(ORDERS), by_order)


def _tf_idf(tokens: Sequence[str], order: int, corpus: DocumentFrequencies) -> Vector:
    grams = Counter(ngrams(tokens, order))
    total = sum(grams.values())
    return {gram: count / total * corpus.idf(gram) for gram, count in grams.items()}


def _cosine(left: Vector, right: Vector) -> float:
    norms = sqrt(fsum(x * x for x in left.values())) * sqrt(fsum(x * x for x in right.values()))
    if norms == 0:
        return 0.0
    dot = fsum(weight * right[gram] for gram, weight in left.items() if gram in right)
    return min(dot / norms, 1.0)  # rounding can lift a perfect match above 1 by an ulp


def document_frequencies(
    samples: Iterable[Sample], *, tokenizer: str = "ptb-approx", df: str = "corpus"
) -> DocumentFrequencies | None:
    """The run's own table, one image a sample that has references; None where another table is asked for."""
    if df == "coco-val2014":
        return None
    if df != "corpus":
        raise ConfigError(f"the option `df` of cider must be 'corpus' or 'coco-val2014'. Got {df!r} instead.")
    sets = (texts for sample in samples if (texts := sample.reference_texts))
    return DocumentFrequencies.of(sets, get_tokenizer(tokenizer))


@metric(
    "cider",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, 1),
    corpus=document_frequencies,
    default_corpus=coco_val2014,
)
def compute_cider(
    sample: Sample,
    corpus: DocumentFrequencies | None = None,
    *,
    tokenizer: str = "ptb-approx",
    df: str = "corpus",
) -> float:
    """Mean tf-idf cosine between the answer and each reference, over n-grams of 1 to 4 words."""
    return cider(
        sample.generated_answer or "",
        sample.reference_texts,
        corpus or coco_val2014(),
        get_tokenizer(tokenizer),
    ).value
