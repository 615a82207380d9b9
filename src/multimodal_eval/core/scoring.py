"""Scoring a batch: a failure stays with its sample and never becomes a score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

import msgspec

from multimodal_eval.core.errors import ConfigError, UnavailableError, UnknownNameError, shorten
from multimodal_eval.core.metric import Bounds, Metric, Scorer, is_number
from multimodal_eval.core.retries import GaveUpError, Retries
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Score, unscored

BLANK_ANSWER = "blank_answer"
ROUNDING = 1e-12  # how far a sum of floating-point numbers may exceed its bounds

# Patterns of a generator's error messages. Configurable, since every pipeline writes its own.
ERROR_PATTERNS: tuple[str, ...] = (r"\s*\[ERROR\]",)


def score_batch(
    metric: Metric,
    scorer: Scorer,
    batch: Sequence[Sample],
    error_patterns: Sequence[str] = ERROR_PATTERNS,
    retries: Retries | None = None,
) -> list[Score]:
    """One score per sample: inputs are checked first, failures isolated, values checked at the end.

    A sample for which all retries failed has the status `open`: see `core.retries`.
    """
    patterns = [re.compile(pattern) for pattern in error_patterns]
    refusals = [_refusal(metric, sample, patterns) for sample in batch]
    ready = [sample for sample, refusal in zip(batch, refusals, strict=True) if refusal is None]
    fresh = iter(_scored(scorer, ready, retries or Retries()))
    return [
        _with_blank_warning(sample, refusal or _checked(metric.bounds, next(fresh)))
        for sample, refusal in zip(batch, refusals, strict=True)
    ]


def with_failures_marked(samples: Sequence[Sample], error_patterns: Sequence[str]) -> list[Sample]:
    """The samples, with `error` set if the answer is a generator's error message, so that no metric is fitted on it."""
    patterns = [re.compile(pattern) for pattern in error_patterns]
    return [
        msgspec.structs.replace(sample, error=answer)
        if (answer := sample.generated_answer) is not None and is_error_message(answer, patterns)
        else sample
        for sample in samples
    ]


def is_error_message(answer: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Whether an answer is a generator's error message."""
    for pattern in patterns:  # noqa: SIM110 - `any` with a generator takes twice as long
        if pattern.match(answer):
            return True
    return False


def _refusal(metric: Metric, sample: Sample, patterns: Sequence[re.Pattern[str]]) -> Score | None:
    answer = sample.generated_answer
    if sample.error:
        return unscored("error", f"the generator failed: {shorten(sample.error)}")
    if answer is not None and is_error_message(answer, patterns):
        return unscored("error", f"the answer is a generator's error message: {shorten(answer)}")
    missing = [need for need in metric.needs if not has(sample, need)]
    if missing:
        return unscored("missing_input", f"no {', '.join(missing)}".replace("|", " or "))
    if metric.blank is not None and answer is not None and not answer.strip():
        return Score(metric.blank)
    return None


def _scored(scorer: Scorer, batch: list[Sample], retries: Retries) -> list[Score]:
    """Score the batch in one call, or sample by sample if the scorer works that way anyway."""
    if not getattr(scorer, "one_by_one", False):
        return _isolating(scorer, batch, retries)
    scores: list[Score] = []
    for sample in batch:
        scores += _isolating(scorer, [sample], retries)
    return scores


def _isolating(scorer: Scorer, batch: list[Sample], retries: Retries) -> list[Score]:
    """Score the batch; if that fails, halve it until the failing sample is isolated.

    A retryable failure is retried; it never halves the batch.
    """
    if not batch:
        return []
    try:
        scores = retries.call(scorer.score, batch)
        if len(scores) != len(batch):
            raise ValueError(f"the metric returned {len(scores)} scores for {len(batch)} samples")
        return scores
    except GaveUpError as failure:
        return [unscored("open", str(failure))] * len(batch)
    except (ConfigError, UnavailableError, UnknownNameError):  # not the fault of a sample
        raise
    except Exception as failure:  # noqa: BLE001 - any exception of a metric belongs to the sample
        if len(batch) == 1:
            return [unscored("error", f"{type(failure).__name__}: {failure}")]
        half = len(batch) // 2
        return _isolating(scorer, batch[:half], retries) + _isolating(scorer, batch[half:], retries)


def _checked(bounds: Bounds, score: Score) -> Score:
    """The score with plain float values, or an error if a value is invalid."""
    if score.value is None:
        if score.status == "ok":
            return unscored("error", "TYPE: the metric returned no value and no reason")
        return msgspec.structs.replace(score, stats=None, parts=None)
    fault = value_fault(score.value, bounds)
    for part, value in (score.parts or {}).items():
        fault = fault or value_fault(value, (None, None), f"part {part!r}")
    for value in score.stats or ():
        fault = fault or value_fault(value, (None, None), "statistic")
    if fault:
        return unscored("error", fault)
    if type(score.value) is float and not score.parts and {float}.issuperset(map(type, score.stats or ())):
        return score
    parts = {part: float(value) for part, value in score.parts.items()} if score.parts else None
    stats = None if score.stats is None else tuple(map(float, score.stats))
    return msgspec.structs.replace(score, value=float(score.value), parts=parts, stats=stats)


def value_fault(value: object, bounds: Bounds, what: str = "value") -> str | None:
    """What is wrong with a score's value, or None."""
    if type(value) is not float and not is_number(value):
        return f"TYPE: the {what} must be a number. Got {shorten(value)} instead."
    number = float(value)  # type: ignore[arg-type]
    if not isfinite(number):
        return f"NONFINITE: the {what} is {number}"
    low, high = bounds
    if (low is not None and number < low - ROUNDING) or (high is not None and number > high + ROUNDING * high):
        return f"RANGE: the {what} {number!r} is outside [{low}, {high}]"
    return None


def _with_blank_warning(sample: Sample, score: Score) -> Score:
    answer = sample.generated_answer
    if answer is None or score.value is None or (answer and not answer.isspace()):
        return score
    return msgspec.structs.replace(score, warning=BLANK_ANSWER)
