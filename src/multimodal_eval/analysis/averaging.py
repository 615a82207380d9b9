"""How the rows of a run become one figure: as the metric says, or weighted by strata; with or without clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Codes
from multimodal_eval.core.records import Figure
from multimodal_eval.core.score import Estimate, Rows
from multimodal_eval.stats.intervals import Interval, interval
from multimodal_eval.stats.stratified import Strata, mean_of_clusters, stratified_mean


def figure_of(found: Interval | Figure) -> Figure:
    """A value with its interval as run folders keep it, and nothing else of an entry."""
    return Figure(value=found.value, stderr=found.stderr, low=found.low, high=found.high, method=found.method)


def no_figure(reason: str) -> Figure:
    """A figure without a value, and why."""
    return Figure(value=None, stderr=None, low=None, high=None, method=reason)


NOTHING_SCORED = "nothing scored"
Aggregate = Callable[[Rows], Estimate]


@dataclass(frozen=True)
class Averaging:
    """What is known of the rows besides their values."""

    clusters: Codes | None = None
    strata: Strata | None = None
    by_cluster: bool = False  # each cluster counts once, whatever its stratum

    def of(self, rows: NDArray[np.bool_] | Codes) -> Averaging:
        """The same for some of the rows."""
        clusters = None if self.clusters is None else self.clusters[rows]
        return replace(self, clusters=clusters, strata=None if self.strata is None else self.strata.of(rows))

    def alone(self) -> Averaging:
        """For a slice, which need not have all strata: the mean over its clusters, and the weights stay out of it."""
        return self if self.strata is None else Averaging(self.clusters, by_cluster=True)

    def empty_strata(self) -> list[str]:
        """Strata that have a weight and no row."""
        return [] if self.strata is None else self.strata.empty()

    def estimate(self, aggregate: Aggregate, rows: Rows) -> Estimate:
        """The figure of the rows."""
        if self.strata is not None:
            return stratified_mean(rows.values, self.clusters, self.strata)
        return mean_of_clusters(rows.values, self.clusters) if self.by_cluster else aggregate(rows)

    def interval(self, aggregate: Aggregate, rows: Rows) -> Interval:
        """The figure of the rows with its interval."""
        values = rows.values if rows.stats is None else None
        return interval(self.estimate(aggregate, rows), self.clusters, values=values)

    def figure(self, aggregate: Aggregate, rows: Rows) -> Figure:
        """The same as run folders keep it; without a value if there are no rows, or none of a stratum with a weight."""
        if not len(rows):
            return no_figure(NOTHING_SCORED)
        if lacking := self.empty_strata():
            return no_figure(
                f"no value: no scored sample has the {', '.join(map(repr, lacking))} that a weight asks for"
            )
        return figure_of(self.interval(aggregate, rows))
