"""How a composite depends on its weights: shares of variance, and the effect of random changes to the weights.

Weights are drawn from a Dirichlet distribution around the configured ones: with concentration k, a weight w has the
standard deviation sqrt( w (1 - w) / (k + 1) ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import ROUNDING, Vector

DRAWS = 10_000
CONCENTRATION = 50.0

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """A composite under random weights."""

    value: float  # under the configured weights
    deviation: float  # standard deviation over the draws
    low: float  # 2.5th percentile of the draws
    high: float  # 97.5th percentile


@dataclass(frozen=True)
class Parts:
    """The parts of the samples' composites, samples x parts.

    NaN is a missing part. It counts as 0, or with `renormalise` the other weights of the sample are scaled to sum to 1.
    `rows` are the weights of the samples, 1 on average; by default all samples have the same weight.
    """

    values: Matrix
    renormalise: bool = False
    rows: Vector | None = None

    @property
    def shares(self) -> Matrix:
        """The weights of the samples, as a column."""
        rows: Vector = np.ones(len(self.values)) if self.rows is None else self.rows
        return rows[:, None]

    @property
    def means(self) -> Vector:
        """The mean of each part over the samples that have it; NaN if none has."""
        present = ~np.isnan(self.values)
        counts = (present * self.shares).sum(axis=0)
        sums = (np.where(present, self.values, 0.0) * self.shares).sum(axis=0)
        means: Vector = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
        return means

    def contributions(self, weights: Vector) -> Matrix:
        """The contribution of each part to the composite of each sample."""
        present = ~np.isnan(self.values)
        weighted: Matrix = np.where(present, self.values, 0.0) * weights
        return weighted / (present @ weights)[:, None] if self.renormalise else weighted

    @cached_property
    def _sums(self) -> list[tuple[NDArray[np.bool_], Vector]]:
        """The parts that samples have, and the sums of these samples' parts. Weights change neither."""
        present = ~np.isnan(self.values)
        if present.all():
            patterns, codes = np.ones((1, present.shape[1]), np.bool_), np.zeros(len(present), np.int64)
        else:
            patterns, codes = np.unique(present, axis=0, return_inverse=True)
        sums = []
        for code, pattern in enumerate(patterns):
            samples = codes.ravel() == code
            sums.append((pattern, (np.where(pattern, self.values[samples], 0.0) * self.shares[samples]).sum(axis=0)))
        return sums

    def composites(self, weights: Matrix) -> Vector:
        """The mean composite under each row of weights; samples with the same missing parts are computed together."""
        total = np.zeros(len(weights))
        with np.errstate(divide="ignore", invalid="ignore"):  # the result is NaN if a sample has no weight left
            for pattern, sums in self._sums:
                scale = weights @ pattern.astype(np.float64) if self.renormalise else 1.0
                total += (weights @ sums) / scale
        mean: Vector = total / len(self.values)
        return mean


def composites_of(systems: Sequence[Parts], weights: Matrix) -> Matrix:
    """The mean composite of each system (row) under each row of weights (column)."""
    return np.array([system.composites(weights) for system in systems])


def effective_weights(contributions: Matrix, rows: Vector | None = None) -> Vector | None:
    """Cov(u_m, c) / Var(c) of each part's contribution u_m, for c = sum_m u_m: its share of the composite's variance.

    The shares sum to 1. A share is negative if the part is negatively correlated with the composite. None if all
    composites are equal. `rows` are the weights of the samples.
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
    """Random weights around `weights`, one row per draw; a weight of 0 stays 0."""
    positive = weights > 0
    drawn = np.zeros((draws, len(weights)))
    drawn[:, positive] = np.random.default_rng(seed).dirichlet(concentration * weights[positive], size=draws)
    return drawn


def without(weights: Vector, part: int) -> Vector | None:
    """The weights without one part, rescaled to sum to 1; None if no other part has a weight."""
    remaining = weights.copy()
    remaining[part] = 0.0
    total = float(remaining.sum())
    return remaining / total if total > 0 else None


def spread(value: float, varied: Vector) -> Spread:
    """The spread of a composite over the draws."""
    low, high = np.quantile(varied, (0.025, 0.975))
    return Spread(value, float(varied.std()), float(low), float(high))


def flip_probabilities(values: Vector, varied: Matrix) -> Matrix:
    """The share of draws (columns of `varied`) in which two systems swap ranks; a tie counts as half."""
    flips = np.zeros((len(values), len(values)))
    for a in range(len(values)):
        for b in range(a + 1, len(values)):
            drawn, configured = np.sign(varied[a] - varied[b]), np.sign(values[a] - values[b])
            share = float(np.mean(np.where(drawn == 0, 0.5, drawn != configured))) if configured != 0 else 0.5
            flips[a, b] = flips[b, a] = share
    return flips


def rank_shares(varied: Matrix) -> Matrix:
    """The share of draws in which each system (row) has each rank (column), best first; tied systems share ranks."""
    count = len(varied)
    shares = np.zeros((count, count))
    for system in range(count):
        better = (varied > varied[system]).sum(axis=0)
        tied = (varied == varied[system]).sum(axis=0)
        for rank in range(count):
            shares[system, rank] = float(np.mean(((better <= rank) & (rank < better + tied)) / tied))
    return shares
