"""pass@k: the probability that at least one of k answers to the same question is right; and how epochs differ.

Reference:
    Chen et al. (2021). Evaluating Large Language Models Trained on Code. arXiv:2107.03374, equation 1.
"""

from __future__ import annotations

from math import comb, fsum, nan

import numpy as np
from numpy.typing import NDArray

__all__ = ["between_epochs", "is_binary", "ks_of", "pass_at_k"]

Vector = NDArray[np.float64]


def pass_at_k(values: Vector, k: int) -> Vector:
    """1 - C(n - c, k) / C(n, k) for every row of `values`: n of its answers are scored, and c of them are right.

    `values` is samples x epochs, 0 or 1, NaN if unscored. NaN for a sample with fewer than k scored answers.
    """
    scored = np.isfinite(values).sum(axis=1)
    right = np.nansum(values, axis=1).astype(np.int64)
    pairs, inverse = np.unique(np.stack([scored, right], axis=1), axis=0, return_inverse=True)
    chances = [1 - comb(n - c, k) / comb(n, k) if n >= k else nan for n, c in pairs.tolist()]
    return np.array(chances, np.float64)[inverse.reshape(-1)]


def ks_of(epochs: int) -> list[int]:
    """The k that are reported: 1, 2, 4, 8, … and the number of epochs."""
    powers = (1 << power for power in range(epochs.bit_length()))
    return sorted({*(k for k in powers if k <= epochs), epochs})


def is_binary(values: Vector) -> bool:
    """Whether all scored values are 0 or 1, and there is one."""
    scored = values[np.isfinite(values)]
    return bool(len(scored) and np.isin(scored, (0.0, 1.0)).all())


def between_epochs(values: Vector) -> float | None:
    """The standard deviation (divisor: epochs - 1) of the means of the epochs; None with fewer than two of them.

    `values` is samples x epochs, NaN if unscored.
    """
    columns = (column[np.isfinite(column)] for column in values.T)
    means = [fsum(column) / len(column) for column in columns if len(column)]
    if len(means) < 2:
        return None
    center = fsum(means) / len(means)
    return float((fsum((mean - center) ** 2 for mean in means) / (len(means) - 1)) ** 0.5)
