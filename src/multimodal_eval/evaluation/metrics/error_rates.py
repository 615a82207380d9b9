"""Error rates of transcripts: how far is a transcript from the reference?

With H hits, S substitutions, D deletions and I insertions in the best alignment, N words in the reference and P in the
transcript:

    WER = (S + D + I) / N                      word error rate
    CER = the same of characters               character error rate; spaces count
    MER = (S + D + I) / (H + S + D + I)        match error rate: the share of errors in the alignment
    WIL = 1 - H/N * H/P                        word information lost; its part `preserved` is WIP = 1 - WIL

WER and CER have no upper bound; without any unit in the reference, they are the number of insertions. MER and WIL are
never above 1; two texts without words have the value 0, and if only one of them has words, WIL is 1. The value of a
corpus is computed from counts that are summed over all utterances, and is not the mean of the utterances' values.

Reference:
    Morris, Maier and Green (2004). From WER and RIL to MER and WIL: improved evaluation measures for connected speech
    recognition. Interspeech; the implementations are jiwer's `wer`, `cer`, `mer` and `wil`.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.function_metric import FunctionMetric
from multimodal_eval.core.metric import Aggregate
from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Scores
from multimodal_eval.evaluation.speech import (
    DEFAULT_RULE,
    PART_AGGREGATES,
    PART_BOUNDS,
    PRESERVED,
    Rate,
    Unit,
    corpus_error_rate,
    corpus_information_lost,
    corpus_information_preserved,
    corpus_match_error_rate,
    error_rate,
    information_lost,
    match_error_rate,
    score_batch,
)
from multimodal_eval.text.captions import score_of_texts
from multimodal_eval.text.transcripts import TranscriptRule

__all__ = ["cer", "compute_cer", "compute_mer", "compute_wer", "compute_wil", "mer", "wer", "wil"]


def _registered(name: str, rate: Rate, aggregate: Aggregate, summary: str, unit: Unit = "words") -> FunctionMetric:
    """The metric of a rate. Those without an upper bound have the kinds of errors as parts, WIL has WIP."""
    in_detail = rate is error_rate
    aggregates: dict[str, Aggregate] | None = {**PART_AGGREGATES} if in_detail else None
    bounds = PART_BOUNDS if in_detail else None
    if rate is information_lost:
        aggregates, bounds = {PRESERVED: corpus_information_preserved}, {PRESERVED: (0.0, 1.0)}

    def compute(samples: Sequence[Sample], *, rule: TranscriptRule = DEFAULT_RULE) -> Scores:
        return score_batch(samples, rate, rule, unit=unit, in_detail=in_detail)

    compute.__name__ = compute.__qualname__ = f"compute_{name}"
    compute.__doc__ = summary
    registered = metric(
        name,
        version="1",
        needs=("generated_answer", "references"),
        bounds=(0, None if in_detail else 1),
        direction="lower",
        batch=True,
        aggregate=aggregate,
        part_aggregates=aggregates,
        part_bounds=bounds,
    )(compute)
    vars(registered)["takes_blank_references"] = True  # speech that is invented in silence counts
    return registered


compute_wer = _registered(
    "wer",
    error_rate,
    corpus_error_rate,
    "The share of words that are wrong, missing or added. Parts: the three kinds of errors, and hits.",
)
compute_cer = _registered(
    "cer",
    error_rate,
    corpus_error_rate,
    "The share of characters that are wrong, missing or added. Parts: the three kinds of errors, and hits.",
    "characters",
)
compute_mer = _registered(
    "mer", match_error_rate, corpus_match_error_rate, "The share of errors among the aligned words."
)
compute_wil = _registered(
    "wil",
    information_lost,
    corpus_information_lost,
    "One minus the product of the shares of hits in reference and transcript. Part: word information preserved.",
)


def wer(candidate: str, references: Sequence[str], **options: str) -> float:
    """The word error rate of one transcript, against the reference with the lowest. The options are the metric's."""
    return _value(compute_wer, candidate, references, **options)


def cer(candidate: str, references: Sequence[str], **options: str) -> float:
    """The character error rate of one transcript, as `wer`."""
    return _value(compute_cer, candidate, references, **options)


def mer(candidate: str, references: Sequence[str], **options: str) -> float:
    """The match error rate of one transcript, as `wer`."""
    return _value(compute_mer, candidate, references, **options)


def wil(candidate: str, references: Sequence[str], **options: str) -> float:
    """The word information lost of one transcript, as `wer`."""
    return _value(compute_wil, candidate, references, **options)


def _value(metric: FunctionMetric, candidate: str, references: Sequence[str], **options: str) -> float:
    return float(score_of_texts(metric, candidate, references, options).value or 0)
