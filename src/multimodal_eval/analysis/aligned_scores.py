"""The scores of runs over the same samples, with rows in a common order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.averaging import Averaging
from multimodal_eval.analysis.columns import Codes, Column, read_column
from multimodal_eval.analysis.pairing import part_count
from multimodal_eval.analysis.slices import read_strata
from multimodal_eval.core.aggregates import estimate_of
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.metric import Metric, metric_and_part
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.score import Estimate, Rows
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.metrics_registry import as_in_run
from multimodal_eval.stats.stratified import Strata


def metric_of(run: Run, name: str) -> Metric | None:
    """The metric that aggregates the scores, as configured in the run; None for a composite, which is a mean."""
    metric_name = run.info.signatures[COMPOSITE].headline if name == COMPOSITE else name
    return None if metric_name is None else as_in_run(run.info, metric_name)


@dataclass(frozen=True)
class AlignedScores:
    """The scores of one metric in one run, with rows in the common order."""

    column: Column
    values: NDArray[np.float64]  # NaN if unscored
    metric: Metric | None  # None: the composite, a mean
    part: str

    def estimate(self, rows: NDArray[np.bool_], order: Codes, averaging: Averaging) -> Estimate:
        """The estimate over the selected rows; `order` has the positions of all rows in the run."""
        stats = None
        if self.column.stats is not None:
            position = np.cumsum(self.column.scored) - 1  # of a row among the scored rows
            stats = self.column.stats[position[order[rows]]]
        return averaging.of(rows).estimate(self._aggregate, Rows(self.values[rows], stats))

    def _aggregate(self, rows: Rows) -> Estimate:
        return estimate_of(self.metric, rows, self.part)


def aligned_scores(run: Run, stored: Sequence[str], order: Codes, name: str) -> AlignedScores:
    """The scores of a metric, or of `metric.part`; `stored` are the columns of the run."""
    metric_name, part = metric_and_part(name, run.info.signatures)
    metric = metric_of(run, metric_name)
    bounds = (0, 1) if metric is None else metric.bounds
    column = read_column(run.folder, part_count(run), stored, metric_name, bounds)
    if part and part not in column.parts:
        raise UnknownNameError(f"part of {metric_name}", part, column.parts)
    values = column.parts[part] if part else column.values
    return AlignedScores(column, values[order], metric, part)


def without_record(runs: Sequence[Run], scores: Sequence[AlignedScores], order: Sequence[Codes]) -> NDArray[np.bool_]:
    """The samples for which no log of the runs has the score, such as those of another task or perturbation.

    They are not failures: the score does not apply to them. Only scores of imported runs can be such.
    """
    import pyarrow.compute as pc

    masks = []
    for run, run_scores, rows in zip(runs, scores, order, strict=True):
        reason = run.info.unrecorded(run_scores.column.name)
        if reason is None:
            return np.zeros(len(rows), np.bool_)
        is_missing = pc.equal(run_scores.column.reason, reason)
        masks.append(pc.fill_null(is_missing, False).to_numpy()[rows])
    return np.asarray(np.logical_and.reduce(masks), np.bool_)


def aligned_strata(run: Run, rows: Codes) -> Strata | None:
    """The strata of a run's samples. Runs with equal signatures have the same weights."""
    strata = read_strata(run.folder, part_count(run), run.info.config.strata)
    return None if strata is None else strata.of(rows)
