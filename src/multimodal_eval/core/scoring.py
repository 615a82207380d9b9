"""Scoring a batch, where a failure stays with its sample and never becomes a score, and aggregating the scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.batch import Batch, rows_without
from multimodal_eval.core.errors import (
    ConfigError,
    MetricError,
    UnavailableError,
    UnknownNameError,
    described,
    shorten,
    valid_text,
)
from multimodal_eval.core.failures import ERROR_PATTERNS, answers_of, compiled_patterns, is_error_message
from multimodal_eval.core.function_metric import FunctionScorer
from multimodal_eval.core.metric import (
    Aggregate,
    Bounds,
    Kind,
    M,
    Metric,
    Scorer,
    blank_value,
    is_number,
    part_bounds,
    within,
)
from multimodal_eval.core.metric_failures import GaveUpError, Retries, blamed_on, exit_error, failure_text
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import (
    MEAN,
    OK,
    STATUSES,
    UNREAD,
    Estimate,
    Mean,
    Rows,
    Score,
    Scores,
    code_of,
    joined,
    mean_estimate,
    unscored,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLANK_ANSWER = "blank_answer"
NOT_OF_A_SAMPLE = (ConfigError, MetricError, UnavailableError, UnknownNameError)  # these end the run
ROUNDING = 1e-12  # how far a sum of floating-point numbers may exceed its bounds


def score_batch(
    metric: Metric,
    scorer: Scorer,
    batch: Sequence[Sample],
    error_patterns: Sequence[str] = ERROR_PATTERNS,
    retries: Retries | None = None,
) -> list[Score]:
    """One score per sample: inputs are checked first, failures isolated, values checked at the end.

    A sample for which all retries failed has the status `open`: see `core.metric_failures`.
    """
    return list(score_rows(metric, scorer, Batch.of(batch), error_patterns, retries))


def score_rows(
    metric: Metric,
    scorer: Scorer,
    batch: Batch,
    error_patterns: Sequence[str] = ERROR_PATTERNS,
    retries: Retries | None = None,
) -> Scores:
    """`score_batch` as arrays."""
    import numpy as np

    scores, is_ready = _refused(metric, batch, error_patterns)
    rows = np.flatnonzero(is_ready)
    if len(rows):
        fresh = _scored(metric, scorer, batch.take(rows), retries or Retries())
        if len(rows) == len(batch):
            scores = fresh
        else:
            _put(scores, rows, fresh)
    for row in answers_of(batch, error_patterns).blank:
        if scores.status[row] == OK and scores.warnings.get(row) != UNREAD:
            scores.warnings[row] = BLANK_ANSWER
    return scores


def rows_to_score(metric: Metric, batch: Batch, error_patterns: Sequence[str] = ERROR_PATTERNS) -> NDArray[np.int64]:
    """The rows that a scorer gets: their answers have not failed, and they have what the metric needs."""
    import numpy as np

    _, is_ready = _refused(metric, batch, error_patterns)
    return np.flatnonzero(is_ready)


def _refused(metric: Metric, batch: Batch, error_patterns: Sequence[str]) -> tuple[Scores, NDArray[np.bool_]]:
    """The scores of the rows that a scorer does not get, and which rows it gets."""
    import numpy as np

    answers = answers_of(batch, error_patterns)
    scores = Scores(np.full(len(batch), np.nan), np.zeros(len(batch), np.uint8))
    is_ready = np.ones(len(batch), np.bool_)
    for row, reason in answers.failed.items():
        scores.refuse(row, "error", reason)
        is_ready[row] = False
    missing: dict[int, list[str]] = {}  # the reason names all inputs that are missing
    for need in metric.needs:
        for row in (rows_without(batch, need) & is_ready).nonzero()[0].tolist():
            missing.setdefault(row, []).append(need)
    for row, needs in missing.items():
        scores.refuse(row, "missing_input", f"no {', '.join(needs)}".replace("|", " or "))
        is_ready[row] = False
    blank = blank_value(metric)
    if blank is not None:
        fault = value_fault(blank, metric.bounds)
        for row in answers.blank:
            if is_ready[row]:
                is_ready[row] = False
                scores.put(row, unscored("error", fault) if fault else Score(float(blank)))
    return scores, is_ready


def _put(scores: Scores, rows: NDArray[np.int64], fresh: Scores) -> None:
    """Copy the scores of some rows into those of the whole batch."""
    import numpy as np

    scores.values[rows], scores.status[rows] = fresh.values, fresh.status
    places = rows.tolist()
    for name in ("reasons", "warnings", "details"):
        getattr(scores, name).update({places[row]: value for row, value in getattr(fresh, name).items()})
    for part, values in fresh.parts.items():
        whole = scores.parts[part] = np.full(len(scores), np.nan)
        whole[rows] = values
    if isinstance(fresh.stats, list):
        scores.stats = [None] * len(scores)
        for row, stats in zip(places, fresh.stats, strict=True):
            scores.stats[row] = stats
    elif fresh.stats is not None:
        table = np.full((len(scores), fresh.stats.shape[1]), np.nan)
        table[rows] = fresh.stats
        scores.stats = table


def with_failures_marked(samples: Batch, error_patterns: Sequence[str]) -> Sequence[Sample]:
    """The samples, with `error` set if the answer is a generator's error message, so that no metric is fitted on it."""
    failed = answers_of(samples, error_patterns).failed
    if not failed:
        return samples
    patterns = compiled_patterns(tuple(error_patterns))
    return [
        msgspec.structs.replace(sample, error=answer)
        if row in failed and (answer := sample.generated_answer) is not None and is_error_message(answer, patterns)
        else sample
        for row, sample in enumerate(samples)
    ]


def _scored(metric: Metric, scorer: Scorer, batch: Batch, retries: Retries) -> Scores:
    """Score the batch in one call, or sample by sample if the scorer works that way anyway; then check the values."""
    if isinstance(scorer, FunctionScorer):
        return _called(metric, scorer, batch, retries)
    if not getattr(scorer, "one_by_one", False):
        pieces = [_checked_scores(metric, scores) for scores in _isolating(metric, scorer, batch, retries)]
        return joined(pieces)
    scores: list[Score] = []
    for sample in batch:
        for piece in _isolating(metric, scorer, Batch.of([sample]), retries):
            scores += (_checked(metric, score) for score in piece)
    return Scores.of(scores)


def _called(metric: Metric, scorer: FunctionScorer, batch: Batch, retries: Retries) -> Scores:
    """Call a metric's function on every sample. A plain float needs no `Score`; everything else gets one."""
    import numpy as np

    values: list[float] = []
    others: dict[int, Score] = {}
    call, function = retries.call, scorer.function
    for sample in batch:
        try:
            result = call(function, sample)
            if type(result) is float:
                values.append(result)
                continue
            score = _checked(metric, scorer.as_score(result))
        except GaveUpError as failure:
            score = unscored("open", str(failure))
        except (KeyboardInterrupt, *NOT_OF_A_SAMPLE):
            raise
        except BaseException as failure:  # noqa: BLE001 - anything else that a metric raises belongs to the sample
            score = _failed(metric, batch[len(values) : len(values) + 1], failure)
        others[len(values)] = score
        values.append(np.nan)
    if len(others) == len(values) or any(score.stats for score in others.values()):
        listed = (others.get(row) or _checked(metric, Score(value)) for row, value in enumerate(values))
        return Scores.of(list(listed))
    scores = Scores(np.array(values), np.zeros(len(values), np.uint8))
    rows = np.fromiter(others, np.int64, len(others))
    scores.status[rows] = code_of("error")  # these are checked already
    scores = _checked_scores(metric, scores)
    if others:
        _put(scores, rows, Scores.of(list(others.values())))
    return scores


def _failed(metric: Metric, samples: Sequence[Sample], failure: BaseException) -> Score:
    """The score of a sample for which the metric raised an exception. `sys.exit` ends the run, with an error."""
    if isinstance(failure, SystemExit):
        first = samples[0].id
        which = f"the sample {first!r}" if len(samples) == 1 else f"{len(samples):,} samples from {first!r} on"
        raise exit_error(metric.name, f"scoring {which}", failure) from failure
    return unscored("error", failure_text(failure, metric.__module__))


def _isolating(metric: Metric, scorer: Scorer, batch: Batch, retries: Retries) -> list[Sequence[Score]]:
    """Score the batch; if that fails, halve it until the failing sample is isolated.

    A retryable failure is retried; it never halves the batch.
    """
    try:
        scores = retries.call(scorer.score, batch)
        if len(scores) != len(batch):
            raise ValueError(f"the metric returned {len(scores)} scores for {len(batch)} samples")
        if isinstance(scores, Scores):
            scores.refuse_shapes()
        return [scores]
    except GaveUpError as failure:
        return [[unscored("open", str(failure))] * len(batch)]
    except (KeyboardInterrupt, *NOT_OF_A_SAMPLE):
        raise
    except BaseException as failure:  # noqa: BLE001 - anything else that a metric raises belongs to the sample
        if len(batch) == 1 or isinstance(failure, SystemExit):
            return [[_failed(metric, batch, failure)]]
        half = len(batch) // 2
        return _isolating(metric, scorer, batch[:half], retries) + _isolating(metric, scorer, batch[half:], retries)


def _checked_scores(metric: Metric, scores: Sequence[Score]) -> Scores:
    """The scores. Rows with an invalid value, or with a value although they are unscored, become errors."""
    import numpy as np

    if not isinstance(scores, Scores):
        return Scores.of([_checked(metric, score) for score in scores])
    is_scored = scores.status == OK
    bad = are_faulty(scores.values, metric.bounds)
    extra = [(f"part {name!r}", values[:, None]) for name, values in scores.parts.items()]
    if scores.stats is not None and not isinstance(scores.stats, list):
        extra.append(("statistic", scores.stats))
    for _, values in extra:
        bad |= ~np.isfinite(values).all(axis=1)
    for row in np.flatnonzero(bad & is_scored).tolist():
        fault = value_fault(float(scores.values[row]), metric.bounds)
        for what, values in extra:
            for value in values[row].tolist():
                fault = fault or value_fault(value, (None, None), what)
        scores.refuse(row, "error", fault or "")
    for row, stats in enumerate(scores.stats if isinstance(scores.stats, list) else ()):
        faults = (value_fault(value, (None, None), "statistic") for value in stats or ())
        if scores.status[row] == OK and (fault := next(filter(None, faults), None)):
            scores.refuse(row, "error", fault)
    for row in np.flatnonzero(~is_scored & ~np.isnan(scores.values)).tolist():
        status = STATUSES[scores.status[row]]
        scores.refuse(row, "error", _status_fault(metric.name, float(scores.values[row]), status))
    for texts in (scores.reasons, scores.warnings):
        for row, text in texts.items():
            texts[row] = valid_text(text)
    return scores


def _status_fault(name: str, value: object, status: object) -> str:
    """What is wrong with a value that has a status other than `ok`: it must not count as a score."""
    shown = shorten(status)
    return (
        f"STATUS: {name} returned the value {shorten(value)} with the status {shown}. "
        f"A sample has a value or a status: return Score(None, {shown}, reason), or the value alone"
    )


def _checked(metric: Metric, score: Score) -> Score:
    """The score with plain float values, or an error if a value is invalid."""
    if not isinstance(score, Score):
        return unscored("error", f"TYPE: {metric.name} must return a Score for each sample. Got {shorten(score)}.")
    if score.status not in STATUSES:
        known = ", ".join(STATUSES[:-1])
        return unscored("error", f"STATUS: {metric.name}: unknown status {shorten(score.status)}. Known: {known}")
    if score.reason is not None or score.warning is not None:
        score = _with_valid_texts(score)
    if score.value is None:
        if score.status == "ok":
            return unscored("error", "TYPE: the metric returned no value and no reason")
        return _checked_parts(score)
    if score.status != "ok":
        return unscored("error", _status_fault(metric.name, score.value, score.status))
    fault = value_fault(score.value, metric.bounds) or _parts_fault(score)
    for value in score.stats or ():
        fault = fault or value_fault(value, (None, None), "statistic")
    if fault:
        return unscored("error", fault)
    if type(score.value) is float and not score.parts and {float}.issuperset(map(type, score.stats or ())):
        return score
    parts = {part: float(value) for part, value in score.parts.items()} if score.parts else None
    stats = None if score.stats is None else tuple(map(float, score.stats))
    return msgspec.structs.replace(score, value=float(score.value), parts=parts, stats=stats)


def _with_valid_texts(score: Score) -> Score:
    """The score with texts that can be stored."""
    reason, warning = (None if text is None else valid_text(text) for text in (score.reason, score.warning))
    if reason is score.reason and warning is score.warning:
        return score
    return msgspec.structs.replace(score, reason=reason, warning=warning)


def _parts_fault(score: Score) -> str | None:
    """What is wrong with the first invalid part: its name or its value."""
    for part, value in (score.parts or {}).items():
        if valid_text(part) != str(part):
            return f"TYPE: the name of a part must be a short text. Got {shorten(part)} instead."
        if fault := value_fault(value, (None, None), f"part {part!r}"):
            return fault
    return None


def _checked_parts(score: Score) -> Score:
    """A score without a value. A degenerate one may have parts, if a metric has no headline."""
    if score.status != "degenerate" or not score.parts:
        return msgspec.structs.replace(score, stats=None, parts=None)
    if fault := _parts_fault(score):
        return unscored("error", fault)
    parts = {part: float(value) for part, value in score.parts.items()}
    return msgspec.structs.replace(score, stats=None, parts=parts)


def are_faulty(values: NDArray[np.float64], bounds: Bounds) -> NDArray[np.bool_]:
    """Whether each value is not finite or is out of bounds, as in `value_fault`."""
    import numpy as np

    low, high = bounds
    faulty: NDArray[np.bool_] = ~np.isfinite(values)
    if low is not None:
        faulty |= values < low - ROUNDING
    if high is not None:
        faulty |= values > high + ROUNDING * high
    return faulty


def value_fault(value: object, bounds: Bounds, what: str = "value") -> str | None:
    """What is wrong with a score's value, or None."""
    if type(value) is not float and not is_number(value):
        return f"TYPE: the {what} must be a number. Got {shorten(value)} instead."
    try:
        number = float(value)  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - an integer that is too large, or a number type whose code fails
        return f"TYPE: the {what} must be a number that fits into 64 bits: {described(error)}"
    if not isfinite(number):
        return f"NONFINITE: the {what} is {number}"
    low, high = bounds
    if (low is not None and number < low - ROUNDING) or (high is not None and number > high + ROUNDING * high):
        return f"RANGE: the {what} {number!r} is outside [{low}, {high}]"
    return None


# The aggregate of a metric, checked: a wrong one is refused and never becomes a result.


AGGREGATE = "AGGREGATE"
_COMPOSITE_BOUNDS = (0.0, 1.0)
_WHAT_TO_DO = "An aggregate must return Estimate(value within the bounds, one finite influence value per row)"


def aggregate_of(metric: Metric, part: str = "") -> Aggregate:
    """The function that aggregates the values of a metric, or of one of its parts."""
    aggregate = metric.aggregate
    if isinstance(aggregate, Mapping):
        return aggregate.get(part, MEAN)
    return MEAN if part else aggregate


def kind_of(metric: Metric, part: str = "") -> Kind:
    """What the result of the metric, or of one of its parts, is: the mean of the samples, or a corpus score."""
    return "mean" if isinstance(aggregate_of(metric, part), Mean) else "corpus"


def averages(metric: Metric) -> bool:
    """Whether the metric's result is the mean of its values, to which weights and labels of samples can be applied."""
    aggregate = aggregate_of(metric)
    return isinstance(aggregate, Mean) and not aggregate.multiplies


def seen_within(metric: M, values: NDArray[np.float64]) -> M:
    """The metric with the range that the values of a run show, if it concludes it from them."""
    hook: Callable[..., Bounds] | None = getattr(type(metric), "seen_bounds", None)
    return within(metric, hook(metric, values)) if hook is not None and len(values) else metric


def estimate_of(metric: Metric | None, rows: Rows, part: str = "") -> Estimate:
    """The metric's aggregate of its values, or of one part. None is a composite that is a mean.

    Refused if the value is not finite or outside the metric's bounds, or if there is not one finite influence value per
    row.
    """
    from dataclasses import replace

    if metric is None:
        return replace(mean_estimate(rows), bounds=_COMPOSITE_BOUNDS)
    name = f"{metric.name}.{part}" if part else metric.name
    with blamed_on(name, "aggregating its scores"):
        estimate = aggregate_of(metric, part)(rows)
    if not isinstance(estimate, Estimate):
        raise _refusal(name, f"it returned {shorten(estimate)}")
    bounds = part_bounds(metric).get(part, estimate.bounds) if part else metric.bounds
    if fault := value_fault(estimate.value, bounds):
        raise _refusal(name, fault.partition(": ")[2])
    influence = _vector(name, "influence", estimate.influence, len(rows))
    vectors: dict[str, Any] = {}
    if influence is not estimate.influence:
        vectors["influence"] = influence
    for what in ("strata", "contributions"):
        given = getattr(estimate, what)
        if given is not None:
            _vector(name, what, given, len(rows))
    if bounds != estimate.bounds:
        vectors["bounds"] = bounds
    if not vectors and type(estimate.value) is float:
        return estimate
    return replace(estimate, value=float(estimate.value), **vectors)


def _vector(name: str, what: str, values: object, count: int) -> NDArray[np.float64]:
    """One finite number per row; float64 arrays are returned as they are."""
    import numpy as np

    try:
        vector = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise _refusal(name, f"`{what}` is {shorten(values)}") from None
    if vector.dtype.kind not in "fiu":
        raise _refusal(name, f"`{what}` has values of type {vector.dtype}, which are not numbers")
    if vector.shape != (count,):
        size = f"{len(vector):,} values" if vector.ndim == 1 else f"the shape {vector.shape}"
        raise _refusal(name, f"`{what}` has {size} for {count:,} rows")
    if not np.isfinite(vector).all():
        row = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise _refusal(name, f"`{what}` is {vector[row]} in row {row}")
    return vector if vector.dtype == np.float64 else vector.astype(np.float64)


def _refusal(name: str, fault: str) -> MetricError:
    return MetricError(f"{AGGREGATE}: {name}: {fault}. {_WHAT_TO_DO}")
