"""BLEU as coco-caption computes it: which of the caption's n-grams are in a reference? BLEU-1 to BLEU-4.

Correct n-grams are clipped to their largest count in one reference. With the closest reference length r (ties: the
shorter) and the caption's length c, both summed over all images for a corpus:

    BLEU-k = ( prod_{n<=k} (correct_n + 1e-15) / (guessed_n + 1e-9) )^(1/k) * exp( min(0, 1 - r/c) )

The value is BLEU-4; BLEU-1 to 3 are parts. The corpus score comes from summed counts and is not the mean over images.

Reference:
    Papineni, Roukos, Ward and Zhu (2002). BLEU: a Method for Automatic Evaluation of Machine Translation. ACL;
    the implementation is coco-caption's class Bleu.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Rows, Scores
from multimodal_eval.text.captions import captions_of, score_of_texts
from multimodal_eval.text.tokenizers import TokenizerName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["bleu", "compute_bleu", "corpus_bleu"]

_TINY, _SMALL = 1e-15, 1e-9
_PARTS = ("bleu_1", "bleu_2", "bleu_3")


def corpus_bleu(sums: Vector, order: int = 4) -> float:
    """BLEU of one order from summed statistics: correct 1 to 4, guessed 1 to 4, length, closest reference length."""
    from math import exp

    product = 1.0
    for n in range(order):
        product *= (float(sums[n]) + _TINY) / (float(sums[4 + n]) + _SMALL)
    ratio = (float(sums[8]) + _TINY) / (float(sums[9]) + _SMALL)
    value: float = product ** (1.0 / order)
    return value * exp(1 - 1 / ratio) if ratio < 1 else value


def _gradient(sums: Vector, order: int) -> Vector:
    """d BLEU / d statistics; a count that is 0 in the whole corpus is skipped, since BLEU is not smooth there."""
    import numpy as np

    value = corpus_bleu(sums, order)
    gradient = np.zeros(10)
    for n in range(order):
        if sums[n] > 0:
            gradient[n] = value / order / (sums[n] + _TINY)
        gradient[4 + n] = -value / order / (sums[4 + n] + _SMALL)
    length, reference = sums[8] + _TINY, sums[9] + _SMALL
    if length < reference:  # d/dc and d/dr of exp(1 - r/c)
        gradient[8] = value * reference / length**2
        gradient[9] = -value / length
    return gradient


def _aggregate(order: int, rows: Rows) -> Estimate:
    from multimodal_eval.stats.estimates import function_of_sums

    return function_of_sums(rows, partial(corpus_bleu, order=order), partial(_gradient, order=order))


@metric(
    "bleu",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, 1),
    batch=True,
    aggregate=partial(_aggregate, 4),
    part_aggregates={part: partial(_aggregate, order) for order, part in enumerate(_PARTS, 1)},
    part_bounds=dict.fromkeys(_PARTS, (0, 1)),
)
def compute_bleu(samples: Sequence[Sample], *, tokenizer: TokenizerName = "ptb") -> Scores:
    """Precision of n-grams of 1 to 4 words with a brevity penalty, as coco-caption computes it. Parts: BLEU-1 to 3."""
    scores, stats = captions_of(samples, tokenizer).bleu()
    parts = {part: scores[:, order].copy() for order, part in enumerate(_PARTS)}
    return Scores.of_values(scores[:, 3].copy(), parts, stats)


def bleu(candidate: str, references: Sequence[str], **options: str) -> tuple[float, float, float, float]:
    """BLEU-1 to BLEU-4 of one caption against its references. The options are those of the metric."""
    score = score_of_texts(compute_bleu, candidate, references, options)
    bleu_1, bleu_2, bleu_3 = ((score.parts or {})[part] for part in _PARTS)
    return bleu_1, bleu_2, bleu_3, float(score.value or 0)
