"""All pairs of judgments, counted without looking at each: who agrees with people, by how much, at which tolerance.

A pair of items is concordant where people and the metric order it alike, discordant where they order it differently,
and tied where one of the two sees no difference. The metric sees none where its values are at most epsilon apart.

Items are split by the bits of their human grade: two items of different grades part at exactly one bit. At each bit
the metric's ranks are sorted once, and a binary search counts an item's partners on the other side. That takes
O(n log n log k) steps and O(n log k) memory for k grades, and counts are whole numbers, however many pairs there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, nextafter

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Counts = NDArray[np.int64]

AT_ONCE = 1 << 20  # pairs that are listed one by one
SAMPLED = 1001  # pairs whose median difference says where to cut


@dataclass(frozen=True, slots=True)
class PairCounts:
    """For every item, with how many of the others it stands how."""

    concordant: Counts
    discordant: Counts
    tied_human: Counts  # whatever the metric says
    tied_metric: Counts  # whatever people say
    tied_both: Counts

    @property
    def agreeing(self) -> Counts:
        """Ordered alike, or tied for both."""
        return self.concordant + self.tied_both


@dataclass(frozen=True, slots=True)
class _Side:
    """The items on one side of a bit, and the sorted keys of those on the other."""

    items: Counts
    base: Counts  # key of rank 0 among the same node's partners
    first: Counts  # where the node's partners begin among the keys, and where they end
    end: Counts
    keys: Counts

    def below(self, ranks: Counts) -> Counts:
        """Partners whose rank is below the given one."""
        return np.searchsorted(self.keys, self.base + ranks) - self.first

    def from_on(self, ranks: Counts) -> Counts:
        """Partners of the given rank or above."""
        return self.end - np.searchsorted(self.keys, self.base + ranks)


@dataclass(frozen=True, slots=True, order=True)
class _Bin:
    """The tolerances above `low`, up to `high`; no more than -`negative_bound` pairs agree at any of them."""

    negative_bound: int
    low: float
    high: float
    concordant_at_low: int
    agreeing_at_low: int
    tied_at_high: int


class PairIndex:
    """The pairs of two vectors, ready to be counted at any tolerance."""

    def __init__(self, human: Vector, metric: Vector) -> None:
        self.values, ranks = np.unique(metric, return_inverse=True)
        grades = np.unique(human, return_inverse=True)[1]
        self.order = np.lexsort((ranks, grades))
        self.ranks: Counts = ranks[self.order].astype(np.int64)
        self.grades: Counts = grades[self.order].astype(np.int64)
        self._width = len(self.values) + 1  # a rank may be one beyond the last
        self._keys = self.grades * self._width + self.ranks  # sorted, since the items are
        bits = int(self.grades[-1]).bit_length()
        self._levels = [self._level(bit) for bit in range(bits)]
        # Items of rank r, sorted by rank, lie from _begun[r] up to _begun[r + 1].
        self._begun = np.concatenate([[0], np.cumsum(np.bincount(self.ranks))])
        by_rank = np.argsort(self.ranks, kind="stable")
        self._sorted_ranks, self._sorted_grades = self.ranks[by_rank], self.grades[by_rank]

    def __len__(self) -> int:
        return len(self.ranks)

    def _level(self, bit: int) -> tuple[_Side, _Side]:
        """Items that part at this bit: the lower grades with the higher as partners, and the other way round."""
        nodes, upper = self.grades >> (bit + 1), (self.grades >> bit) & 1 == 1
        keys = nodes * self._width + self.ranks
        low, high = np.flatnonzero(~upper), np.flatnonzero(upper)
        return self._side(low, nodes[low], np.sort(keys[high])), self._side(high, nodes[high], np.sort(keys[low]))

    def _side(self, items: Counts, nodes: Counts, keys: Counts) -> _Side:
        base = nodes * self._width
        return _Side(items, base, np.searchsorted(keys, base), np.searchsorted(keys, base + self._width), keys)

    def _reach(self, epsilon: float) -> tuple[Counts, Counts]:
        """For each distinct value: the first rank that is tied with it, and the first above that is not."""
        values, top = self.values, len(self.values)
        with np.errstate(over="ignore"):
            end = np.searchsorted(values, values + epsilon, side="right")
            # values + epsilon is rounded; what counts is the difference of two values as a program computes it.
            while np.any(more := (end < top) & (values[np.minimum(end, top - 1)] - values <= epsilon)):
                end[more] += 1
            while np.any(less := values[end - 1] - values > epsilon):
                end[less] -= 1
        return np.searchsorted(end, np.arange(top), side="right"), end

    def counts(self, epsilon: float = 0.0) -> PairCounts:
        """The counts of every item, in the order in which the items were given."""
        first, end = (reach[self.ranks] for reach in self._reach(epsilon))
        concordant, discordant = np.zeros((2, len(self)), dtype=np.int64)
        for lower, upper in self._levels:
            concordant[lower.items] += lower.from_on(end[lower.items])
            discordant[lower.items] += lower.below(first[lower.items])
            concordant[upper.items] += upper.below(first[upper.items])
            discordant[upper.items] += upper.from_on(end[upper.items])
        tied_both = np.searchsorted(self._keys, self.grades * self._width + end)
        tied_both -= np.searchsorted(self._keys, self.grades * self._width + first) + 1  # the item itself
        tied_human = np.bincount(self.grades)[self.grades] - 1
        columns = (concordant, discordant, tied_human, self._begun[end] - self._begun[first] - 1, tied_both)
        return PairCounts(*(self._as_given(column) for column in columns))

    def _as_given(self, column: Counts) -> Counts:
        found = np.empty_like(column)
        found[self.order] = column
        return found

    def concordant_and_tied(self, epsilon: float) -> tuple[int, int]:
        """How many pairs are ordered alike, and how many tied for both."""
        ends = self._reach(epsilon)[1][self.ranks]
        concordant = sum(int(lower.from_on(ends[lower.items]).sum()) for lower, _ in self._levels)
        partners = np.searchsorted(self._keys, self.grades * self._width + ends) - np.arange(1, len(self) + 1)
        return concordant, int(partners.sum())

    def calibrated(self) -> tuple[float, int]:
        """The tolerance at which the most pairs agree (the smallest of several), and how many do.

        A growing tolerance takes concordant pairs away and adds tied ones. So between two tolerances no more agree
        than are concordant at the lower and tied at the higher one. Bins of tolerances are cut, the most promising
        first, until their few remaining pairs can be listed; bins that cannot beat the best are never looked into.
        The result is exact.
        """
        with np.errstate(over="ignore"):
            top = float(self.values[-1] - self.values[0])
        concordant, tied = self.concordant_and_tied(0.0)
        best = (-(concordant + tied), 0.0)  # (negative number of agreeing pairs, tolerance): the smallest wins
        heap: list[_Bin] = []
        concordant_at_top, tied_at_top = self.concordant_and_tied(top)
        best = min(best, (-(concordant_at_top + tied_at_top), top))
        heappush(heap, _Bin(-(concordant + tied_at_top), 0.0, top, concordant, concordant + tied, tied_at_top))
        while heap:
            bin_ = heappop(heap)
            if bin_.negative_bound > best[0]:
                break
            if (bin_.negative_bound, bin_.low) >= best or nextafter(bin_.low, inf) >= bin_.high:
                continue  # nothing better in it, or `high` alone, which was looked at when the bin was cut
            starts, sizes = self._neighbours(bin_)
            total = int(sizes.sum())
            if total <= AT_ONCE:
                best = min(best, self._best_listed(bin_, starts, sizes))
                continue
            cut = self._typical_difference(starts, sizes, total)
            if cut >= bin_.high:  # most pairs differ by just `high`: let it stand alone
                cut = nextafter(bin_.high, 0.0)
            concordant, tied = self.concordant_and_tied(cut)
            best = min(best, (-(concordant + tied), cut))
            left = -(bin_.concordant_at_low + tied)
            heappush(heap, _Bin(left, bin_.low, cut, bin_.concordant_at_low, bin_.agreeing_at_low, tied))
            right = -(concordant + bin_.tied_at_high)
            heappush(heap, _Bin(right, cut, bin_.high, concordant, concordant + tied, bin_.tied_at_high))
        return best[1], -best[0]

    def _neighbours(self, bin_: _Bin) -> tuple[Counts, Counts]:
        """For each item by rank: where those begin that lie above it by a difference of the bin, and their number."""
        starts = self._begun[self._reach(bin_.low)[1]][self._sorted_ranks]
        return starts, self._begun[self._reach(bin_.high)[1]][self._sorted_ranks] - starts

    def _typical_difference(self, starts: Counts, sizes: Counts, total: int) -> float:
        """The median difference of evenly spaced pairs."""
        ends = np.cumsum(sizes)
        numbers = np.linspace(0, total - 1, SAMPLED).astype(np.int64)
        items = np.searchsorted(ends, numbers, side="right")
        partners = starts[items] + numbers - (ends - sizes)[items]
        values = self.values[self._sorted_ranks]
        return float(np.sort(values[partners] - values[items])[SAMPLED // 2])

    def _best_listed(self, bin_: _Bin, starts: Counts, sizes: Counts) -> tuple[int, float]:
        """The best tolerance inside a bin of few pairs, from the pairs themselves."""
        if not sizes.any():
            return -bin_.agreeing_at_low, bin_.low
        values, grades = self.values[self._sorted_ranks], self._sorted_grades
        items = np.repeat(np.arange(len(self)), sizes)
        partners = np.arange(len(items)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        # A tie gained, an agreement lost, or neither: people's order is against the metric's anyway.
        gains = np.where(grades[items] == grades[partners], 1, np.where(grades[items] < grades[partners], -1, 0))
        differences = values[partners] - values[items]
        order = np.argsort(differences, kind="stable")
        differences, gained = differences[order], np.cumsum(gains[order])
        last = np.append(differences[1:] != differences[:-1], True)
        differences, gained = differences[last], gained[last]
        place = int(np.argmax(gained))
        return -(bin_.agreeing_at_low + int(gained[place])), float(differences[place])
