"""Exact counts of concordant, discordant and tied pairs of judgments, without listing all pairs.

A pair of items is concordant if people and the metric order it the same way, discordant if they order it differently,
and tied if people or the metric see no difference. For the metric, values at most epsilon apart are tied.

Items are split by the bits of their human grade: two items with different grades are separated at exactly one bit. At
each bit the metric's ranks are sorted once, and a binary search counts an item's partners on the other side. This takes
O(n log n log k) time and O(n log k) memory for k grades.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, nextafter

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import Vector

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
