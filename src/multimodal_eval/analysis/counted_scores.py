"""The scores of one metric in several runs over the same samples, with failed answers counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from multimodal_eval.analysis.columns import Codes, column_names
from multimodal_eval.analysis.failures import (
    FAILURES,
    GOLD,
    JUDGE,
    NOT_SCORABLE,
    WORST,
    Choice,
    FailureRule,
    Mask,
    counted,
    rule_of,
    unscorable,
    unscored_rows,
)
from multimodal_eval.analysis.pairing import AlignedScores, aligned_scores, metrics_behind, part_count
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import Metric, metric_and_part
from multimodal_eval.data.runs.run import Run

__all__ = ["CountedScores", "counted_scores"]


@dataclass(frozen=True)
class CountedScores:
    """One metric in all runs, with rows in the common order."""

    columns: list[AlignedScores]
    rule: FailureRule | None  # None: the metric has no worst value, and no answer failed
    left_out: Mask  # rows that no answer can get a score for
    failures: list[dict[str, int]]  # for each run, its failed answers by reason
    unjudged: list[int]  # for each run, its answers on which a judge gave no verdict


def counted_scores(runs: Sequence[Run], order: Sequence[Codes], name: str, choice: Choice = WORST) -> CountedScores:
    """The scores of a metric, or of `metric.part`, in all runs; `order` has each run's rows in the common order.

    A failure is the participant's if the sample can be scored: if somebody has a score for it, or its own reference
    would get one.
    """
    metric_name, part = metric_and_part(name, runs[0].info.signatures)
    columns = [
        aligned_scores(run, column_names(run.folder, part_count(run)), rows, name)
        for run, rows in zip(runs, order, strict=True)
    ]
    metrics = metrics_behind(runs[0], metric_name)
    reasons = [_reasons(run, metrics, column, rows) for run, column, rows in zip(runs, columns, order, strict=True)]
    left_out = _left_out(runs[0], metrics, columns, reasons)
    failed = [{row: reason for row, reason in by_row.items() if _counts(row, reason, left_out)} for by_row in reasons]
    try:
        rule = rule_of(columns[0].metric, name, part, choice)
    except ConfigError:
        if choice != WORST or any(failed):
            raise
        rule = None
    if rule is not None and not rule.leaves_out:
        columns = [
            _counted(run, column, rows, np.array(sorted(by_row), np.int64), rule)
            for run, column, rows, by_row in zip(runs, columns, order, failed, strict=True)
        ]
    unjudged = [sum(reason == JUDGE and not left_out[row] for row, reason in by_row.items()) for by_row in reasons]
    return CountedScores(columns, rule, left_out, [dict(Counter(by_row.values())) for by_row in failed], unjudged)


def _reasons(run: Run, metrics: Sequence[Metric], column: AlignedScores, rows: Codes) -> dict[int, str]:
    """Why rows have no value, by their number in the common order."""
    values = np.empty_like(column.values)
    values[rows] = column.values
    place = np.argsort(rows)
    return {int(place[row]): reason for row, reason in unscored_rows(run, metrics, values).items()}


def _left_out(
    run: Run, metrics: Sequence[Metric], columns: Sequence[AlignedScores], reasons: Sequence[dict[int, str]]
) -> Mask:
    """The rows that no answer can get a score for: the data lack an input, or nobody and no reference has a score."""
    nobodys = np.logical_and.reduce([np.isnan(column.values) for column in columns])
    gold = {row for by_row in reasons for row, reason in by_row.items() if reason == GOLD}
    unclear = {row for by_row in reasons for row, reason in by_row.items() if reason == NOT_SCORABLE} - gold
    tried = np.array(sorted(row for row in unclear if nobodys[row]), np.int64)
    left_out = np.zeros(len(nobodys), np.bool_)
    left_out[sorted(gold)] = True
    left_out[tried] = unscorable(run, metrics, tried)  # the rows of the first run are in the common order
    return left_out


def _counts(row: int, reason: str, left_out: Mask) -> bool:
    return reason in FAILURES and not left_out[row]


def _counted(run: Run, scores: AlignedScores, rows: Codes, failed: Codes, rule: FailureRule) -> AlignedScores:
    column = counted(run, scores.metric, scores.column, np.sort(rows[failed]), rule)
    values = column.parts[scores.part] if scores.part else column.values
    return replace(scores, column=column, values=values[rows])
