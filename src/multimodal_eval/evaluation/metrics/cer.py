"""Character error rate: how many characters of a transcript must be changed, added or removed to get the reference?

With the substitutions S, deletions D and insertions I of the best alignment, and N characters in the reference:

    CER = (S + D + I) / N

Spaces count as characters. The rate of a corpus has the sums over all utterances in numerator and denominator. If the
reference is empty, the value is the number of insertions.

Reference:
    Morris, Maier and Green (2004). From WER and RIL to MER and WIL: improved evaluation measures for connected speech
    recognition. Interspeech; the implementation is jiwer's `cer`.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.evaluation.speech import (
    DEFAULT_RULE,
    PART_AGGREGATES,
    PART_BOUNDS,
    corpus_error_rate,
    error_rate,
    score_batch,
    value_of,
)
from multimodal_eval.text.transcripts import TranscriptRule

__all__ = ["cer", "compute_cer"]


def cer(candidate: str, references: Sequence[str], *, rule: str = DEFAULT_RULE) -> float:
    """The character error rate of one transcript, against the reference with the lowest."""
    return value_of(candidate, references, "cer", rule, error_rate, "characters")


def score_cer(samples: Sequence[Sample], *, rule: str = DEFAULT_RULE) -> Scores:
    """The character error rate of many samples, with the counts for the corpus score."""
    return score_batch(samples, error_rate, rule, unit="characters", in_detail=True)


@metric(
    "cer",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, None),
    direction="lower",
    batch=score_cer,
    aggregate=corpus_error_rate,
    part_aggregates=PART_AGGREGATES,
    part_bounds=PART_BOUNDS,
)
def compute_cer(sample: Sample, *, rule: TranscriptRule = DEFAULT_RULE) -> float:
    """The share of characters that are wrong, missing or added. Parts: the three kinds of errors, and hits."""
    return cer(sample.generated_answer or "", sample.reference_texts, rule=rule)
