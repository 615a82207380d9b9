"""Composites that leave missing parts out: which parts each sample has, and what the missing ones could change.

Two samples whose composites have different parts are not comparable: a run that fails at its weakest part would gain.
So runs are compared on the samples with the same parts, and a part that an answer failed at is a failed answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from multimodal_eval.analysis.columns import Codes, column_names, read_column, read_values
from multimodal_eval.analysis.failures import Mask, Stored, failed_and_unknown
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.evaluation.composite_score import entering_column
from multimodal_eval.evaluation.metrics_registry import as_in_run, make_task
from multimodal_eval.evaluation.tasks_config import Task
from multimodal_eval.stats.intervals import Vector

__all__ = ["Renormalised", "renormalised", "same_parts"]


class Renormalised(msgspec.Struct, frozen=True):
    """The composites of a run's samples if parts without a score count."""

    parts: Vector  # as they enter the composite (samples x parts), with those that the answer failed at as 0
    counted: Vector  # the composites of these parts
    lowest: Vector  # with every part without a score as 0
    highest: Vector  # and as 1
    failed: Mask  # samples whose answer failed at a part
    unknown: Mask  # samples with a part without a score that an answer could have one for


def renormalised(run: Stored) -> Renormalised | None:
    """The composites of a run, if its task leaves missing parts out and one is missing."""
    task = _task(run)
    if task is None:
        return None
    count = len(run.info.parts)
    stored = column_names(run.folder, count)
    shape = sum(run.info.parts), len(task.weights)
    values = np.full(shape, np.nan)
    failed, unknown = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    for place, name in enumerate(task.weights):
        if name not in stored:  # it could not run
            continue
        metric = as_in_run(run.info, name)
        column = read_column(run.folder, count, stored, name, metric.bounds)
        values[:, place] = entering_column(task, name, column.values)
        if not column.scored.all():
            failed[:, place], unknown[:, place] = failed_and_unknown(run, [metric], column)
    if not unknown.any():
        return None
    weights = np.array(list(task.weights.values()))
    parts = np.where(failed, 0.0, values)
    return Renormalised(
        parts,
        _composites(parts, weights),
        _composites(np.where(unknown, 0.0, values), weights),
        _composites(np.where(unknown, 1.0, values), weights),
        np.logical_or.reduce(failed, axis=1),
        np.logical_or.reduce(unknown, axis=1),
    )


def _task(run: Stored) -> Task | None:
    """The task of the run, if its composite leaves missing parts out."""
    try:
        task = make_task(run.info.config)
    except UnknownNameError:  # a task that is defined elsewhere
        return None
    return task if task is not None and task.weights and task.on_missing == "renormalise" else None


def _composites(values: Vector, weights: Vector) -> Vector:
    shares = (~np.isnan(values)) @ weights
    composites: Vector = np.nansum(values * weights, axis=1) / np.where(shares > 0, shares, np.nan)
    return composites


def same_parts(runs: Sequence[Stored], order: Sequence[Codes], *, counted: bool | None = None) -> Mask | None:
    """The samples whose composites have the same parts in all runs; None if missing parts are not left out.

    `counted` says whether a part that an answer failed at counts; by default, the runs say so (`count_failures`).
    """
    task = _task(runs[0])
    if task is None:
        return None
    if counted is None:
        counted = runs[0].info.config.count_failures is not None
    present = [_present(run, task, counted)[rows] for run, rows in zip(runs, order, strict=True)]
    same: Mask = np.logical_and.reduce([(parts == present[0]).all(axis=1) for parts in present])
    return same


def _present(run: Stored, task: Task, counted: bool) -> Mask:
    """The parts that count in each composite."""
    count = len(run.info.parts)
    stored = column_names(run.folder, count)
    present = ~np.isnan(np.column_stack(list(read_values(run.folder, count, stored, tuple(task.weights)))))
    for place, name in enumerate(task.weights):
        if counted and name in stored and not present[:, place].all():
            metric = as_in_run(run.info, name)
            column = read_column(run.folder, count, stored, name, metric.bounds)
            present[:, place] |= failed_and_unknown(run, [metric], column)[0]
    return present
