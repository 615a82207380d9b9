"""Aggregation of the rows of a run: by the metric's aggregate or weighted by strata, with or without clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Codes
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure, without_value
from multimodal_eval.core.score import Estimate, Rows
from multimodal_eval.stats.intervals import Interval, interval
from multimodal_eval.stats.stratified import Strata, mean_of_clusters, stratified_mean

NOTHING_SCORED = "nothing scored"
Aggregate = Callable[[Rows], Estimate]


class Averaging(msgspec.Struct, frozen=True):
    """How rows are averaged: their clusters and strata."""

    clusters: Codes | None = None
    strata: Strata | None = None
    by_cluster: bool = False  # each cluster counts once, independent of its stratum

    def of(self, rows: NDArray[np.bool_] | Codes) -> Averaging:
        """The averaging of the selected rows."""
        clusters = None if self.clusters is None else self.clusters[rows]
        return msgspec.structs.replace(
            self, clusters=clusters, strata=None if self.strata is None else self.strata.of(rows)
        )

    def alone(self) -> Averaging:
        """The averaging of a slice, which may lack strata: the mean over its clusters, without weights."""
        return self if self.strata is None else Averaging(self.clusters, by_cluster=True)

    def empty_strata(self) -> list[str]:
        """Strata that have a weight but no rows."""
        return [] if self.strata is None else self.strata.empty()

    def estimate(self, aggregate: Aggregate, rows: Rows) -> Estimate:
        """The estimate over the rows."""
        if self.strata is None and not self.by_cluster:
            return aggregate(rows)
        low, high = aggregate(rows).bounds
        if self.strata is None:
            return replace(mean_of_clusters(rows.values, self.clusters), bounds=(low, high))
        total = sum(self.strata.weights)
        bounds = None if low is None else low * total, None if high is None else high * total
        return replace(stratified_mean(rows.values, self.clusters, self.strata), bounds=bounds)

    def interval(self, aggregate: Aggregate, rows: Rows) -> Interval:
        """The estimate over the rows with its interval."""
        estimate = self.estimate(aggregate, rows)
        values = rows.values if rows.stats is None or estimate.of_values else None
        return interval(estimate, self.clusters, values=values)

    def figure(self, aggregate: Aggregate, rows: Rows) -> Figure:
        """The interval as it is stored; without a value if there are no rows, or none in a stratum with a weight."""
        if not len(rows):
            return without_value(NOTHING_SCORED)
        if empty := self.empty_strata():
            return without_value(f"no value: no scored sample in the stratum {', '.join(map(repr, empty))}")
        try:
            return self.interval(aggregate, rows)
        except ConfigError as fault:
            from multimodal_eval.evaluation.averages import NoGroupError

            if not isinstance(fault, NoGroupError):
                raise
            return without_value(f"no value: {fault}")
