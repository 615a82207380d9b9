"""Aggregates that are not means: smooth functions of summed statistics, by the delta method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate, Rows

__all__ = ["function_of_sums"]

Vector = NDArray[np.float64]


def function_of_sums(rows: Rows, function: Callable[[Vector], float], gradient: Callable[[Vector], Vector]) -> Estimate:
    """f(S), where S are the column sums of the rows' statistics, with its influence values.

    With s_i the statistics of row i and n rows, psi_i = n * grad f(S) · (s_i - S/n): the first-order
    effect of row i on f, scaled as for a mean. Corpus BLEU, METEOR 1.5 and macro F1 use it.
    """
    if rows.stats is None:
        raise ValueError("this aggregate needs per-sample statistics, but the rows have none")
    sums = exact_column_sums(rows.stats)
    direction = np.asarray(gradient(sums), dtype=np.float64)
    return Estimate(float(function(sums)), len(rows) * ((rows.stats - sums / len(rows)) @ direction))


def exact_column_sums(table: Vector) -> Vector:
    """Column sums, independent of the order of the rows."""
    from math import fsum

    return np.array([fsum(column) for column in table.T], dtype=np.float64)
