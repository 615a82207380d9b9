"""Macro F1 with its influence values, in one pass over whole-number class codes.

F_k = 2 TP_k / D_k,  D_k = gold_k + predicted_k,  macro F1 = mean over the taxonomy's K classes; F_k = 0 where D_k = 0
psi_i = (n/K) sum_k [ 2*1(y = yhat = k) - F_k (1(y = k) + 1(yhat = k)) ] / D_k,   SE = sqrt(sum psi^2) / n
"""

from __future__ import annotations

import numpy as np

from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import Codes, Vector

FEW_GOLD = 10  # with fewer gold examples of a class the interval covers too little


def f1_by_class(gold: Codes, predicted: Codes, classes: int) -> Vector:
    """F1 of each class; a prediction outside the taxonomy (a negative code) is wrong for every class."""
    hits = np.bincount(gold[gold == predicted], minlength=classes)[:classes]
    sizes = _sizes(gold, classes) + _sizes(predicted, classes)
    scores: Vector = np.divide(2.0 * hits, sizes, out=np.zeros(classes), where=sizes > 0)
    return scores


def macro_f1(gold: Codes, predicted: Codes, classes: int) -> Estimate:
    """The mean F1 of all classes of the taxonomy, absent ones included, as scikit-learn with `zero_division=0`."""
    scores = f1_by_class(gold, predicted, classes)
    sizes = (_sizes(gold, classes) + _sizes(predicted, classes)).astype(np.float64)
    share = np.divide(1.0, sizes, out=np.zeros(classes), where=sizes > 0)
    influence = np.zeros(len(gold))
    for codes in (gold, predicted):
        known = codes >= 0
        influence[known] -= (scores * share)[codes[known]]
    hit = gold == predicted
    influence[hit] += 2 * share[gold[hit]]
    return Estimate(float(scores.mean()), influence * len(gold) / classes, corrected=False)


def few_gold(gold: Codes, classes: int) -> list[int]:
    """The classes with gold examples too few for the interval to be trusted."""
    return np.flatnonzero(_sizes(gold, classes) < FEW_GOLD).tolist()


def _sizes(codes: Codes, classes: int) -> Codes:
    return np.bincount(codes[codes >= 0], minlength=classes)[:classes]
