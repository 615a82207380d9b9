"""Ratings of systems from comparisons of two at a time: the Bradley-Terry model, and Davidson's for ties.

With ratings r, a comparison of i with j has the outcomes

    i wins: exp((r_i - r_j) / 2) / Z    j wins: exp((r_j - r_i) / 2) / Z    tie: nu / Z

where Z is the sum of the three numerators. In the Bradley-Terry model nu is 0, and a tie counts as half a win of each
system; the probability of a win is then 1 / (1 + exp(r_j - r_i)). In Davidson's model nu is estimated, too. A
comparison that is the mean of several verdicts has a share between 0 and 1. The ratings maximise the likelihood,
by Newton's method on the matrix of points; their mean is 0.

The covariance is the sandwich A^-1 (sum over clusters c of U_c U_c') A^-1 · C/(C-1), with the information A and the
gradient U_c of cluster c: comparisons of the same sample need not be independent, and the model need not hold.

References:
    Bradley and Terry (1952). Rank Analysis of Incomplete Block Designs. Biometrika 39(3/4).
    Davidson (1970). On Extending the Bradley-Terry Model to Accommodate Ties. JASA 65(329).
    White (1982). Maximum Likelihood Estimation of Misspecified Models. Econometrica 50(1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp, inf, log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import LEVEL, ROUNDING, Codes, Interval, Vector
from multimodal_eval.stats.paired import holm

__all__ = [
    "ELO",
    "Comparisons",
    "Ratings",
    "Ties",
    "UndeterminedError",
    "bradley_terry",
    "refuse_undetermined",
    "refuse_unlimited_ties",
]


# Whether the results of comparisons determine ratings: who was compared with whom, and who ever won.
#
# Ratings exist if and only if, for every division of the systems into two sets, each set has taken points from the
# other. In the graph with an arrow from every system to those from which it has taken points, every system is then
# reached from every other one.
#
# References:
#     Ford (1957). Solution of a Ranking Problem from Binary Comparisons. American Mathematical Monthly 64(8).
#     Davidson (1970). On Extending the Bradley-Terry Model to Accommodate Ties. JASA 65(329).

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


ELO = 400 / log(10)  # points of Elo's scale per unit of the natural logarithm of the odds
Ties = Literal["half", "davidson"]

_BLOCK = 1 << 16  # clusters whose gradients are in memory together
_STEPS = 200  # of Newton's method, which needs about ten
_PRECISE = 1e-13
_LONGEST = 2.0  # step


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of two systems at a time, by the systems' numbers.

    `share` is the first system's share of the point: 1 for a win, 0.5 for a tie, 0 for a loss, or a mean of these.
    `tie` is the share of ties; without it, a comparison is a tie if its share is 0.5. `clusters` are integer codes of
    comparisons that are not independent, as those of the same sample.
    """

    first: Codes
    second: Codes
    share: Vector
    systems: int
    tie: Vector | None = None
    clusters: Codes | None = None

    def __post_init__(self) -> None:
        columns = [self.first, self.second, self.share, self.tie, self.clusters]
        lengths = {len(column) for column in columns if column is not None}
        if len(lengths) > 1:
            raise ValueError(f"the columns of comparisons must have the same length. Got {sorted(lengths)} instead.")
        for codes in (self.first, self.second):
            if len(codes) and not (codes.min() >= 0 and codes.max() < self.systems):
                raise ValueError(f"the numbers of systems must be from 0 to {self.systems - 1}")
        if (self.first == self.second).any():
            raise ValueError("a system cannot be compared with itself")
        if not ((self.share >= 0) & (self.share <= 1)).all():
            raise ValueError("shares must be from 0 to 1")
        most = 2 * np.minimum(self.share, 1 - self.share) + ROUNDING
        if self.tie is not None and not ((self.tie >= 0) & (self.tie <= most)).all():
            raise ValueError("a share of ties must be from 0 to twice the smaller share of both systems")

    @property
    def ties(self) -> Vector:
        """The share of ties of each comparison."""
        return (self.share == 0.5).astype(np.float64) if self.tie is None else self.tie

    def table(self, weights: Vector | None = None) -> Matrix:
        """The sum of the weights by first and second system; the number of comparisons without weights."""
        pairs = self.first * self.systems + self.second
        sums = np.bincount(pairs, weights, self.systems**2).astype(np.float64)
        return sums.reshape(self.systems, self.systems)

    @property
    def points(self) -> Matrix:
        """The points that every system took from every other one."""
        shares = self.table(self.share)
        return shares + (self.table() - shares).T

    @property
    def units(self) -> int:
        """The number of clusters, or of comparisons without clusters."""
        return len(self.first) if self.clusters is None else len(np.unique(self.clusters))


@dataclass(frozen=True)
class Ratings:
    """Ratings in natural logarithms of odds, with their covariance, which is None for a single cluster.

    `tie` is Davidson's nu: two equal systems tie with the probability nu / (2 + nu). `units` counts clusters.
    """

    values: Vector
    covariance: Matrix | None
    units: int
    tie: float | None = None

    def anchored(self, system: int) -> Ratings:
        """The ratings relative to one system, whose rating is 0."""
        shift = np.eye(len(self.values))
        shift[:, system] -= 1.0
        return self._shifted(shift)

    def _shifted(self, shift: Matrix) -> Ratings:
        covariance = None if self.covariance is None else shift @ self.covariance @ shift.T
        return replace(self, values=shift @ self.values, covariance=covariance)

    def interval(self, system: int, level: float = LEVEL) -> Interval:
        """The rating of a system."""
        chosen = np.zeros(len(self.values))
        chosen[system] = 1.0
        return self._interval(chosen, level)

    def difference(self, first: int, second: int, level: float = LEVEL) -> Interval:
        """How much higher the first system is rated than the second."""
        chosen = np.zeros(len(self.values))
        chosen[first], chosen[second] = 1.0, -1.0
        return self._interval(chosen, level)

    def _interval(self, combination: Vector, level: float) -> Interval:
        from multimodal_eval.stats.special import stdtrit

        value = float(combination @ self.values)
        if self.covariance is None:
            return Interval(value, None, None, None, "no interval: 1 cluster")
        error = sqrt(max(0.0, float(combination @ self.covariance @ combination)))
        half = float(stdtrit(self.units - 1, (1 + level) / 2)) * error
        method = f"{level:.0%} t interval, sandwich covariance, {self.units} clusters"
        return Interval(value, error, value - half, value + half, method)

    def p_values(self) -> dict[tuple[int, int], float | None]:
        """For each pair (i, j) with i < j the Holm-corrected p-value of a difference of their ratings."""
        pairs = list(combinations(range(len(self.values)), 2))
        return dict(zip(pairs, holm([self._p_value(*pair) for pair in pairs]), strict=True))

    def _p_value(self, first: int, second: int) -> float | None:
        from multimodal_eval.stats.special import stdtr

        difference = self.difference(first, second)
        if difference.stderr is None:
            return None
        if difference.stderr <= ROUNDING * max(1.0, abs(difference.point)):
            return 1.0 if abs(difference.point) <= ROUNDING else 0.0
        return float(2 * stdtr(self.units - 1, -abs(difference.point) / difference.stderr))

    def rank_ranges(self, level: float = LEVEL) -> list[tuple[int, int]]:
        """The ranks that each system can have, all of them right together with this confidence.

        The best rank is one more than the number of systems that are significantly better, the worst one is the number
        of systems minus those that are significantly worse, by Holm-corrected tests of all pairs.
        """
        count = len(self.values)
        ranges = [(1, count)] * count
        for (a, b), p_value in self.p_values().items():
            if p_value is not None and p_value < 1 - level:
                better, worse = (a, b) if self.values[a] > self.values[b] else (b, a)
                ranges[better] = ranges[better][0], ranges[better][1] - 1
                ranges[worse] = ranges[worse][0] + 1, ranges[worse][1]
        return ranges


def bradley_terry(comparisons: Comparisons, *, ties: Ties = "half", prior: float = 0.0) -> Ratings:
    """The ratings of all systems, with mean 0.

    `prior` adds so many comparisons of every system with one further system, half of them won and half of them lost:
    it draws the ratings together, and makes them finite if a system won every comparison. Raises UndeterminedError
    if the comparisons do not determine the ratings.
    """
    likelihood = _Likelihood.of(comparisons, ties, prior)
    point = _maximum(likelihood)
    count, units = comparisons.systems, comparisons.units
    values, covariance, tie = point[:count], None, None
    if ties == "davidson":
        tie = exp(point[-1]) if likelihood.has_nu else 0.0
    if units > 1:
        real = [*range(count), *([len(point) - 1] if likelihood.has_nu else [])]
        bread = np.linalg.inv(likelihood.information(point))[:, real]
        covariance = (bread @ _squares(comparisons, likelihood, point) @ bread.T)[:count, :count]
        covariance *= units / (units - 1)
    ratings = Ratings(values, covariance, units, tie)
    return ratings._shifted(np.eye(count) - 1 / max(1, count))


@dataclass(frozen=True)
class _Likelihood:
    """The logarithm of the likelihood by the sums of all comparisons.

    A point has the ratings of all systems, the further one of the prior last, and then the logarithm of nu.
    """

    surplus: Matrix  # half the points won minus half the points lost
    games: Matrix
    tied: float
    has_nu: bool

    @classmethod
    def of(cls, comparisons: Comparisons, ties: Ties, prior: float) -> _Likelihood:
        """The sums of the comparisons. Raises UndeterminedError if the likelihood has no maximum."""
        if not 0 <= prior < inf:
            raise ValueError(f"`prior` must be a number from 0. Got {prior:g} instead.")
        points, tied = comparisons.points, np.zeros((comparisons.systems, comparisons.systems))
        if ties == "davidson":
            tied = comparisons.table(comparisons.ties)
            tied += tied.T
        if prior:
            points, tied = (np.pad(table, (0, 1)) for table in (points, tied))
            points[-1, :-1] = points[:-1, -1] = prior / 2
        refuse_undetermined(points)
        has_nu = bool(tied.any())
        if has_nu:
            refuse_unlimited_ties(points - tied / 2, tied)
        return cls((points - points.T) / 2, points + points.T, float(tied.sum()) / 2, has_nu)

    def _outcomes(self, point: Vector) -> tuple[Matrix, Matrix, Matrix]:
        """log Z, the probability of a win minus that of a loss, and the probability of a tie, of every pair."""
        ratings = point[: len(self.games)]
        half = (ratings[:, None] - ratings[None]) / 2
        nu = point[-1] if self.has_nu else -inf
        log_z = np.logaddexp(np.logaddexp(half, -half), nu)
        return log_z, np.exp(half - log_z) - np.exp(-half - log_z), np.exp(nu - log_z)

    def value(self, point: Vector) -> float:
        """The logarithm of the likelihood."""
        log_z, _, _ = self._outcomes(point)
        won = float(self.surplus.sum(axis=1) @ point[: len(self.games)])
        return won + (self.tied * float(point[-1]) if self.has_nu else 0.0) - float((self.games * log_z).sum()) / 2

    def gradient(self, point: Vector) -> Vector:
        """The derivatives: observed minus expected points."""
        _, advantage, tie = self._outcomes(point)
        ratings = (self.surplus - self.games * advantage / 2).sum(axis=1)
        return np.append(ratings, self.tied - float((self.games * tie).sum()) / 2) if self.has_nu else ratings

    def information(self, point: Vector) -> Matrix:
        """Minus the second derivatives, and a constant for the mean of the ratings, which they leave open."""
        _, advantage, tie = self._outcomes(point)
        weights = self.games * ((1 - tie) - advantage**2) / 4
        matrix: Matrix = _laplacian(weights) + float(weights.sum()) / len(weights) ** 2
        if not self.has_nu:
            return matrix
        mixed = -(self.games * advantage * tie).sum(axis=1) / 2
        corner = float((self.games * tie * (1 - tie)).sum()) / 2
        return np.block([[matrix, mixed[:, None]], [mixed[None], np.array([[corner]])]])

    def residuals(self, comparisons: Comparisons, point: Vector) -> tuple[Vector, Vector]:
        """What each comparison adds to the derivative by the first system's rating, and to that by log nu."""
        _, advantage, tie = self._outcomes(point)
        pairs = comparisons.first, comparisons.second
        by_tie = comparisons.ties - tie[pairs] if self.has_nu else np.zeros(0)
        return comparisons.share - 0.5 - advantage[pairs] / 2, by_tie


def _maximum(likelihood: _Likelihood) -> Vector:
    """The point at which the likelihood is largest, by Newton's method. The likelihood is concave."""
    point = np.zeros(len(likelihood.games) + likelihood.has_nu)
    value = likelihood.value(point)
    for _ in range(_STEPS):
        step = np.linalg.solve(likelihood.information(point), likelihood.gradient(point))
        size = float(np.abs(step).max(initial=0.0))
        step *= min(1.0, _LONGEST / size) if size else 1.0
        while (further := likelihood.value(point + step)) < value - ROUNDING * abs(value):
            step /= 2
        point, value = point + step, further
        if size <= _PRECISE * max(1.0, float(np.abs(point).max())):
            break
    return point


def _laplacian(weights: Matrix) -> Matrix:
    """The sum over pairs of their weight times (e_i - e_j)(e_i - e_j)', for a symmetric matrix of weights."""
    return np.asarray(np.diag(weights.sum(axis=1)) - weights, np.float64)


def _squares(comparisons: Comparisons, likelihood: _Likelihood, point: Vector) -> Matrix:
    """The sum over clusters c of U_c U_c', where U_c is the cluster's part of the gradient."""
    residuals, by_tie = likelihood.residuals(comparisons, point)
    if comparisons.clusters is None:
        return _squares_of_rows(comparisons, residuals, by_tie)
    size = comparisons.systems + likelihood.has_nu
    total = np.zeros((size, size))
    for rows, codes, clusters in _blocks(comparisons.clusters):
        sums = np.zeros((clusters, size))
        for systems, sign in ((comparisons.first, 1.0), (comparisons.second, -1.0)):
            places = codes * comparisons.systems + systems[rows]
            counted = np.bincount(places, residuals[rows] * sign, clusters * comparisons.systems)
            sums[:, : comparisons.systems] += counted.reshape(clusters, comparisons.systems)
        if likelihood.has_nu:
            sums[:, -1] = np.bincount(codes, by_tie[rows], clusters)
        total += sums.T @ sums
    return total


def _squares_of_rows(comparisons: Comparisons, residuals: Vector, by_tie: Vector) -> Matrix:
    """The same for comparisons that are all independent."""
    squares = comparisons.table(residuals**2)
    total = _laplacian(squares + squares.T)
    if not len(by_tie):
        return total
    products = comparisons.table(residuals * by_tie)
    mixed = products.sum(axis=1) - products.sum(axis=0)
    return np.block([[total, mixed[:, None]], [mixed[None], np.array([[float(by_tie @ by_tie)]])]])


def _blocks(clusters: Codes) -> Iterator[tuple[Codes, Codes, int]]:
    """Rows of some clusters each, with the codes of their clusters from 0, and the number of clusters."""
    order = np.argsort(clusters, kind="stable")
    ordered = clusters[order]
    codes = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])]).astype(np.int64)
    for start in range(0, int(codes[-1]) + 1, _BLOCK):
        low, high = np.searchsorted(codes, [start, start + _BLOCK])
        yield order[low:high], codes[low:high] - start, int(codes[high - 1]) - start + 1
