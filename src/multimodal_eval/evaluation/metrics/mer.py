"""Match error rate: which share of the aligned word pairs is wrong?

With H hits, S substitutions, D deletions and I insertions in the best alignment:

    MER = (S + D + I) / (H + S + D + I)

It is the probability that a pair of the alignment is an error, and unlike the word error rate never exceeds 1. The rate
of a corpus is computed from summed counts. Two texts without words have the value 0.

Reference:
    Morris, Maier and Green (2004). From WER and RIL to MER and WIL: improved evaluation measures for connected speech
    recognition. Interspeech; the implementation is jiwer's `mer`.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.evaluation.speech import (
    DEFAULT_RULE,
    corpus_match_error_rate,
    match_error_rate,
    score_batch,
    value_of,
)
from multimodal_eval.text.transcripts import TranscriptRule

__all__ = ["compute_mer", "mer"]


def mer(candidate: str, references: Sequence[str], *, rule: str = DEFAULT_RULE) -> float:
    """The match error rate of one transcript, against the reference with the lowest."""
    return value_of(candidate, references, "mer", rule, match_error_rate, "words")


def score_mer(samples: Sequence[Sample], *, rule: str = DEFAULT_RULE) -> Scores:
    """The match error rate of many samples, with the counts for the corpus score."""
    return score_batch(samples, match_error_rate, rule)


@metric(
    "mer",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, 1),
    direction="lower",
    batch=score_mer,
    aggregate=corpus_match_error_rate,
)
def compute_mer(sample: Sample, *, rule: TranscriptRule = DEFAULT_RULE) -> float:
    """The share of errors among the aligned words."""
    return mer(sample.generated_answer or "", sample.reference_texts, rule=rule)
