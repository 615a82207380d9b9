"""Word information lost: how much of the words' information does a transcript lose?

With H hits in the best alignment, N words in the reference and P words in the transcript:

    WIL = 1 - H/N * H/P

The value of a corpus is computed from summed counts. Two texts without words have the value 0; if only one of them has
words, it is 1.

Reference:
    Morris, Maier and Green (2004). From WER and RIL to MER and WIL: improved evaluation measures for connected speech
    recognition. Interspeech; the implementation is jiwer's `wil`.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scores import Scores
from multimodal_eval.evaluation.speech import (
    DEFAULT_RULE,
    corpus_information_lost,
    information_lost,
    score_batch,
    value_of,
)
from multimodal_eval.text.transcripts import TranscriptRule

__all__ = ["compute_wil", "wil"]


def wil(candidate: str, references: Sequence[str], *, rule: str = DEFAULT_RULE) -> float:
    """The word information lost of one transcript, against the reference with the lowest."""
    return value_of(candidate, references, "wil", rule, information_lost, "words")


def score_wil(samples: Sequence[Sample], *, rule: str = DEFAULT_RULE) -> Scores:
    """The word information lost of many samples, with the counts for the corpus score."""
    return score_batch(samples, information_lost, rule)


@metric(
    "wil",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, 1),
    direction="lower",
    batch=score_wil,
    aggregate=corpus_information_lost,
)
def compute_wil(sample: Sample, *, rule: TranscriptRule = DEFAULT_RULE) -> float:
    """One minus the product of the shares of hits in reference and transcript."""
    return wil(sample.generated_answer or "", sample.reference_texts, rule=rule)
