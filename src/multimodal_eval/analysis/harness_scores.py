"""The scores that another harness gave to the answers of an imported run, beside the scores of our metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multimodal_eval.analysis.aligned_scores import aligned_scores, aligned_strata
from multimodal_eval.analysis.averaging import Averaging, figure_of
from multimodal_eval.analysis.columns import column_names
from multimodal_eval.analysis.pairing import pair_runs, part_count, shared_clusters
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.records import COMPOSITE, RECORDED, Figure
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.intervals import interval

__all__ = ["SideBySide", "harness_beside_ours"]

_MOST = 40  # pairs of metrics


@dataclass(frozen=True)
class SideBySide:
    """A score of the harness and one of ours, over the samples that have both."""

    harness_metric: str
    our_metric: str
    harness: Figure
    ours: Figure
    difference: Figure  # ours minus that of the harness
    samples: int
    differing: int  # samples with different scores


def harness_beside_ours(run: Run) -> list[SideBySide]:
    """Every score of the harness with each of our metrics that has the same range. Empty without both."""
    variants = run.info.config.variants
    scored = [name for name, entry in run.entries.items() if entry.n_scored and entry.value is not None]
    recorded = [name for name in scored if variants.get(name) == RECORDED]
    ours = [name for name in scored if variants.get(name) != RECORDED and name != COMPOSITE]
    pairs = [(theirs, name) for theirs in recorded for name in ours if _have_same_range(run, theirs, name)]
    if not pairs:
        return []
    compared = (_compared(run, *pair) for pair in pairs[:_MOST])
    return [each for each in compared if each is not None]


def _have_same_range(run: Run, first: str, second: str) -> bool:
    bounds = run.info.bounds_of(first)
    return bounds == run.info.bounds_of(second) and None not in bounds


def _compared(run: Run, theirs: str, ours: str) -> SideBySide | None:
    """None if no sample has both scores, or if the plug-in of a metric is not loaded."""
    _, (order,) = pair_runs([run])
    averaging = Averaging(shared_clusters([run], [run.folder.name], [order]), aligned_strata(run, order))
    stored = column_names(run.folder, part_count(run))
    try:
        first, second = (aligned_scores(run, stored, order, name) for name in (theirs, ours))
        both = ~np.isnan(first.values) & ~np.isnan(second.values)
        if not both.any():
            return None
        estimates = [scores.estimate(both, order, averaging) for scores in (first, second)]
    except MultimodalEvalError:
        return None
    clusters = averaging.of(both).clusters
    return SideBySide(
        theirs,
        ours,
        figure_of(interval(estimates[0], clusters)),
        figure_of(interval(estimates[1], clusters)),
        figure_of(interval(estimates[1].minus(estimates[0]), clusters)),
        int(both.sum()),
        int((first.values[both] != second.values[both]).sum()),
    )
