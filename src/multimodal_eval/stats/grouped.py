"""Scores of groups of rows that count only if all their rows are right."""

from __future__ import annotations

from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate

__all__ = ["all_right"]


def all_right(values: NDArray[np.float64], keys: NDArray[np.float64]) -> Estimate:
    """The share of groups whose rows are all right: the mean over groups of the product of their values.

    Rows with equal rows of `keys` form a group. A value is 0 or 1, or the probability of being right. The influence of
    a group is that of one unit, y_g - mean, scaled from G groups to n rows; its first row carries it.
    """
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    products = np.ones(len(first))
    np.multiply.at(products, group.reshape(-1), values)
    count, mean = len(first), fsum(products) / len(first)
    influence = np.zeros(len(values))
    # The correction is that of G units, not of n rows.
    correction = sqrt(count / (count - 1)) if count > 1 else 1.0
    influence[first] = (products - mean) * (len(values) / count) * correction
    return Estimate(mean, influence, corrected=False)
