"""A composite: its parts, and how it and the ranking of several runs depend on the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Codes, column_names, read_values
from multimodal_eval.analysis.pairing import (
    aligned_scores,
    aligned_strata,
    pair_runs,
    part_count,
    require_enough_scored,
    require_same_data,
    require_same_signatures,
    shared_clusters,
)
from multimodal_eval.analysis.renormalised import renormalised, same_parts
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.records import COMPOSITE, JsonObject
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.evaluation.composite_score import entering_column
from multimodal_eval.evaluation.metrics_registry import make_task
from multimodal_eval.evaluation.tasks_config import Task
from multimodal_eval.stats.intervals import Vector
from multimodal_eval.stats.sensitivity import (
    CONCENTRATION,
    DRAWS,
    Parts,
    composites_of,
    drawn_weights,
    effective_weights,
    flip_probabilities,
    rank_shares,
    spread,
    without,
)
from multimodal_eval.stats.stratified import row_weights

__all__ = [
    "CompositePart",
    "CompositeParts",
    "PartWeight",
    "RunSensitivity",
    "Sensitivity",
    "composite_parts",
    "sensitivity",
]


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
    values, parts = composite_columns(run, task)
    scored = ~np.isnan(values)
    order = [np.arange(len(run), dtype=np.int64)]
    rows = sample_weights([run], [run.folder.name], order, scored)
    entering = Parts(parts[scored], task.on_missing == "renormalise", rows)
    contributions = (entering.contributions(np.array(list(task.weights.values()))) * entering.shares).mean(axis=0)
    return CompositeParts(
        composite.value,
        int(scored.sum()),
        tuple(
            CompositePart(name, weight, task.enters_as(name), finite(mean), finite(contribution))
            for (name, weight), mean, contribution in zip(
                task.weights.items(), entering.means, contributions, strict=True
            )
        ),
        rows is not None,
    )


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


def composite_columns(run: Run, task: Task) -> tuple[Vector, Vector]:
    """The composites, and their parts as they enter them (samples x parts), between 0 and 1; NaN if missing.

    If failures count in the run, they are 0: the parts that an answer failed at, or all parts.
    """
    count = part_count(run)
    stored = column_names(run.folder, count)
    composites, *columns = read_values(run.folder, count, stored, (COMPOSITE, *task.weights))
    entering = [entering_column(task, name, values) for name, values in zip(task.weights, columns, strict=True)]
    parts = np.column_stack(entering)
    if run.info.config.count_failures is None:
        return composites, parts
    counted = aligned_scores(run, stored, np.arange(len(composites)), COMPOSITE).values
    if (lacking := renormalised(run)) is not None:
        return counted, lacking.parts
    parts[np.isnan(composites) & ~np.isnan(counted)] = 0.0
    return counted, parts


# How the composite of a run, and the ranking of several runs, depend on the weights.


@dataclass(frozen=True)
class PartWeight:
    """A part of the composite with its configured and effective weight."""

    part: str
    weight: float
    mean: float | None
    effective: float | None  # share of the composite's variance
    without: float | None  # the composite without this part, with the other weights rescaled


@dataclass(frozen=True)
class RunSensitivity:
    """The sensitivity of one run's composite."""

    run: str
    value: float
    deviation: float  # standard deviation over the draws
    low: float
    high: float
    parts: tuple[PartWeight, ...]
    ranks: tuple[float, ...]  # share of the draws in which the run has each rank; empty for a single run


@dataclass(frozen=True, repr=False)
class Sensitivity(Displayed):
    """The sensitivity of all runs."""

    weights: dict[str, float]
    samples: int
    left_out: int  # samples without a composite in at least one run
    concentration: float
    draws: int
    seed: int
    runs: tuple[RunSensitivity, ...]
    flips: tuple[tuple[str, str, float], ...]  # two runs, and the share of draws in which they swap ranks

    def to_dict(self) -> JsonObject:
        """The result as a JSON object."""
        return asdict(self)


def sensitivity(
    runs: Sequence[Location | Run],
    *,
    concentration: float = CONCENTRATION,
    draws: int = DRAWS,
    seed: int = 0,
    allow_partial: bool = False,
) -> Sensitivity:
    """Draw random weights around those of the runs' composite, `draws` times.

    A higher `concentration` keeps the weights closer: a weight of 0.25 varies by ± 0.06 at 50 and by ± 0.02 at 500.
    Several runs are paired by id and must have the same composite signature. Samples without a composite in one of
    them are left out and counted; above 1 % this is an error, unless `allow_partial`. Missing parts count as configured
    in the task.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    if not opened:
        raise ConfigError("name at least one run")
    names, order = pair_runs(opened)
    task = _task(opened, names)
    require_same_data(opened, names, order)
    weights = np.array(list(task.weights.values()))
    columns = [
        [column[rows] for column in composite_columns(run, task)] for run, rows in zip(opened, order, strict=True)
    ]
    scored: NDArray[np.bool_] = np.logical_and.reduce([~np.isnan(composites) for composites, _ in columns])
    if (same := same_parts(opened, order)) is not None:
        scored &= same
    require_enough_scored(COMPOSITE, scored, allow_partial=allow_partial or len(opened) == 1)
    renormalise = task.on_missing == "renormalise"
    rows = sample_weights(opened, names, order, scored)
    systems = [Parts(parts[scored], renormalise, rows) for _, parts in columns]
    drawn = drawn_weights(weights, draws=draws, concentration=concentration, seed=seed)
    values, varied = composites_of(systems, weights[None, :])[:, 0], composites_of(systems, drawn)
    flips, shares = flip_probabilities(values, varied), rank_shares(varied)
    return Sensitivity(
        dict(task.weights),
        int(scored.sum()),
        int((~scored).sum()),
        concentration,
        draws,
        seed,
        tuple(
            RunSensitivity(
                name,
                **asdict(spread(float(value), run_varied)),
                parts=_part_weights(task, system),
                ranks=tuple(ranks.tolist()) if len(opened) > 1 else (),
            )
            for name, system, value, run_varied, ranks in zip(names, systems, values, varied, shares, strict=True)
        ),
        tuple((names[a], names[b], float(flips[a, b])) for a, b in combinations(range(len(names)), 2)),
    )


def _task(runs: Sequence[Run], names: Sequence[str]) -> Task:
    for run, name in zip(runs, names, strict=True):
        if COMPOSITE not in run.info.signatures:
            raise ConfigError(f"the run {name} has no composite")
    require_same_signatures(runs, names, COMPOSITE)
    task = make_task(runs[0].info.config)
    if task is None or not task.weights:
        raise ConfigError("the composite of these runs is a single metric and has no weights")
    return task


def _part_weights(task: Task, system: Parts) -> tuple[PartWeight, ...]:
    weights = np.array(list(task.weights.values()))
    effective = effective_weights(system.contributions(weights), system.rows)
    parts = []
    for index, ((part, weight), mean) in enumerate(zip(task.weights.items(), system.means, strict=True)):
        remaining = without(weights, index)
        parts.append(
            PartWeight(
                part,
                weight,
                finite(mean),
                None if effective is None else float(effective[index]),
                None if remaining is None else finite(system.composites(remaining[None, :])[0]),
            )
        )
    return tuple(parts)
