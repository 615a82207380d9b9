"""Differences between the submissions of a leaderboard that people look at: to the first, and to the neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import Codes, interval
from multimodal_eval.stats.standings import Standings

__all__ = ["Difference", "differences_of"]


@dataclass(frozen=True)
class Difference:
    """The score of a submission minus that of another one, over the same samples."""

    other: str
    value: float
    low: float | None  # the interval of this one difference; None if it cannot be computed
    high: float | None
    p_value: float | None  # corrected for all pairs


def differences_of(
    estimates: Sequence[Estimate],
    best_first: Sequence[int],
    names: Sequence[str],
    clusters: Codes | None,
    tests: Standings,
    level: float,
) -> dict[int, tuple[Difference, ...]]:
    """For each submission, its differences to the first, to the one above and to the one below, if there are any."""
    stored: dict[tuple[int, int], Difference] = {}

    def difference(index: int, other: int) -> Difference:
        if (other, index) in stored:  # the same pair from the other side
            opposite = stored[other, index]
            low, high = (None if end is None else -end for end in (opposite.high, opposite.low))
            return Difference(names[other], -opposite.value, low, high, opposite.p_value)
        figure = interval(estimates[index].minus(estimates[other]), clusters, level=level)
        p_value = tests.p_values[min(index, other), max(index, other)]
        stored[index, other] = Difference(names[other], figure.value, figure.low, figure.high, p_value)
        return stored[index, other]

    differences: dict[int, tuple[Difference, ...]] = {}
    for place, index in enumerate(best_first):
        others = [best_first[0], *best_first[max(0, place - 1) : place], *best_first[place + 1 : place + 2]]
        differences[index] = tuple(difference(index, other) for other in dict.fromkeys(others) if other != index)
    return differences
