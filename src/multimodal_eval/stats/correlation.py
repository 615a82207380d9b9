"""Agreement of a metric with human judgments: five coefficients, each with one influence value per judgment.

With C concordant, D discordant and T_h, T_m, T_hm tied pairs (for people, for the metric, for both) of P = n(n-1)/2:

    tau-b  = (C - D) / sqrt( (P - T_h) (P - T_m) )
    tau-c  = 2 m (C - D) / ( n^2 (m - 1) ),  m the smaller number of distinct values
    acc_eq = (C + T_hm) / P, metric ties meaning |difference| <= epsilon, epsilon chosen to maximise it

Spearman is Pearson's r of the mid-ranks. An undefined coefficient has the value None and a reason.

The first three are functions of U-statistics, so the first-order effect of judgment i on them comes from the mean over
its pairs: psi_i = 2 (mean over j of h(i, j) - U). Standard errors, intervals and the test of two metrics on the same
judgments use these influence values, summed within clusters. No resampling is involved.

References:
    Kendall (1945). The treatment of ties in ranking problems. Biometrika 33. Stuart (1953). The estimation and
    comparison of strengths of association in contingency tables. Biometrika 40 (tau-c).
    Deutsch, Foster and Freitag (2023). Ties Matter: Meta-Evaluating Modern Metrics with Pairwise Accuracy and Tie
    Calibration. EMNLP. arXiv:2305.14324 (acc_eq).
    Hoeffding (1948). A class of statistics with asymptotically normal distribution. Annals of Math. Statistics 19.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, nextafter, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import LEVEL, Codes, Interval, Vector, number_of_units, standard_error

__all__ = [
    "Coefficient",
    "Difference",
    "coefficient_interval",
    "kendall_tau_b",
    "kendall_tau_c",
    "paired_difference",
    "pearson",
    "pearson_value",
    "spearman",
    "spearman_value",
    "tie_calibrated_accuracy",
]


# Exact counts of concordant, discordant and tied pairs of judgments, without listing all pairs.
#
# A pair of items is concordant if people and the metric order it the same way, discordant if they order it
# differently, and tied if people or the metric see no difference. For the metric, values at most epsilon apart are
# tied.
#
# Items are split by the bits of their human grade: two items with different grades are separated at exactly one bit.
# At each bit the metric's ranks are sorted once, and a binary search counts an item's partners on the other side. This
# takes O(n log n log k) time and O(n log k) memory for k grades.

Counts = NDArray[np.int64]

MAX_LISTED = 1 << 20  # pairs that are listed one by one
SAMPLED = 1001  # pairs whose median difference decides where to cut


@dataclass(frozen=True, slots=True)
class PairCounts:
    """For every item, the number of its pairs of each kind."""

    concordant: Counts
    discordant: Counts
    tied_human: Counts  # including those tied for both
    tied_metric: Counts  # including those tied for both
    tied_both: Counts

    @property
    def agreeing(self) -> Counts:
        """Pairs ordered the same way, or tied for both."""
        return self.concordant + self.tied_both


@dataclass(frozen=True, slots=True)
class _Side:
    """The items on one side of a bit, and the sorted keys of the items on the other side."""

    items: Counts
    base: Counts  # key of rank 0 among the partners of the same node
    first: Counts  # start of the node's partners in `keys`
    end: Counts  # and their end
    keys: Counts

    def below(self, ranks: Counts) -> Counts:
        """The number of partners below each rank."""
        return np.searchsorted(self.keys, self.base + ranks) - self.first

    def at_or_above(self, ranks: Counts) -> Counts:
        """The number of partners at or above each rank."""
        return self.end - np.searchsorted(self.keys, self.base + ranks)


@dataclass(frozen=True, slots=True, order=True)
class _Bin:
    """The tolerances above `low`, up to `high`; at most -`negative_bound` pairs agree at any of them."""

    negative_bound: int
    low: float
    high: float
    concordant_at_low: int
    agreeing_at_low: int
    tied_at_high: int


class PairIndex:
    """An index of the pairs of two vectors that counts them at any tolerance."""

    def __init__(self, human: Vector, metric: Vector) -> None:
        self.values, ranks = np.unique(metric, return_inverse=True)
        grades = np.unique(human, return_inverse=True)[1]
        self.order = np.lexsort((ranks, grades))
        self.ranks: Counts = ranks[self.order].astype(np.int64)
        self.grades: Counts = grades[self.order].astype(np.int64)
        self._width = len(self.values) + 1  # a rank may be one past the last
        self._keys = self.grades * self._width + self.ranks  # sorted, because the items are
        bits = int(self.grades[-1]).bit_length()
        self._levels = [self._level(bit) for bit in range(bits)]
        # In the items sorted by rank, those of rank r are at _rank_starts[r]:_rank_starts[r + 1].
        self._rank_starts = np.concatenate([[0], np.cumsum(np.bincount(self.ranks))])
        by_rank = np.argsort(self.ranks, kind="stable")
        self._sorted_ranks, self._sorted_grades = self.ranks[by_rank], self.grades[by_rank]

    def __len__(self) -> int:
        return len(self.ranks)

    def _level(self, bit: int) -> tuple[_Side, _Side]:
        """The items separated at this bit: lower grades with the higher ones as partners, and vice versa."""
        nodes, upper = self.grades >> (bit + 1), (self.grades >> bit) & 1 == 1
        keys = nodes * self._width + self.ranks
        low, high = np.flatnonzero(~upper), np.flatnonzero(upper)
        return self._side(low, nodes[low], np.sort(keys[high])), self._side(high, nodes[high], np.sort(keys[low]))

    def _side(self, items: Counts, nodes: Counts, keys: Counts) -> _Side:
        base = nodes * self._width
        return _Side(items, base, np.searchsorted(keys, base), np.searchsorted(keys, base + self._width), keys)

    def _reach(self, epsilon: float) -> tuple[Counts, Counts]:
        """For each distinct value: the first rank tied with it, and the first rank above that is not."""
        values, top = self.values, len(self.values)
        with np.errstate(over="ignore"):
            end = np.searchsorted(values, values + epsilon, side="right")
            # values + epsilon is rounded; the floating-point difference of two values decides.
            while np.any(more := (end < top) & (values[np.minimum(end, top - 1)] - values <= epsilon)):
                end[more] += 1
            while np.any(less := values[end - 1] - values > epsilon):
                end[less] -= 1
        return np.searchsorted(end, np.arange(top), side="right"), end

    def counts(self, epsilon: float = 0.0) -> PairCounts:
        """The counts of every item, in input order."""
        first, end = (reach[self.ranks] for reach in self._reach(epsilon))
        concordant, discordant = np.zeros((2, len(self)), dtype=np.int64)
        for lower, upper in self._levels:
            concordant[lower.items] += lower.at_or_above(end[lower.items])
            discordant[lower.items] += lower.below(first[lower.items])
            concordant[upper.items] += upper.below(first[upper.items])
            discordant[upper.items] += upper.at_or_above(end[upper.items])
        tied_both = np.searchsorted(self._keys, self.grades * self._width + end)
        tied_both -= np.searchsorted(self._keys, self.grades * self._width + first) + 1  # the item itself
        tied_human = np.bincount(self.grades)[self.grades] - 1
        columns = (concordant, discordant, tied_human, self._rank_starts[end] - self._rank_starts[first] - 1, tied_both)
        return PairCounts(*(self._in_input_order(column) for column in columns))

    def _in_input_order(self, column: Counts) -> Counts:
        reordered = np.empty_like(column)
        reordered[self.order] = column
        return reordered

    def concordant_and_tied(self, epsilon: float) -> tuple[int, int]:
        """The number of concordant pairs, and of pairs tied for both."""
        ends = self._reach(epsilon)[1][self.ranks]
        concordant = sum(int(lower.at_or_above(ends[lower.items]).sum()) for lower, _ in self._levels)
        partners = np.searchsorted(self._keys, self.grades * self._width + ends) - np.arange(1, len(self) + 1)
        return concordant, int(partners.sum())

    def calibrated(self) -> tuple[float, int]:
        """The smallest tolerance at which the most pairs agree, and the number of agreeing pairs.

        A growing tolerance removes concordant pairs and adds tied ones. Between two tolerances, the number of agreeing
        pairs is at most the concordant pairs at the lower plus the tied pairs at the higher one. Bins of tolerances
        are split, the most promising first, until few enough pairs remain to list them. Bins that cannot beat the best
        are skipped. The result is exact.
        """
        with np.errstate(over="ignore"):
            top = float(self.values[-1] - self.values[0])
        concordant, tied = self.concordant_and_tied(0.0)
        best = (-(concordant + tied), 0.0)  # (negative number of agreeing pairs, tolerance), to be minimised
        heap: list[_Bin] = []
        concordant_at_top, tied_at_top = self.concordant_and_tied(top)
        best = min(best, (-(concordant_at_top + tied_at_top), top))
        heappush(heap, _Bin(-(concordant + tied_at_top), 0.0, top, concordant, concordant + tied, tied_at_top))
        while heap:
            bin_ = heappop(heap)
            if bin_.negative_bound > best[0]:
                break
            if (bin_.negative_bound, bin_.low) >= best or nextafter(bin_.low, inf) >= bin_.high:
                continue  # the bin has nothing better, or only `high`, which was evaluated when the bin was split
            starts, sizes = self._neighbours(bin_)
            total = int(sizes.sum())
            if total <= MAX_LISTED:
                best = min(best, self._best_listed(bin_, starts, sizes))
                continue
            cut = self._typical_difference(starts, sizes, total)
            if cut >= bin_.high:  # most pairs differ by exactly `high`: put it into a separate bin
                cut = nextafter(bin_.high, 0.0)
            concordant, tied = self.concordant_and_tied(cut)
            best = min(best, (-(concordant + tied), cut))
            left = -(bin_.concordant_at_low + tied)
            heappush(heap, _Bin(left, bin_.low, cut, bin_.concordant_at_low, bin_.agreeing_at_low, tied))
            right = -(concordant + bin_.tied_at_high)
            heappush(heap, _Bin(right, cut, bin_.high, concordant, concordant + tied, bin_.tied_at_high))
        return best[1], -best[0]

    def _neighbours(self, bin_: _Bin) -> tuple[Counts, Counts]:
        """For each item by rank: the start and number of the items above it by a difference within the bin."""
        starts = self._rank_starts[self._reach(bin_.low)[1]][self._sorted_ranks]
        return starts, self._rank_starts[self._reach(bin_.high)[1]][self._sorted_ranks] - starts

    def _typical_difference(self, starts: Counts, sizes: Counts, total: int) -> float:
        """The median difference of evenly spaced pairs."""
        ends = np.cumsum(sizes)
        pairs = np.linspace(0, total - 1, SAMPLED).astype(np.int64)
        items = np.searchsorted(ends, pairs, side="right")
        partners = starts[items] + pairs - (ends - sizes)[items]
        values = self.values[self._sorted_ranks]
        return float(np.sort(values[partners] - values[items])[SAMPLED // 2])

    def _best_listed(self, bin_: _Bin, starts: Counts, sizes: Counts) -> tuple[int, float]:
        """The best tolerance inside a bin with few pairs, by listing them."""
        if not sizes.any():
            return -bin_.agreeing_at_low, bin_.low
        values, grades = self.values[self._sorted_ranks], self._sorted_grades
        items = np.repeat(np.arange(len(self)), sizes)
        partners = np.arange(len(items)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        # A tie: +1 if people tie the pair, -1 if it was concordant, 0 if it was discordant.
        gains = np.where(grades[items] == grades[partners], 1, np.where(grades[items] < grades[partners], -1, 0))
        differences = values[partners] - values[items]
        order = np.argsort(differences, kind="stable")
        differences, gained = differences[order], np.cumsum(gains[order])
        last = np.append(differences[1:] != differences[:-1], True)
        differences, gained = differences[last], gained[last]
        best = int(np.argmax(gained))
        return -(bin_.agreeing_at_low + int(gained[best])), float(differences[best])


Numbers = Sequence[float] | Vector

ONE_PAIR = "2 judgments make a single pair"
ROUNDING = 1e-12  # smaller differences are rounding errors


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient and one influence value per judgment, or None and the reason why it is undefined."""

    value: float | None
    influence: Vector | None = None
    reason: str | None = None
    epsilon: float | None = None  # acc_eq only: metric differences up to epsilon count as ties


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two coefficients on the same judgments; None if it is undefined."""

    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    p_value: float | None
    method: str


def kendall_tau_b(human: Numbers, metric: Numbers) -> Coefficient:
    """(C - D) / sqrt((P - T_h)(P - T_m)): concordant minus discordant pairs, corrected for ties."""
    h, m = _checked(human, metric)
    undefined = _too_few(h) or _constant(h, m)
    if undefined:
        return undefined
    n = len(h)
    counts = PairIndex(h, m).counts()
    order, order_psi = _u_statistic(counts.concordant - counts.discordant)
    untied_h, untied_h_psi = _u_statistic(n - 1 - counts.tied_human)
    untied_m, untied_m_psi = _u_statistic(n - 1 - counts.tied_metric)
    value = order / sqrt(untied_h * untied_m)
    psi = order_psi / sqrt(untied_h * untied_m) - value / 2 * (untied_h_psi / untied_h + untied_m_psi / untied_m)
    return Coefficient(value, psi)


def kendall_tau_c(human: Numbers, metric: Numbers) -> Coefficient:
    """2 m (C - D) / (n^2 (m - 1)), m the smaller number of distinct values: for rectangular tables."""
    h, m = _checked(human, metric)
    undefined = _too_few(h) or _constant(h, m)
    if undefined:
        return undefined
    n, distinct = len(h), min(len(np.unique(h)), len(np.unique(m)))
    counts = PairIndex(h, m).counts()
    order, psi = _u_statistic(counts.concordant - counts.discordant)
    factor = distinct / (distinct - 1) * (n - 1) / n
    return Coefficient(factor * order, factor * psi)


def tie_calibrated_accuracy(human: Numbers, metric: Numbers, *, epsilon: float | None = None) -> Coefficient:
    """acc_eq: the share of pairs that people and the metric order the same way or both call tied.

    The metric calls a pair tied if its values are at most `epsilon` apart. By default, epsilon is the smallest value
    that maximises the share, found exactly. At a maximum the share does not change with epsilon to first order, so the
    influence values are those for a fixed epsilon.
    """
    h, m = _checked(human, metric)
    if epsilon is not None and not epsilon >= 0:
        raise ValueError(f"The 'epsilon' parameter must be 0 or more. Got {epsilon!r} instead.")
    undefined = _too_few(h)
    if undefined:
        return undefined
    pairs = PairIndex(h, m)
    chosen = pairs.calibrated()[0] if epsilon is None else epsilon
    value, psi = _u_statistic(pairs.counts(chosen).agreeing)
    return Coefficient(value, psi, epsilon=chosen)


def spearman(human: Numbers, metric: Numbers) -> Coefficient:
    """Pearson's r of the mid-ranks.

    With F the mid-ranks in [0, 1] minus 1/2 (G likewise) and S = mean(F G), a judgment affects S through its product
    and through the ranks of the others: psi_i(S) = F_i G_i + mean_j d(x_i, x_j) G_j + mean_j d(y_i, y_j) F_j - 3 S,
    where d(a, b) = 1, 1/2 or 0 for a < b, a = b, a > b.
    """
    h, m = _checked(human, metric)
    undefined = _too_few(h) or _constant(h, m)
    if undefined:
        return undefined
    (f, f_codes), (g, g_codes) = _mid_ranks(h), _mid_ranks(m)
    product, square_f, square_g = (float(np.mean(left * right)) for left, right in ((f, g), (f, f), (g, g)))
    product_psi = f * g + _moved(f_codes, g) + _moved(g_codes, f) - 3 * product
    square_f_psi = f * f + 2 * _moved(f_codes, f) - 3 * square_f
    square_g_psi = g * g + 2 * _moved(g_codes, g) - 3 * square_g
    return _ratio(product, product_psi, (square_f, square_f_psi), (square_g, square_g_psi))


def pearson(human: Numbers, metric: Numbers) -> Coefficient:
    """r = cov(h, m) / (sd(h) sd(m)); psi_i = z_h z_m - r/2 (z_h^2 + z_m^2) with standardised values z."""
    h, m = _checked(human, metric)
    undefined = _too_few(h) or _constant(h, m)
    if undefined:
        return undefined
    a, b = _centred(h), _centred(m)
    product, square_a, square_b = (float(np.mean(left * right)) for left, right in ((a, b), (a, a), (b, b)))
    return _ratio(product, a * b - product, (square_a, a * a - square_a), (square_b, b * b - square_b))


COEFFICIENTS: dict[str, Callable[[Numbers, Numbers], Coefficient]] = {
    "tau_b": kendall_tau_b,
    "tau_c": kendall_tau_c,
    "spearman": spearman,
    "pearson": pearson,
    "acc_eq": tie_calibrated_accuracy,
}


def coefficient_interval(
    coefficient: Coefficient, clusters: Codes | None = None, *, share: bool = False, level: float = LEVEL
) -> Interval | None:
    """The interval of a coefficient by Fisher's z, or of a `share` by the logit; None for an undefined coefficient.

    With z = atanh(r), SE(z) = SE(r) / (1 - r^2), and the bounds are tanh(z ± t SE(z)). For a share p, z = logit(p) and
    SE(z) = SE(p) / (p (1 - p)). t has C - 1 degrees of freedom for C clusters. The bounds stay inside the valid range.
    """
    from multimodal_eval.stats.special import expit, logit, stdtrit

    if coefficient.value is None or coefficient.influence is None:
        return None
    value, count = coefficient.value, number_of_units(coefficient.influence, clusters)
    error = standard_error(coefficient.influence, clusters)
    if error is None:
        return Interval(value, None, None, None, "no interval: 1 cluster")
    if len(coefficient.influence) == 2:
        return Interval(value, error, None, None, f"no interval: {ONE_PAIR}")
    slope = value * (1 - value) if share else 1 - value * value
    if error <= ROUNDING or slope <= ROUNDING:
        return Interval(value, error, None, None, "no interval: the standard error is 0")
    half = float(stdtrit(count - 1, (1 + level) / 2)) * error / slope
    centre = float(logit(value)) if share else float(np.arctanh(value))
    low, high = ((expit if share else np.tanh)(centre + side * half) for side in (-1, 1))
    return Interval(value, error, float(low), float(high), _method("logit" if share else "Fisher z", level, count))


def paired_difference(
    first: Coefficient, second: Coefficient, clusters: Codes | None = None, *, level: float = LEVEL
) -> Difference:
    """first - second on the same judgments, with the standard error of the difference of their influence values.

    p is that of a t test with C - 1 degrees of freedom for C clusters. Judgments that both metrics rank the same way
    cancel out, so the test can detect a difference even if the two intervals overlap.
    """
    from multimodal_eval.stats.special import stdtr, stdtrit

    if first.value is None or second.value is None or first.influence is None or second.influence is None:
        return Difference(None, None, None, None, None, f"undefined: {first.reason or second.reason}")
    influence = first.influence - second.influence
    value, count = first.value - second.value, number_of_units(influence, clusters)
    error = standard_error(influence, clusters)
    if error is None:
        return Difference(value, None, None, None, None, "no test: 1 cluster")
    if error <= ROUNDING:
        if abs(value) <= ROUNDING:
            return Difference(0.0, 0.0, 0.0, 0.0, 1.0, "both metrics rank every judgment the same way")
        reason = ONE_PAIR if len(influence) == 2 else "the standard error is 0"
        return Difference(value, error, None, None, None, f"no test: {reason}")
    half = float(stdtrit(count - 1, (1 + level) / 2)) * error
    p_value = 2 * float(stdtr(count - 1, -abs(value) / error))
    return Difference(value, error, value - half, value + half, p_value, _method("paired t", level, count))


def _checked(human: Numbers, metric: Numbers) -> tuple[Vector, Vector]:
    h, m = np.asarray(human, dtype=np.float64), np.asarray(metric, dtype=np.float64)
    if h.ndim != 1 or h.shape != m.shape:
        raise ValueError(
            f"human and metric must be vectors of the same length. Got shapes {h.shape} and {m.shape} instead."
        )
    for name, values in (("human", h), ("metric", m)):
        if not np.isfinite(values).all():
            raise ValueError(f"The {name!r} scores must be finite. Got {values[~np.isfinite(values)][0]} instead.")
    return h, m


def _too_few(human: Vector) -> Coefficient | None:
    return Coefficient(None, reason=f"{len(human)} judgments, so there is no pair") if len(human) < 2 else None


def _constant(human: Vector, metric: Vector) -> Coefficient | None:
    for name, values in (("the human scores are", human), ("the metric's values are", metric)):
        if values.min() == values.max():
            return Coefficient(None, reason=f"{name} all {values[0]:g}")
    return None


def _u_statistic(sums: Codes) -> tuple[float, Vector]:
    """The mean of a kernel over all pairs and its influence values, from each item's sum over its pairs."""
    n = len(sums)
    value = int(sums.sum()) / (n * (n - 1))
    return value, 2 * (sums / (n - 1) - value)


def _mid_ranks(values: Vector) -> tuple[Vector, Codes]:
    """Mid-ranks in [0, 1] minus 1/2, and the ranks of the distinct values."""
    _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(sizes) - sizes / 2
    return middle[codes] / len(values) - 0.5, codes


def _moved(codes: Codes, weights: Vector) -> Vector:
    """mean_j d(x_i, x_j) w_j, d being 1 for x_i < x_j and 1/2 for x_i = x_j."""
    totals = np.bincount(codes, weights=weights)
    means: Vector = (totals.sum() - np.cumsum(totals) + totals / 2)[codes] / len(codes)
    return means


def _centred(values: Vector) -> Vector:
    """Centred, and scaled so that no square overflows; r does not change."""
    scaled = values / np.max(np.abs(values))
    centred = scaled - scaled.mean()
    normalised: Vector = centred / np.max(np.abs(centred))
    return normalised


def _ratio(product: float, product_psi: Vector, a: tuple[float, Vector], b: tuple[float, Vector]) -> Coefficient:
    """product / sqrt(a * b), with influence values by the delta method; each argument is a value and its influences."""
    scale = sqrt(a[0] * b[0])
    value = max(-1.0, min(1.0, product / scale))
    psi = product_psi / scale - value / 2 * (a[1] / a[0] + b[1] / b[0])
    return Coefficient(value, psi)


def _method(kind: str, level: float, count: int) -> str:
    return f"{level:.0%} {kind} interval from influence values, {count} clusters"


# Pearson's and Spearman's correlation of long columns, without influence values: fast for a million rows.
#
# `correlation` has the same coefficients with the influence values that intervals and tests need.


def pearson_value(x: Vector, y: Vector) -> float | None:
    """r = cov(x, y) / (sd(x) sd(y)); None for fewer than two rows or a constant column."""
    if len(x) != len(y):
        raise ValueError(f"x and y must have the same length. Got {len(x)} and {len(y)} instead.")
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return None
    a, b = _scaled(x), _scaled(y)
    return max(-1.0, min(1.0, float(a @ b) / sqrt(float(a @ a) * float(b @ b))))


def spearman_value(x: Vector, y: Vector) -> float | None:
    """Pearson's r of the mid-ranks; the two columns are sorted at the same time."""
    with ThreadPoolExecutor(2) as threads:
        ranks_x, ranks_y = threads.map(mid_ranks, (x, y))
    return pearson_value(ranks_x, ranks_y)


def mid_ranks(values: Vector) -> Vector:
    """Ranks from 1; equal values share the mean of their ranks."""
    order = np.argsort(values)
    in_order = values[order]
    starts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
    ends = np.append(starts[1:], len(values))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat((starts + 1 + ends) / 2, ends - starts)
    return ranks


def _scaled(values: Vector) -> Vector:
    """Minus the mean, and scaled so that no square overflows; r does not change."""
    scaled = values / np.max(np.abs(values))
    centred: Vector = scaled - scaled.mean()
    return centred
