"""Paired differences within slices of the samples, corrected for the number of slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.averaging import Averaging
from multimodal_eval.analysis.columns import Codes
from multimodal_eval.analysis.pairing import AlignedScores
from multimodal_eval.stats.paired import compare

__all__ = ["SliceDifference", "SlicedMetric", "sliced"]

UNEQUAL = 0.05  # difference of the scored shares of two slices above which there is a warning


@dataclass(frozen=True)
class SliceDifference:
    """The difference of two runs within one slice. p and the interval hold for all slices together (Bonferroni)."""

    value: str
    samples: int  # scored in both runs
    total: int
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    method: str


@dataclass(frozen=True)
class SlicedMetric:
    """The differences of two runs by one metric in every slice, and what to be careful about."""

    metric: str
    column: str
    first: str
    second: str
    slices: tuple[SliceDifference, ...]
    warnings: tuple[str, ...]


def sliced(
    metric: str,
    column: str,
    names: tuple[str, str],
    scores: tuple[AlignedScores, AlignedScores],
    orders: tuple[Codes, Codes],
    slices: Mapping[str, Codes],
    scored: NDArray[np.bool_],
    averaging: Averaging,
    overall: float,
    *,
    rounds: int,
    seed: int,
    threads: int,
    level: float,
) -> SlicedMetric:
    """Compare two runs within each slice; `slices` has the rows of each value, `overall` is the whole difference."""
    usable = sum(1 for rows in slices.values() if int(scored[rows].sum()) > 1)
    inner = 1 - (1 - level) / max(1, usable)
    differences = []
    for value, rows in slices.items():
        chosen = np.zeros(len(scored), dtype=np.bool_)
        chosen[rows] = True
        chosen &= scored
        count = int(chosen.sum())
        if not count:
            differences.append(SliceDifference(value, 0, len(rows), None, None, None, None, "nothing scored"))
            continue
        alone = averaging.alone()
        first, second = (side.estimate(chosen, order, alone) for side, order in zip(scores, orders, strict=True))
        (result,) = compare(
            [first], [second], alone.of(chosen).clusters, rounds=rounds, seed=seed, threads=threads, level=inner
        )
        p_value = None if result.p_value is None else min(1.0, result.p_value * usable)
        figure = result.difference
        differences.append(
            SliceDifference(value, count, len(rows), figure.value, figure.low, figure.high, p_value, figure.method)
        )
    return SlicedMetric(metric, column, *names, tuple(differences), tuple(_warnings(differences, overall)))


def _warnings(differences: Sequence[SliceDifference], overall: float) -> Iterator[str]:
    known = [each.difference for each in differences if each.difference is not None and each.difference != 0]
    opposite = [value for value in known if value * overall < 0]
    if overall and len(opposite) > len(known) / 2:
        yield (
            f"the difference over all samples is {overall:+.4f}, but {len(opposite)} of {len(known)} slices have the "
            "opposite sign (Simpson's paradox): the slices differ in difficulty and in size"
        )
    shares = [each.samples / each.total for each in differences if each.total]
    if shares and max(shares) - min(shares) > UNEQUAL:
        yield f"slices are scored unequally: {min(shares):.0%} to {max(shares):.0%} of their samples in both runs"
