"""What a composite owes to its weights: shares of variance, and what happens when the weights move.

Weights are drawn from a Dirichlet distribution around the given ones: with concentration k the weight w moves with
standard deviation sqrt( w (1 - w) / (k + 1) ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import ROUNDING, Vector

DRAWS = 10_000
CONCENTRATION = 50.0

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """A composite under moved weights."""

    value: float  # under the given ones
    deviation: float  # standard deviation over the draws
    low: float  # 2.5 % and 97.5 % of the draws
    high: float


@dataclass(frozen=True)
class Parts:
    """The parts of many samples' composites, samples x parts.

    NaN is a missing part: it counts as 0, or with `renormalise` the sample's other weights are scaled up to 1. `rows`
    are what the samples count for, 1 on average; without them all count the same.
    """

    values: Matrix
    renormalise: bool = False
    rows: Vector | None = None

    @property
    def shares(self) -> Matrix:
        """What the samples count for, as a column."""
        rows: Vector = np.ones(len(self.values)) if self.rows is None else self.rows
        return rows[:, None]

    @property
    def means(self) -> Vector:
        """The mean of each part where it is there; NaN where it never is."""
        there = ~np.isnan(self.values)
        counts = (there * self.shares).sum(axis=0)
        sums = (np.where(there, self.values, 0.0) * self.shares).sum(axis=0)
        found: Vector = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
        return found

    def contributions(self, weights: Vector) -> Matrix:
        """What each part adds to each sample's composite."""
        there = ~np.isnan(self.values)
        weighted: Matrix = np.where(there, self.values, 0.0) * weights
        return weighted / (there @ weights)[:, None] if self.renormalise else weighted

    def composites(self, weights: Matrix) -> Vector:
        """The mean composite under each row of weights; samples that lack the same parts are taken together."""
        there = ~np.isnan(self.values)
        patterns, codes = np.unique(there, axis=0, return_inverse=True)
        total = np.zeros(len(weights))
        with np.errstate(divide="ignore", invalid="ignore"):  # weights that leave a sample nothing: no number
            for number, pattern in enumerate(patterns):
                own = codes.ravel() == number
                sums = (np.where(pattern, self.values[own], 0.0) * self.shares[own]).sum(axis=0)
                scale = weights @ pattern.astype(np.float64) if self.renormalise else 1.0
                total += (weights @ sums) / scale
        mean: Vector = total / len(self.values)
        return mean


def composites_of(systems: Sequence[Parts], weights: Matrix) -> Matrix:
    """The mean composite of each system (row) under each row of weights (column)."""
    return np.array([system.composites(weights) for system in systems])


def effective_weights(contributions: Matrix, rows: Vector | None = None) -> Vector | None:
    """Cov(u_m, c) / Var(c) of each part's contribution u_m, for c = sum_m u_m: its share of the composite's variance.

    The shares add up to 1; one can be negative where a part runs against the others. None where all composites are
    equal. `rows` are what the samples count for.
    """
    composite = contributions.sum(axis=1)
    centred = composite - np.average(composite, weights=rows)
    weighted = centred if rows is None else centred * rows
    variance = float(weighted @ centred)
    if variance <= ROUNDING**2 * max(1.0, float(composite @ composite)):
        return None
    shares: Vector = (contributions - np.average(contributions, axis=0, weights=rows)).T @ weighted / variance
    return shares


def drawn_weights(weights: Vector, *, draws: int, concentration: float, seed: int) -> Matrix:
    """Weights around the given ones, a row a draw; a weight of 0 stays 0."""
    moving = weights > 0
    drawn = np.zeros((draws, len(weights)))
    drawn[:, moving] = np.random.default_rng(seed).dirichlet(concentration * weights[moving], size=draws)
    return drawn


def without(weights: Vector, part: int) -> Vector | None:
    """The weights with one part's shared among the others in proportion; None where there is nobody to take it."""
    left = weights.copy()
    left[part] = 0.0
    total = float(left.sum())
    return left / total if total > 0 else None


def spread(value: float, moved: Vector) -> Spread:
    """How a composite moves."""
    low, high = np.quantile(moved, (0.025, 0.975))
    return Spread(value, float(moved.std()), float(low), float(high))


def flip_probabilities(values: Vector, moved: Matrix) -> Matrix:
    """Share of the draws (columns of `moved`) in which two systems change places; level counts as half."""
    flips = np.zeros((len(values), len(values)))
    for a in range(len(values)):
        for b in range(a + 1, len(values)):
            now, was = np.sign(moved[a] - moved[b]), np.sign(values[a] - values[b])
            flips[a, b] = flips[b, a] = float(np.mean(np.where(now == 0, 0.5, now != was))) if was != 0 else 0.5
    return flips


def rank_shares(moved: Matrix) -> Matrix:
    """Share of the draws in which each system (row) holds each rank (column), best first; equals share their ranks."""
    count = len(moved)
    shares = np.zeros((count, count))
    for system in range(count):
        better = (moved > moved[system]).sum(axis=0)
        level = (moved == moved[system]).sum(axis=0)
        for rank in range(count):
            shares[system, rank] = float(np.mean(((better <= rank) & (rank < better + level)) / level))
    return shares
