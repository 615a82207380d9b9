"""What a composite owes to its weights: shares of variance, and what happens when the weights move.

Weights are drawn from a Dirichlet distribution around the given ones: with concentration k the weight w moves with
standard deviation sqrt( w (1 - w) / (k + 1) ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import Vector

DRAWS = 10_000
CONCENTRATION = 50.0

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """A composite under moved weights."""

    value: float  # under the given ones
    stderr: float  # standard deviation over the draws
    low: float  # 2.5 % and 97.5 % of the draws
    high: float


def effective_weights(parts: Matrix, weights: Vector) -> Vector | None:
    """w_m Cov(x_m, c) / Var(c) of each part, for c_i = sum_m w_m x_im: its share of the composite's variance.

    The shares add up to 1; one can be negative where a part runs against the others. None where all composites are
    equal.
    """
    composite = parts @ weights
    centred = composite - composite.mean()
    variance = float(centred @ centred)
    if variance <= 1e-24 * max(1.0, float(composite @ composite)):
        return None
    shares: Vector = weights * ((parts - parts.mean(axis=0)).T @ centred) / variance
    return shares


def drawn_weights(weights: Vector, *, draws: int, concentration: float, seed: int) -> Matrix:
    """Weights around the given ones, a row a draw; a weight of 0 stays 0."""
    moving = weights > 0
    drawn = np.zeros((draws, len(weights)))
    drawn[:, moving] = np.random.default_rng(seed).dirichlet(concentration * weights[moving], size=draws)
    return drawn


def spread(means: Vector, weights: Vector, drawn: Matrix) -> Spread:
    """How the composite of the parts' means moves with the weights."""
    values = drawn @ means
    low, high = np.quantile(values, (0.025, 0.975))
    return Spread(float(weights @ means), float(values.std()), float(low), float(high))


def flip_probabilities(means: Sequence[Vector], weights: Vector, drawn: Matrix) -> Matrix:
    """Share of the draws in which two systems change places, for each pair; systems that are level count as half."""
    values = np.array([drawn @ own for own in means])
    given = np.array([float(weights @ own) for own in means])
    flips = np.zeros((len(means), len(means)))
    for a in range(len(means)):
        for b in range(a + 1, len(means)):
            moved = np.sign(values[a] - values[b])
            was = np.sign(given[a] - given[b])
            flips[a, b] = flips[b, a] = float(np.mean(np.where(moved == 0, 0.5, moved != was))) if was != 0 else 0.5
    return flips


def rank_shares(means: Sequence[Vector], drawn: Matrix) -> Matrix:
    """Share of the draws in which each system (row) holds each rank (column), best first; equals share by order."""
    values = np.array([drawn @ own for own in means])
    places = np.argsort(np.argsort(-values, axis=0, kind="stable"), axis=0, kind="stable")
    return np.array([np.bincount(own, minlength=len(means)) / drawn.shape[0] for own in places])
