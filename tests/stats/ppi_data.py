"""Samples without a random generator, in the shapes of the examples of ppi-python: the same numbers everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def spread(count: int, factor: int, prime: int = 1009) -> Vector:
    """Numbers in [0, 1) that look random: multiples of `factor` modulo a prime."""
    rows = np.arange(1, count + 1)
    return (rows * factor + rows * rows) % prime / prime


def scores(labels: int, others: int) -> tuple[Vector, Vector]:
    """Human ratings from 0 to 5, and those of a judge that is kinder and noisy."""
    count = labels + others
    human = 5 * spread(count, 37)
    return human, human - 1 + 4 * spread(count, 101)


def verdicts(labels: int, others: int) -> tuple[Vector, Vector]:
    """Labels of 0 and 1, half of them 1, and a judge with sensitivity .9 and specificity .7."""
    count = labels + others
    human = (spread(count, 53) < 0.5).astype(np.float64)
    chance = spread(count, 211)
    return human, np.where(human == 1, chance < 0.9, chance < 0.3).astype(np.float64)


def regression(labels: int, others: int) -> tuple[NDArray[np.float64], Vector, Vector]:
    """An intercept and a feature, labels of 0 and 1 that depend on it, and the probabilities that a judge gives."""
    count = labels + others
    feature = 4 * spread(count, 17) - 2
    human = (spread(count, 59) < 1 / (1 + np.exp(0.5 - feature))).astype(np.float64)
    judge = np.where(spread(count, 307) < 0.2, 1 - human, human) * 0.8 + 0.1
    return np.column_stack([np.ones(count), feature]), human, judge
