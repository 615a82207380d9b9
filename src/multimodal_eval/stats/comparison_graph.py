"""Whether the results of comparisons determine ratings: who was compared with whom, and who ever won.

Ratings exist if and only if, for every division of the systems into two sets, each set has taken points from the other.
In the graph with an arrow from every system to those from which it has taken points, every system is then reached from
every other one.

References:
    Ford (1957). Solution of a Ranking Problem from Binary Comparisons. American Mathematical Monthly 64(8).
    Davidson (1970). On Extending the Bradley-Terry Model to Accommodate Ties. JASA 65(329).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["UndeterminedError", "refuse_undetermined", "refuse_unlimited_ties"]

Matrix = NDArray[np.float64]
Reached = NDArray[np.bool_]

_POINT = 1e-9  # smaller sums of points are rounding errors


class UndeterminedError(ValueError):
    """The comparisons do not determine the ratings of all systems.

    `groups` are numbers of systems. `reason` is "unconnected" if no comparison connects the groups, "one_sided" if the
    first group has never lost a point to any other system, "ties" if the share of ties has no finite estimate.
    """

    def __init__(
        self, reason: Literal["unconnected", "one_sided", "ties"], groups: list[list[int]], message: str
    ) -> None:
        super().__init__(message)
        self.reason, self.groups = reason, groups


def refuse_undetermined(points: Matrix) -> None:
    """Raise UndeterminedError unless the points that every system took from every other one determine the ratings."""
    connected = _groups(_reached(points + points.T > _POINT))
    if len(connected) > 1:
        raise UndeterminedError("unconnected", connected, f"no comparison connects these groups: {_listed(connected)}")
    reached = _reached(points > _POINT)
    groups = _groups(reached & reached.T)
    if len(groups) > 1:
        top = next(group for group in groups if not (reached[:, group[0]] & ~reached[group[0]]).any())
        rest = [group for group in groups if group is not top]
        message = f"systems {_listed([top])} lost no point to any other system: their ratings are infinite"
        raise UndeterminedError("one_sided", [top, *rest], message)


def refuse_unlimited_ties(wins: Matrix, ties: Matrix) -> None:
    """Raise UndeterminedError if the likelihood of Davidson's model increases without limit with the tie parameter.

    It does if there are numbers u_i with u_i - u_j >= 1 if i ever won against j, and |u_i - u_j| <= 1 if they ever
    tied: a system of differences that has a solution unless its graph has a cycle of negative length.
    """
    lengths = np.full(wins.shape, np.inf)
    lengths[(ties + ties.T) > _POINT] = 1.0
    lengths[wins > _POINT] = -1.0  # u_j - u_i <= -1
    for middle in range(len(lengths)):
        lengths = np.minimum(lengths, lengths[:, middle, None] + lengths[None, middle])
        if (np.diagonal(lengths) < 0).any():
            return
    raise UndeterminedError("ties", [], "the comparisons have too few wins beside their ties to estimate both")


def _reached(edges: Reached) -> Reached:
    """Which systems are reached from which, by any number of edges; each one reaches itself."""
    reached = edges | np.eye(len(edges), dtype=np.bool_)
    for _ in range(max(1, len(edges)).bit_length()):
        steps = reached.astype(np.float32)
        reached = steps @ steps > 0
    return reached


def _groups(together: Reached) -> list[list[int]]:
    """The classes of an equivalence, by their first members."""
    firsts = together.argmax(axis=1)
    return [np.flatnonzero(firsts == first).tolist() for first in np.unique(firsts)]


def _listed(groups: list[list[int]]) -> str:
    return "; ".join(", ".join(map(str, group)) for group in groups)
