"""The Jensen-Shannon distance between two label distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval.core.errors import ConfigError


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """sqrt( (KL(p || m) + KL(q || m)) / 2 ), m = (p + q) / 2, in nats: from 0 to sqrt(log 2).

    The last axis holds the labels. Shares and counts are both accepted and normalised to sum to 1. This is the
    distance, as in scipy.spatial.distance.jensenshannon; its square is the divergence.

    Reference:
        Lin (1991). Divergence Measures Based on the Shannon Entropy. Endres and Schindelin (2003): the metric.
    """
    left, right = _distribution(p), _distribution(q)
    if left.shape[-1] != right.shape[-1]:
        raise ConfigError(f"two distributions must have the same labels. Got {left.shape[-1]} and {right.shape[-1]}.")
    middle = (left + right) / 2
    divergence = (_relative_entropy(left, middle) + _relative_entropy(right, middle)).sum(axis=-1) / 2
    return np.asarray(np.sqrt(np.maximum(divergence, 0)))  # rounding can give -1e-17


def _relative_entropy(p: NDArray[np.float64], m: NDArray[np.float64]) -> NDArray[np.float64]:
    """p log(p / m), 0 where p is 0."""
    positive = p > 0
    quotient = np.divide(p, m, out=np.ones(m.shape), where=positive)
    return np.asarray(p * np.log(quotient))


def _distribution(shares: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(shares, dtype=np.float64)
    if table.ndim == 0 or not np.isfinite(table).all() or (table < 0).any():
        raise ConfigError("a distribution must contain finite non-negative numbers")
    total = table.sum(axis=-1, keepdims=True)
    if (total <= 0).any():
        raise ConfigError("a distribution must not be all zeros")
    return np.asarray(table / total)
