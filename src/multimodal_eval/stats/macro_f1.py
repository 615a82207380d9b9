"""Macro F1 of rows with one or several gold labels, with scores per class and the confusion matrix.

Labels are integer codes: an index into the taxonomy's `labels`, or -1 for "not a label of the taxonomy".
With p the predicted label of a row and G its gold labels, every score is computed from three additive
statistics per class k: hits H_k (rows with p = k in G), gold N_k (rows with k in G), predicted P_k (rows with p = k):

    precision_k = H_k / P_k    recall_k = H_k / N_k    F_k = 2 H_k / D_k,  D_k = N_k + P_k    macro F1 = (1/K) sum_k F_k

over all K labels of the taxonomy, 0 if a denominator is 0, as in scikit-learn with `labels=` and `zero_division=0`. A
row that misses all of its several gold labels counts as one false negative for each of them and one false positive.
N_k = H_k + FN_k still holds, but the sum of N_k may exceed the number of rows. The influence values are

    psi_i = (n/K) sum_k [ 2 h_ik - F_k (g_ik + p_ik) ] / D_k,   SE = sqrt(sum psi^2) / n

Reference:
    Opitz and Burst (2019). Macro F1 and Macro F1. arXiv:1911.03347: recommends the mean of the F_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import Codes, Interval, Vector, t_interval, wilson_bounds, wilson_interval

FEW_GOLD = 10  # gold examples of a class below which there is a warning
MIN_GOLD = 5  # with fewer gold examples of more than one class, there is no interval
_SHARED = 2.0  # a wrong label lowers the F1 of two classes
_SHARED_ERRORS = 8  # errors that this counts like
NONE = -1

Mask = NDArray[np.bool_]


class ClassScores(TypedDict):
    """One class: its scores, its gold rows (`support`) and its predicted rows."""

    precision: float
    recall: float
    f1: float
    support: int
    predicted: int


@dataclass(frozen=True, slots=True)
class ClassificationScores:
    """The scores over the rows that have a gold label (`kept`, a mask over all rows).

    `right` is a mask over the kept rows that count as correct. `confusion[g, p]` counts kept rows by effective gold
    label and prediction. Predictions outside the taxonomy have no column, so the rows of the matrix do not sum to the
    gold counts if there are any. A miss of a row with several gold labels is counted for each of them.
    """

    labels: tuple[str, ...]
    kept: Mask
    right: Mask
    hits: Codes
    gold: Codes
    predicted: Codes
    confusion: Codes
    macro_f1: Estimate

    @property
    def n_scored(self) -> int:
        """The number of rows with a gold label."""
        return len(self.right)

    @property
    def n_skipped(self) -> int:
        """The number of rows without a gold label."""
        return len(self.kept) - len(self.right)

    @property
    def accuracy(self) -> Estimate:
        """The share of kept rows that are right."""
        share = int(np.count_nonzero(self.right)) / len(self.right)
        return Estimate(share, self.right.astype(np.float64) - share)

    @property
    def precision(self) -> Vector:
        """Per class; 0 if the class is never predicted."""
        return _ratio(self.hits, self.predicted)

    @property
    def recall(self) -> Vector:
        """Per class; 0 if the class is never gold."""
        return _ratio(self.hits, self.gold)

    @property
    def f1(self) -> Vector:
        """Per class; 0 if the class is neither gold nor predicted."""
        return _ratio(2 * self.hits, self.gold + self.predicted)

    @property
    def per_class(self) -> dict[str, ClassScores]:
        """The scores of each label."""
        columns = (self.precision, self.recall, self.f1, self.gold, self.predicted)
        rows = zip(self.labels, *(column.tolist() for column in columns), strict=True)
        return {
            label: ClassScores(precision=precision, recall=recall, f1=f1, support=support, predicted=predicted)
            for label, precision, recall, f1, support, predicted in rows
        }

    @property
    def few_gold(self) -> list[str]:
        """Classes with too few gold examples for a reliable interval of macro F1."""
        return [label for label, count in zip(self.labels, self.gold.tolist(), strict=True) if count < FEW_GOLD]

    def macro_f1_interval(self, clusters: Codes | None = None) -> Interval:
        """The interval of macro F1; `clusters` has the codes of ALL rows."""
        return t_interval(self.macro_f1, kept_clusters(clusters, self.kept))

    def accuracy_interval(self, clusters: Codes | None = None) -> Interval:
        """Wilson's interval of the accuracy; `clusters` has the codes of ALL rows."""
        return wilson_interval(self.accuracy, kept_clusters(clusters, self.kept))


def classification_scores(labels: Sequence[str], kept: Mask, predicted: Codes, golds: Codes) -> ClassificationScores:
    """The scores of the kept rows; `golds` has the gold labels of each row (rows x labels, padded with -1)."""
    classes, rows = len(labels), len(golds)
    single = (np.arange(rows), np.zeros(rows, dtype=np.int64))
    owners, columns = np.nonzero(golds >= 0) if golds.shape[1] > 1 else single
    charged = golds[owners, columns]
    hit = charged == predicted[owners]
    right = np.zeros(rows, dtype=np.bool_)
    right[owners[hit]] = True
    hits, sizes, guesses = (_counts(codes, classes) for codes in (charged[hit], charged, predicted))
    known = predicted[owners] >= 0
    cells = charged[known] * classes + predicted[owners[known]]
    confusion = np.bincount(cells, minlength=classes * classes).reshape(classes, classes).astype(np.int64)
    share = _ratio(np.ones(classes), sizes + guesses)
    loss = _ratio(2 * hits, sizes + guesses) * share
    influence: Vector = -np.bincount(owners, weights=loss[charged], minlength=rows).astype(np.float64)
    influence[owners[hit]] += 2 * share[charged[hit]]
    influence -= np.append(loss, 0.0)[predicted]  # code -1 selects the last entry, which is 0
    value = macro_f1_of_sums(np.concatenate([hits, sizes, guesses]))
    estimate = macro_f1_estimate(value, influence * (rows / classes), np.concatenate([hits, sizes, guesses]))
    return ClassificationScores(tuple(labels), kept, right, hits, sizes, guesses, confusion, estimate)


def row_statistics(predicted: int, golds: Sequence[int], classes: int) -> tuple[float, ...]:
    """The additive statistics of one row with these gold labels: hits, gold and predicted for each class."""
    table = [0.0] * (3 * classes)
    for gold in golds:
        table[classes + gold] = 1.0
    if predicted >= 0:
        table[2 * classes + predicted] = 1.0
        table[predicted] = float(predicted in golds)
    return tuple(table)


def macro_f1_of_sums(sums: ArrayLike) -> float:
    """Macro F1 of summed statistics: the hits of all classes, then gold, then predicted."""
    hits, gold, predicted = np.asarray(sums).reshape(3, -1)
    return float(_ratio(2 * hits, gold + predicted).mean())


def macro_f1_estimate(value: float, influence: Vector, sums: ArrayLike) -> Estimate:
    """Macro F1 with the margins of its interval, from those of the classes.

    Of the rows with class k as gold label or prediction, the share J_k has both, and F_k = 2 J_k / (1 + J_k). Wilson's
    interval of J_k gives that of F_k, from 0 to 1 for a class that does not occur. The squared distances to its ends
    add up, as variances do (MOVER), times the ratio of the variance of the influence values to the sum of those of
    the classes: wrong labels lower two classes at once. No interval covers the truth if several classes are rare.

    Reference:
        Zou and Donner (2008). Construction of Confidence Limits about Effect Measures. Statistics in Medicine 27.
    """
    hits, gold, predicted = np.asarray(sums, dtype=np.float64).reshape(3, -1)
    estimate = Estimate(value, influence, corrected=False, bounds=(0.0, 1.0))
    if int((gold < MIN_GOLD).sum()) > 1:
        rare = int((gold < MIN_GOLD).sum())
        return replace(estimate, unreliable=f"{rare} classes have fewer than {MIN_GOLD} gold examples")
    z = 1.959964  # the margins are scaled by their quantile later
    ends = [wilson_bounds(h / u, u, z) if u else (0.0, 1.0) for h, u in zip(hits, gold + predicted - hits, strict=True)]
    low, high = (np.array([2 * end[side] / (1 + end[side]) for end in ends]) for side in (0, 1))
    scores = _ratio(2 * hits, gold + predicted)
    # F_k has the variance of its rows' 2 h - F_k (g + p): hits count 2 - 2 F_k, the other rows of the class -F_k.
    rest = gold + predicted - 2 * hits
    spread = _ratio(hits * (2 - 2 * scores) ** 2 + rest * scores**2, (gold + predicted) ** 2).sum() / len(hits) ** 2
    observed = float((influence**2).sum()) / max(1, len(influence)) ** 2
    errors = max(0.0, float(gold.sum() - hits.sum()))
    together = observed / spread if spread > 0 else _SHARED
    together = (errors * together + _SHARED_ERRORS * _SHARED) / (errors + _SHARED_ERRORS)
    below, above = (float(np.sqrt(together * ((scores - end) ** 2).sum())) / len(hits) / z for end in (low, high))
    return replace(estimate, margins=(below, above))


def macro_f1_gradient(sums: Vector) -> Vector:
    """d macro F1 / d statistics: 2/(K D_k) by H_k, -F_k/(K D_k) by N_k and by P_k; 0 for classes that do not occur."""
    hits, gold, predicted = sums.reshape(3, -1)
    sizes = gold + predicted
    share = _ratio(np.ones_like(sizes), sizes) / len(sizes)
    by_size = -_ratio(2 * hits, sizes) * share
    return np.concatenate([2 * share, by_size, by_size])


def kept_clusters(clusters: Codes | None, kept: Mask) -> Codes | None:
    """The clusters of the kept rows."""
    return None if clusters is None else clusters[kept]


def _counts(codes: Codes, classes: int) -> Codes:
    known = codes[codes >= 0]
    return np.bincount(known, minlength=classes).astype(np.int64)


def _ratio(numerator: ArrayLike, denominator: ArrayLike) -> Vector:
    above, below = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    return np.divide(above, below, out=np.zeros(len(below)), where=below > 0)
