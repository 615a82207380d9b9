"""The numbers of runs over the same samples, rows in one order, ready to be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.averaging import Averaging
from multimodal_eval.analysis.columns import Codes, Column, read_column
from multimodal_eval.analysis.pairing import parts_of
from multimodal_eval.analysis.slices import read_strata
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.records import COMPOSITE, CompositeEntry, MetricEntry
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.metrics_registry import as_in_run
from multimodal_eval.stats.stratified import Strata


def metric_of(run: Run, name: str) -> Metric | None:
    """The metric whose aggregate makes a number, as the run configured it; None for a composite, which is a mean."""
    made_by = run.info.signatures[COMPOSITE].headline if name == COMPOSITE else name
    return None if made_by is None else as_in_run(run.info, made_by)


@dataclass(frozen=True)
class ScoresInOrder:
    """A number of one run, rows in the common order."""

    column: Column
    values: NDArray[np.float64]  # NaN where unscored
    metric: Metric | None  # None: the composite, a mean
    part: str

    def estimate(self, rows: NDArray[np.bool_], order: Codes, averaging: Averaging) -> Estimate:
        """The figure of some rows; `order` are the places of all of them in the run."""
        stats = None
        if self.column.stats is not None:
            position = np.cumsum(self.column.scored) - 1  # of a row among the scored ones
            stats = self.column.stats[position[order[rows]]]
        return averaging.of(rows).estimate(self._aggregate, Rows(self.values[rows], stats))

    def _aggregate(self, rows: Rows) -> Estimate:
        if self.metric is None:
            return mean_estimate(rows)
        return self.metric.aggregate_part(self.part, rows) if self.part else self.metric.aggregate(rows)


def scores_in_order(run: Run, stored: Sequence[str], order: Codes, name: str) -> ScoresInOrder:
    """A number, or `metric.part`; `stored` are the columns that the run has."""
    metric_name, _, part = name.partition(".")
    metric = metric_of(run, metric_name)
    bounds = (0, 1) if metric is None else metric.bounds
    column = read_column(run.folder, parts_of(run), stored, metric_name, bounds)
    if part and part not in column.parts:
        raise UnknownNameError(f"part of {metric_name}", part, column.parts)
    values = column.parts[part] if part else column.values
    return ScoresInOrder(column, values[order], metric, part)


def strata_in_order(run: Run, rows: Codes) -> Strata | None:
    """The strata of a run's samples; that other runs weigh the same is said by their signatures."""
    found = read_strata(run.folder, parts_of(run), run.info.config.strata)
    return None if found is None else found.of(rows)


Entries = Mapping[str, MetricEntry | CompositeEntry]


def headline(*runs: Entries) -> str:
    """Of the numbers that all runs have: the composite where it has a value, else the first that has one in all."""
    shared = [name for name in runs[0] if all(name in entries for entries in runs)]
    order = sorted(shared, key=lambda name: name != COMPOSITE)
    return next((name for name in order if all(entries[name].value is not None for entries in runs)), order[0])
