"""How the composite of one run, and the order of several, depends on the weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Codes, column_names, read_column
from multimodal_eval.analysis.numbers import strata_in_order
from multimodal_eval.analysis.pairing import (
    paired,
    parts_of,
    refuse_other_data,
    refuse_other_signatures,
    refuse_too_few,
    shared_clusters,
)
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import COMPOSITE, JsonObject
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
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


@dataclass(frozen=True)
class PartWeight:
    """A part of the composite: what it is given, and what it does."""

    part: str
    weight: float
    mean: float | None
    effective: float | None  # share of the composite's variance
    without: float | None  # the composite with this part's weight shared among the others


@dataclass(frozen=True)
class RunSensitivity:
    """One run's composite."""

    run: str
    value: float
    deviation: float  # standard deviation over the draws
    low: float
    high: float
    parts: tuple[PartWeight, ...]
    ranks: tuple[float, ...]  # share of the draws in which it holds each rank; empty for a single run


@dataclass(frozen=True)
class Sensitivity:
    """All runs."""

    weights: dict[str, float]
    samples: int
    left_out: int  # samples without a composite in one of the runs
    concentration: float
    draws: int
    seed: int
    runs: tuple[RunSensitivity, ...]
    flips: tuple[tuple[str, str, float], ...]  # two runs, and how often they change places

    def to_dict(self) -> JsonObject:
        """The same as a JSON object."""
        return asdict(self)


def sensitivity(
    runs: Sequence[Location | Run],
    *,
    concentration: float = CONCENTRATION,
    draws: int = DRAWS,
    seed: int = 0,
    allow_partial: bool = False,
) -> Sensitivity:
    """Move the weights of the runs' composite at random around the given ones, `draws` times.

    `concentration` says how closely they stay: a weight of 0.25 moves by ± 0.06 at 50 and by ± 0.02 at 500. Several
    runs are paired by id and must share the composite's signature; samples without a composite in one of them are left
    out and counted, and above 1 % an error unless `allow_partial`. Missing parts count as the task says.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    if not opened:
        raise ConfigError("name at least one run")
    names, order = paired(opened)
    task = _task(opened, names)
    refuse_other_data(opened, names, order)
    weights = np.array(list(task.weights.values()))
    columns = [[own[rows] for own in _columns(run, task)] for run, rows in zip(opened, order, strict=True)]
    scored: NDArray[np.bool_] = np.logical_and.reduce([~np.isnan(composite) for composite, *_ in columns])
    refuse_too_few(COMPOSITE, scored, allow_partial=allow_partial or len(opened) == 1)
    renormalise = task.on_missing == "renormalise"
    rows = _row_weights(opened, names, order, scored)
    systems = [Parts(np.column_stack(parts)[scored], renormalise, rows) for _, *parts in columns]
    drawn = drawn_weights(weights, draws=draws, concentration=concentration, seed=seed)
    values, moved = composites_of(systems, weights[None, :])[:, 0], composites_of(systems, drawn)
    flips, shares = flip_probabilities(values, moved), rank_shares(moved)
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
                **asdict(spread(float(value), own)),
                parts=_part_weights(task, system),
                ranks=tuple(ranks.tolist()) if len(opened) > 1 else (),
            )
            for name, system, value, own, ranks in zip(names, systems, values, moved, shares, strict=True)
        ),
        tuple((names[a], names[b], float(flips[a, b])) for a, b in combinations(range(len(names)), 2)),
    )


def _task(runs: Sequence[Run], names: Sequence[str]) -> Task:
    for run, name in zip(runs, names, strict=True):
        if COMPOSITE not in run.info.signatures:
            raise ConfigError(f"the run {name} has no composite")
    refuse_other_signatures(runs, names, COMPOSITE)
    task = make_task(runs[0].info.config)
    if task is None or not task.weights:
        raise ConfigError("the composite of these runs is a metric of its own and has no weights")
    return task


def _row_weights(
    runs: Sequence[Run], names: Sequence[str], order: Sequence[Codes], scored: NDArray[np.bool_]
) -> Vector | None:
    """What each sample counts for, where the runs weigh strata."""
    strata = strata_in_order(runs[0], order[0])
    if strata is None:
        return None
    clusters = shared_clusters(runs, names, order)
    return row_weights(None if clusters is None else clusters[scored], strata.of(scored))


def _columns(run: Run, task: Task) -> Iterator[Vector]:
    """The composite, then its parts as it adds them (divided by their maximum and cut at 1); NaN: missing."""
    count = parts_of(run)
    stored = column_names(run.folder, count)
    for name in (COMPOSITE, *task.weights):
        there = name in stored
        values = (
            read_column(run.folder, count, stored, name, (None, None)).values if there else np.full(len(run), np.nan)
        )
        yield np.minimum(values / task.maximum[name], 1.0) if name in task.maximum else values


def _part_weights(task: Task, system: Parts) -> tuple[PartWeight, ...]:
    weights = np.array(list(task.weights.values()))
    effective = effective_weights(system.contributions(weights), system.rows)
    found = []
    for number, ((part, weight), mean) in enumerate(zip(task.weights.items(), system.means, strict=True)):
        left = without(weights, number)
        found.append(
            PartWeight(
                part,
                weight,
                _finite(mean),
                None if effective is None else float(effective[number]),
                None if left is None else _finite(system.composites(left[None, :])[0]),
            )
        )
    return tuple(found)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
