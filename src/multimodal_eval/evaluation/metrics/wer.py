"""Word error rate: how many words of a transcript must be changed, added or removed to get the reference?

With the substitutions S, deletions D and insertions I of the best alignment, and N words in the reference:

    WER = (S + D + I) / N

It has no upper bound. The rate of a corpus has the sums over all utterances in numerator and denominator, and is not
the mean of the utterances' rates. If the reference has no words, the value is the number of insertions.

Reference:
    Morris, Maier and Green (2004). From WER and RIL to MER and WIL: improved evaluation measures for connected speech
    recognition. Interspeech; the implementation is jiwer's `wer`.
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

__all__ = ["compute_wer", "wer"]


def wer(candidate: str, references: Sequence[str], *, rule: str = DEFAULT_RULE) -> float:
    """The word error rate of one transcript, against the reference with the lowest."""
    return value_of(candidate, references, "wer", rule, error_rate, "words")


def score_wer(samples: Sequence[Sample], *, rule: str = DEFAULT_RULE) -> Scores:
    """The word error rate of many samples, with the counts for the corpus score."""
    return score_batch(samples, error_rate, rule, in_detail=True)


@metric(
    "wer",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, None),
    direction="lower",
    batch=score_wer,
    aggregate=corpus_error_rate,
    part_aggregates=PART_AGGREGATES,
    part_bounds=PART_BOUNDS,
)
def compute_wer(sample: Sample, *, rule: TranscriptRule = DEFAULT_RULE) -> float:
    """The share of words that are wrong, missing or added. Parts: the three kinds of errors, and hits."""
    return wer(sample.generated_answer or "", sample.reference_texts, rule=rule)
