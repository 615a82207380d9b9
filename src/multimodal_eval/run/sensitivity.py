"""How the composite of one run, and the order of several, depends on the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.run import Run
from multimodal_eval.evaluation.composite_score import COMPOSITE
from multimodal_eval.run.columns import column_names, read_column
from multimodal_eval.run.compare import paired, refuse_other_signatures
from multimodal_eval.run.config import load_config
from multimodal_eval.run.plan import make_task
from multimodal_eval.stats.sensitivity import (
    CONCENTRATION,
    DRAWS,
    drawn_weights,
    effective_weights,
    flip_probabilities,
    rank_shares,
    spread,
)

Table = NDArray[np.float64]


@dataclass(frozen=True)
class PartWeight:
    """A part of the composite: what it is given, and what it does."""

    part: str
    weight: float
    mean: float
    effective: float | None  # share of the composite's variance
    without: float | None  # the composite with this part's weight shared among the others


@dataclass(frozen=True)
class RunSensitivity:
    """One run's composite."""

    run: str
    samples: int
    value: float
    stderr: float
    low: float
    high: float
    parts: tuple[PartWeight, ...]
    ranks: tuple[float, ...]  # share of the draws in which it holds each rank; empty for a single run


@dataclass(frozen=True)
class Sensitivity:
    """All runs."""

    weights: dict[str, float]
    concentration: float
    draws: int
    seed: int
    runs: tuple[RunSensitivity, ...]
    flips: tuple[tuple[str, str, float], ...]  # two runs, and how often they change places

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return asdict(self)


def sensitivity(
    runs: Sequence[str | Path | Run],
    *,
    concentration: float = CONCENTRATION,
    draws: int = DRAWS,
    seed: int = 0,
) -> Sensitivity:
    """Move the weights of the runs' composite at random around the given ones, `draws` times.

    `concentration` says how closely they stay: a weight of 0.25 moves by ± 0.06 at 50 and by ± 0.02 at 500. Several
    runs are paired by id and must share the composite's signature.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    if not opened:
        raise ConfigError("name at least one run")
    names, order = paired(opened)
    weights = _weights(opened, names)
    given = np.array(list(weights.values()))
    tables = _scored_parts([_parts_of(run)[rows] for run, rows in zip(opened, order, strict=True)])
    means = [table.mean(axis=0) for table in tables]
    drawn = drawn_weights(given, draws=draws, concentration=concentration, seed=seed)
    flips = flip_probabilities(means, given, drawn)
    shares = rank_shares(means, drawn)
    return Sensitivity(
        weights,
        concentration,
        draws,
        seed,
        tuple(
            RunSensitivity(
                name,
                len(table),
                **asdict(spread(mean, given, drawn)),
                parts=_parts(weights, mean, effective_weights(table, given)),
                ranks=tuple(own.tolist()) if len(opened) > 1 else (),
            )
            for name, table, mean, own in zip(names, tables, means, shares, strict=True)
        ),
        tuple((names[a], names[b], float(flips[a, b])) for a, b in combinations(range(len(names)), 2)),
    )


def _weights(runs: Sequence[Run], names: Sequence[str]) -> dict[str, float]:
    for run, name in zip(runs, names, strict=True):
        if COMPOSITE not in run.info["signatures"]:
            raise ConfigError(f"the run {name} has no composite")
    refuse_other_signatures(runs, names, COMPOSITE)
    weights: dict[str, float] | None = runs[0].info["signatures"][COMPOSITE]["settings"].get("weights")
    if not weights:
        raise ConfigError("the composite of these runs is a metric of its own and has no weights")
    return dict(weights)


def _parts_of(run: Run) -> Table:
    """The parts as the composite adds them (divided by their maximum and cut at 1): samples x parts."""
    task = make_task(load_config(run.info["config"]))
    assert task is not None
    count = len(run.info["parts"])
    stored = column_names(run.folder, count)
    columns = []
    for part in task.weights:
        if part not in stored:
            raise ConfigError(f"{part} is a part of the composite and no metric of the run {run.path.name}")
        values = read_column(run.folder, count, stored, part, (None, None)).values
        columns.append(np.minimum(values / task.maximum[part], 1.0) if part in task.maximum else values)
    return np.column_stack(columns)


def _scored_parts(tables: Sequence[Table]) -> list[Table]:
    """The samples that have all parts in all runs."""
    scored = np.logical_and.reduce([~np.isnan(table).any(axis=1) for table in tables])
    if not scored.any():
        raise ConfigError("no sample has all parts of the composite in all runs")
    return [table[scored] for table in tables]


def _parts(
    weights: Mapping[str, float], means: NDArray[np.float64], effective: NDArray[np.float64] | None
) -> tuple[PartWeight, ...]:
    given = np.array(list(weights.values()))
    total = float(given @ means)
    return tuple(
        PartWeight(
            part,
            weight,
            float(mean),
            None if effective is None else float(effective[index]),
            (total - weight * float(mean)) / (1 - weight) if weight < 1 else None,
        )
        for index, ((part, weight), mean) in enumerate(zip(weights.items(), means, strict=True))
    )
