"""The parts of a composite as they enter it: normalised per sample, with their weights and contributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.aligned_scores import aligned_strata
from multimodal_eval.analysis.columns import Codes, column_names, read_values
from multimodal_eval.analysis.pairing import part_count, shared_clusters
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.metrics_registry import make_task
from multimodal_eval.evaluation.tasks_config import Task
from multimodal_eval.stats.intervals import Vector
from multimodal_eval.stats.sensitivity import Parts
from multimodal_eval.stats.stratified import row_weights

__all__ = ["CompositePart", "CompositeParts", "composite_parts"]


@dataclass(frozen=True)
class CompositePart:
    """A part of a composite, over the samples that have a composite."""

    name: str
    weight: float
    enters_as: str  # how a sample's value enters its composite: "min(cider / 2, 1)", or the name of the metric
    mean: float | None  # of these values
    contribution: float | None  # the mean of weight * value, by which the part raises the composite


@dataclass(frozen=True)
class CompositeParts:
    """The composite of a run, which is the mean of its samples' composites, and the parts that add up to it."""

    value: float
    samples: int
    parts: tuple[CompositePart, ...]
    weighted: bool  # whether the mean is weighted by strata

    @property
    def explanation(self) -> str:
        """What the composite is, in one sentence."""
        mean = "weighted mean" if self.weighted else "mean"
        return f"{COMPOSITE} is the {mean} of the composites of {self.samples:,} samples"


def composite_parts(run: Run) -> CompositeParts | None:
    """The parts of the run's composite; None without a value, or if one metric is the composite."""
    composite = run.outcome.composite
    try:
        task = make_task(run.info.config)
    except UnknownNameError:  # a task that is defined elsewhere
        return None
    if composite is None or composite.value is None or task is None or not task.weights:
        return None
    values, *parts = composite_columns(run, task)
    scored = ~np.isnan(values)
    order = [np.arange(len(run), dtype=np.int64)]
    rows = sample_weights([run], [run.folder.name], order, scored)
    entering = Parts(np.column_stack(parts)[scored], task.on_missing == "renormalise", rows)
    contributions = (entering.contributions(np.array(list(task.weights.values()))) * entering.shares).mean(axis=0)
    return CompositeParts(
        composite.value,
        int(scored.sum()),
        tuple(
            CompositePart(name, weight, _enters_as(name, task), finite(mean), finite(contribution))
            for (name, weight), mean, contribution in zip(
                task.weights.items(), entering.means, contributions, strict=True
            )
        ),
        rows is not None,
    )


def _enters_as(name: str, task: Task) -> str:
    return f"min({name} / {task.maximum[name]:g}, 1)" if name in task.maximum else name


def finite(value: float) -> float | None:
    """The value; None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None


def sample_weights(
    runs: Sequence[Run], names: Sequence[str], order: Sequence[Codes], scored: NDArray[np.bool_]
) -> Vector | None:
    """The weight of each sample if the runs have strata, else None."""
    strata = aligned_strata(runs[0], order[0])
    if strata is None:
        return None
    clusters = shared_clusters(runs, names, order)
    return row_weights(None if clusters is None else clusters[scored], strata.of(scored))


def composite_columns(run: Run, task: Task) -> Iterator[Vector]:
    """The composite, then its parts as used in it (divided by their maximum and capped at 1); NaN if missing."""
    count = part_count(run)
    names = (COMPOSITE, *task.weights)
    columns = read_values(run.folder, count, column_names(run.folder, count), names)
    for name, values in zip(names, columns, strict=True):
        yield np.minimum(values / task.maximum[name], 1.0) if name in task.maximum else values
