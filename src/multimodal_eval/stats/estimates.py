"""Aggregates that are not means: smooth functions of summed statistics, by the delta method, and groups of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from math import comb, fsum, isnan, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate, Rows

__all__ = ["all_right", "between_epochs", "function_of_sums", "is_binary", "ks_of", "pass_at_k", "reduced"]


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


# Scores of groups of rows that count only if all their rows are right.


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


# pass@k: the probability that at least one of k answers to the same question is right; and how epochs differ.
#
# Reference:
#     Chen et al. (2021). Evaluating Large Language Models Trained on Code. arXiv:2107.03374, equation 1.
#     Yao et al. (2024). tau-bench. arXiv:2406.12045, section 3: pass^k.


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


def reduced(values: Vector, reducer: str, answers: Sequence[Sequence[Hashable]] = ()) -> Vector:
    """One value for every row of `values` (samples x epochs, NaN if unscored), by the name of a reducer:

        mode          the most frequent score (the mean of several that are equally frequent)
        max           the highest score
        majority      the score of the most frequent answer (the mean of several)
        at_least_K    1 if at least K answers are right, else 0
        pass^K        the probability that all of K answers are right: C(c, K) / C(n, K), with c right ones of n

    NaN for a sample without a scored answer; for `pass^K` also with fewer than K of them. `answers` are those of each
    sample, for `majority`.
    """
    if reducer == "max":
        return np.where(np.isfinite(values).any(axis=1), np.max(np.nan_to_num(values, nan=-np.inf), axis=1), nan)
    if reducer in ("mode", "majority"):
        keys: Sequence[Sequence[Hashable]] = values.tolist() if reducer == "mode" else answers
        return np.array([_of_most_frequent(row, key) for row, key in zip(values, keys, strict=True)])
    scored, right = np.isfinite(values).sum(axis=1), np.nansum(values, axis=1).astype(np.int64)
    k = int(reducer.rpartition("_")[2].rpartition("^")[2])
    if reducer.startswith("at_least"):
        return np.where(scored > 0, (right >= k).astype(np.float64), nan)
    pairs = zip(scored.tolist(), right.tolist(), strict=True)
    return np.array([comb(c, k) / comb(n, k) if n >= k else nan for n, c in pairs])


def _of_most_frequent(values: Vector, keys: Sequence[Hashable]) -> float:
    """The mean of the scores whose key is the most frequent one; each of several equally frequent ones counts once."""
    scores: dict[Hashable, list[float]] = {}
    for value, key in zip(values.tolist(), keys, strict=True):
        if not isnan(value):
            scores.setdefault(key, []).append(value)
    counts = Counter({key: len(each) for key, each in scores.items()})
    most = max(counts.values(), default=0)
    means = [fsum(each) / len(each) for each in scores.values() if len(each) == most]
    return fsum(means) / len(means) if means else nan
