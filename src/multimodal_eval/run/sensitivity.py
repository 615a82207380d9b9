"""How the composite of one run, and the order of several, depends on the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.run import Run
from multimodal_eval.evaluation.composite_score import COMPOSITE
from multimodal_eval.run.columns import column_names, read_column
from multimodal_eval.run.compare import aligned
from multimodal_eval.stats.sensitivity import (
    CONCENTRATION,
    DRAWS,
    drawn_weights,
    effective_weights,
    flip_probabilities,
    rank_shares,
    spread,
)


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
    names, order = aligned(opened, COMPOSITE)
    weights, maxima = _formula(opened[0])
    parts = list(weights)
    given = np.array([weights[part] for part in parts])
    tables = [_parts_of(run, parts, maxima)[rows] for run, rows in zip(opened, order, strict=True)]
    scored = np.logical_and.reduce([~np.isnan(table).any(axis=1) for table in tables])
    if not scored.any():
        raise ConfigError("no sample has all parts of the composite in all runs")
    tables = [table[scored] for table in tables]
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
                int(scored.sum()),
                *(lambda s: (s.value, s.stderr, s.low, s.high))(spread(mean, given, drawn)),
                _parts(parts, given, mean, effective_weights(table, given)),
                tuple(shares[index].tolist()) if len(opened) > 1 else (),
            )
            for index, (name, table, mean) in enumerate(zip(names, tables, means, strict=True))
        ),
        tuple(
            (names[a], names[b], float(flips[a, b])) for a in range(len(names)) for b in range(a + 1, len(names))
        ),
    )
