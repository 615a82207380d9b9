"""Failed answers as scores: what an answer that cannot be scored counts as, so that failing is never better.

A failed answer keeps its status in the run folder. Here it gets the worst value of the metric, or is scored as a blank
answer if the metric is not a mean of values. A sample without a score by no fault of the answer (there is no reference,
its image cannot be read) is not counted against anybody. `unscored_reasons` says why, for every metric of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Final, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Codes, Column, column_names
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.corpus import default_state, load_state
from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.core.failures import answers_of
from multimodal_eval.core.judge_config import DECIDED
from multimodal_eval.core.metric import Bounds, Metric, StoredMean, part_bounds
from multimodal_eval.core.records import RunInfo
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import OK, Scores
from multimodal_eval.core.scoring import kind_of, score_rows
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = [
    "FAILURES",
    "Choice",
    "FailureRule",
    "Stored",
    "UnscoredReason",
    "counted",
    "failed_and_unknown",
    "failures_in_words",
    "rule_in_words",
    "rule_of",
    "unscorable",
    "unscored_reasons",
    "unscored_rows",
    "warned_samples",
]

WORST: Final = "worst"
BLANK: Final = "blank"
LEFT_OUT: Final = "left-out"
Choice = float | Literal["worst", "blank", "left-out"]
Mask = NDArray[np.bool_]

# Why a row has no score.
NO_ANSWER, ERROR_MESSAGE, NOT_SCORABLE = "no_answer", "error_message", "not_scorable"  # the answer's fault
GOLD, JUDGE = "gold", "judge"  # not its fault: the data lack an input, the judge gave no verdict
FAILURES: Mapping[str, str] = {  # in words, after their number
    NO_ANSWER: "without an answer",
    ERROR_MESSAGE: "with an error message",
    NOT_SCORABLE: "that the metric cannot score",
}
_ANSWERS = {"generated_answer", "perplexity", "logprobs", "error"}  # needs that the data of a contest do not have
_SURE: Mapping[str, object] = {"perplexity": 2.0, "logprobs": [-1.0], "error": None}  # what a model would say too
_COMPOSITE_BOUNDS: Bounds = (0.0, 1.0)


class Stored(Protocol):
    """A run folder and its description; the results need not be there."""

    @property
    def folder(self) -> RunFolder:
        """Its files."""

    @property
    def info(self) -> RunInfo:
        """The content of run.json."""


class FailureRule(msgspec.Struct, frozen=True):
    """What a failed answer counts as: a value, or without one a blank answer, or nothing."""

    label: str  # in signatures
    value: float | None = None

    @property
    def leaves_out(self) -> bool:
        """Whether samples with a failed answer are left out, for everybody."""
        return self.label == LEFT_OUT


def rule_of(metric: Metric | None, name: str, part: str = "", choice: Choice = WORST) -> FailureRule:
    """The rule for a metric or a part of one; None is a composite.

    The worst value is the metric's bound. Without a finite one, a ConfigError names the other choices.
    """
    bounds, is_mean = _COMPOSITE_BOUNDS, metric is None or kind_of(metric, part) == "mean"
    if metric is not None:
        bounds = part_bounds(metric).get(part, (None, None)) if part else metric.bounds
    if choice == LEFT_OUT:
        return FailureRule(LEFT_OUT)
    if choice == BLANK:
        if metric is None or _is_judge(metric):
            raise ConfigError(f"{name} cannot score a blank answer by itself. {_choices(is_mean, blank=False)}")
        return FailureRule(BLANK)
    if not isinstance(choice, str):
        if not is_mean:
            raise ConfigError(f"{name} is not a mean of values: no single value can be set. {_choices(is_mean)}")
        low, high = (limit if end is None else end for end, limit in zip(bounds, (-np.inf, np.inf), strict=True))
        if not (isfinite(choice) and low <= choice <= high):
            raise ConfigError(f"--failed-answers must be a value of {name}, from {low:g} to {high:g}. Got {choice!r}.")
        return FailureRule(f"{choice:g}", float(choice))
    worst = bounds[1] if metric is not None and metric.direction == "lower" else bounds[0]
    if worst is None or not isfinite(worst):
        raise ConfigError(f"{name} has no worst value that a failed answer could count as. {_choices(is_mean)}")
    return FailureRule(WORST, float(worst)) if is_mean else FailureRule(BLANK)


def rule_in_words(label: str) -> str:
    """What a failed answer counts as, by the label of the rule."""
    counts_as = {
        WORST: "Failed answers count as the worst value of the metric",
        BLANK: "Failed answers count as blank answers",
        LEFT_OUT: "Samples with a failed answer in any submission are left out for all",
    }
    return counts_as.get(label, f"Failed answers count as {label}")


def failures_in_words(failures: Mapping[str, int]) -> str:
    """The number of failed answers, and of each kind: "3 (2 without an answer, 1 with an error message)"."""
    kinds = [f"{failures[reason]:,} {words}" for reason, words in FAILURES.items() if failures.get(reason)]
    return f"{sum(failures.values()):,} ({', '.join(kinds)})"


def _choices(is_mean: bool, *, blank: bool = True) -> str:
    """What the organiser can choose."""
    choices = [
        *(["--failed-answers VALUE (what a failed answer counts as)"] if is_mean else []),
        *(["--failed-answers blank (it is scored as an empty answer)"] if blank else []),
        "--failed-answers left-out (its sample counts for nobody)",
    ]
    return f"Choose {' or '.join(choices)}"


def _is_judge(metric: Metric) -> bool:
    from multimodal_eval.evaluation.judge_metric import JudgeMetric

    return isinstance(metric, JudgeMetric)


def unscored_rows(run: Stored, metrics: Sequence[Metric], values: NDArray[np.float64]) -> dict[int, str]:
    """Why each row without a value has none. `metrics` are those that the value depends on."""
    judges = any(map(_is_judge, metrics))
    needs = dict.fromkeys(need for metric in metrics for need in metric.needs)
    gold_needs = [need for need in needs if not _ANSWERS & {*need.split("|")}]
    answer_needs = [need for need in needs if need not in gold_needs]
    rows = np.flatnonzero(np.isnan(values))
    reasons: dict[int, str] = {}
    samples = _samples(run, rows)
    failed = answers_of(Batch.of(samples), run.info.config.patterns).failed
    for position, (row, sample) in enumerate(zip(rows.tolist(), samples, strict=True)):
        if not all(has(sample, need) for need in gold_needs):
            reasons[row] = GOLD
        elif position in failed:
            reasons[row] = ERROR_MESSAGE
        elif sample.generated_answer is None or not all(has(sample, need) for need in answer_needs):
            reasons[row] = NO_ANSWER
        else:
            reasons[row] = JUDGE if judges else NOT_SCORABLE
    return reasons


def failed_and_unknown(run: Stored, metrics: Sequence[Metric], column: Column) -> tuple[Mask, Mask]:
    """The rows whose answer failed, and all rows without a score that an answer could have one for.

    An answer that a metric cannot score is a failure, unless the sample's own reference has no score either. An error
    of the metric is none, nor is a judge without a verdict.
    """
    failed, unknown = (np.zeros(len(column.values), np.bool_) for _ in range(2))
    reasons = unscored_rows(run, metrics, column.values)
    rows = np.array(sorted(reasons), np.int64)
    texts = dict(zip(rows.tolist(), column.reason.take(rows).to_pylist(), strict=True))
    statuses = dict(zip(rows.tolist(), column.status.take(rows).to_pylist(), strict=True))
    for row, reason in reasons.items():
        unknown[row] = reason != GOLD and texts[row] != DECIDED
        failed[row] = reason in FAILURES and (reason != NOT_SCORABLE or statuses[row] != "error")
    tried = np.array([row for row in rows.tolist() if failed[row] and reasons[row] == NOT_SCORABLE], np.int64)
    light = [metric for metric in metrics if metric.placement != "model"]
    if len(tried) and light:
        with suppress(UnavailableError):
            hopeless = tried[unscorable(run, light, tried)]
            failed[hopeless] = unknown[hopeless] = False
    return failed, unknown


def unscorable(run: Stored, metrics: Sequence[Metric], rows: Codes) -> Mask:
    """Which of the rows no answer can get a score for: not even their own reference does.

    For samples that nobody has scored. A judge is not asked; a metric that is not here cannot be tried.
    """
    samples = [
        msgspec.structs.replace(sample, generated_answer=next(iter(sample.reference_texts), "yes"), **_SURE)
        for sample in _samples(run, rows)
    ]
    without = np.zeros(len(rows), np.bool_)
    for metric in metrics:
        if isinstance(metric, StoredMean):
            without[:] = True
        elif len(rows) and not _is_judge(metric):
            without |= _scored(run, metric, samples).status != OK
    return without


def counted(run: Stored, metric: Metric | None, column: Column, failed: Codes, rule: FailureRule) -> Column:
    """The column with the failed rows counted by the rule; the others are unchanged."""
    if not len(failed) or rule.leaves_out:
        return column
    fresh = None if rule.value is not None or metric is None else _blank(run, metric, failed)
    values, is_scored = column.values.copy(), column.scored.copy()
    values[failed] = rule.value if fresh is None else fresh.values
    is_scored[failed] = True
    parts = {part: part_values.copy() for part, part_values in column.parts.items()}
    for part, part_values in parts.items():
        part_values[failed] = rule.value if fresh is None else fresh.parts.get(part, np.nan)
    stats = None
    if column.stats is not None:
        table = np.zeros((len(values), column.stats.shape[1]))  # a mean does not look at them
        table[column.scored] = column.stats
        if fresh is not None:
            table[failed] = _stats(fresh, table.shape[1], column.name)
        stats = table[is_scored]
    return msgspec.structs.replace(column, values=values, scored=is_scored, stats=stats, parts=parts)


def _stats(scores: Scores, width: int, name: str) -> NDArray[np.float64]:
    """The statistics of blank answers, as many as those of the other answers."""
    rows = () if scores.stats is None else scores.stats
    if len(rows) != len(scores) or any(row is None or len(row) != width for row in rows):
        raise ConfigError(f"{name}: a blank answer has other statistics than an answer. {_choices(is_mean=False)}")
    return np.array(rows, np.float64)


def _blank(run: Stored, metric: Metric, rows: Codes) -> Scores:
    """The scores that blank answers have in these rows."""
    samples = [msgspec.structs.replace(sample, generated_answer="", error=None) for sample in _samples(run, rows)]
    scores = _scored(run, metric, samples)
    if (scores.status != OK).any():
        raise ConfigError(f"{metric.name} gives a blank answer no score. {_choices(is_mean=False, blank=False)}")
    return scores


def _scored(run: Stored, metric: Metric, samples: Sequence[Sample]) -> Scores:
    """The scores of changed samples, with the corpus statistics of the run."""
    state = default_state(metric)
    if run.folder.has_state(metric.name):
        with run.folder.state_copy(metric.name) as path:
            state = load_state(metric, path)
    return score_rows(metric, metric.open(state), Batch.of(samples), ())


def _samples(run: Stored, rows: Codes) -> list[Sample]:
    """The samples of these rows, which are ascending."""
    samples: list[Sample] = []
    start = 0
    for part, size in enumerate(run.info.parts):
        wanted = rows[(rows >= start) & (rows < start + size)] - start
        if len(wanted):
            stored = run.folder.read_samples(part)
            samples += (stored[row] for row in wanted.tolist())
        start += size
    return samples


_SHOWN_IDS = 20


class UnscoredReason(msgspec.Struct, frozen=True):
    """A reason for which samples have no score, or are scored with a warning."""

    reason: str
    status: str
    count: int
    total: int
    ids: tuple[str, ...]  # of the first of these samples
    metrics: tuple[str, ...]  # that say this of exactly these samples


def unscored_reasons(run: Run) -> list[UnscoredReason]:
    """The reasons of all metrics, the most frequent ones first. Metrics with the same samples share one."""
    return _said(run, [name for name, e in run.entries.items() if e.coverage.scored < e.coverage.total], "reason")


def warned_samples(run: Run) -> list[UnscoredReason]:
    """The warnings about scored samples, such as answers in which a rule found nothing."""
    return _said(run, [name for name, e in run.entries.items() if e.coverage.warnings], "warning")


def _said(run: Run, metrics: list[str], what: str) -> list[UnscoredReason]:
    """What the column `m:reason` or `m:warning` of these metrics says, if the run has stored it."""
    stored = column_names(run.folder, len(run.info.parts)) if metrics else ()
    metrics = [name for name in metrics if name in stored]
    if not metrics:
        return []
    table = run.scores(["id", *(f"{name}:{column}" for name in metrics for column in ("status", what))])
    ids, shared = table.column("id"), dict[tuple[str, str, tuple[int, ...]], list[str]]()
    for name in metrics:
        rows: dict[tuple[str, str], list[int]] = {}
        statuses = table.column(f"{name}:status").to_pylist()
        for row, (status, reason) in enumerate(zip(statuses, table.column(f"{name}:{what}").to_pylist(), strict=True)):
            if reason is not None:
                rows.setdefault((reason, status), []).append(row)
        for (reason, status), places in rows.items():
            shared.setdefault((reason, status, tuple(places)), []).append(name)
    reasons = [
        UnscoredReason(
            reason,
            status,
            len(places),
            len(table),
            tuple(ids[place].as_py() for place in places[:_SHOWN_IDS]),
            tuple(names),
        )
        for (reason, status, places), names in shared.items()
    ]
    return sorted(reasons, key=lambda each: -each.count)
