"""Classification scored against several annotators: strict, any-match, majority vote and soft.

Labels are integer codes: `predicted` (n,), `gold` (n,) and `annotations` (n, annotators). A code is an index into the
taxonomy's `labels`, or -1 for "not a label of the taxonomy". Rows without a valid gold label are skipped and counted.
A prediction outside the taxonomy is wrong, and only the gold label is charged. "Alphabetical" is the order of
`sorted(labels)`, independent of the codes.

With p the prediction and G the set of valid labels from annotators, the effective gold labels of a row are

    strict           {the one gold label}
    any-match        {p} if p in G, else {the alphabetically first of G}     (charge "first")
                     {p} if p in G, else all of G                            (charge "all")
    majority vote    {the label given most often, ties broken alphabetically}

and the score is the macro F1 of macro_f1.py. The soft score of a row is the share of valid annotations equal to p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.stats.dawid_skene import majority_vote
from multimodal_eval.stats.intervals import Codes, Interval, Vector, interval, t_interval
from multimodal_eval.stats.macro_f1 import NONE, ClassificationScores, Mask, classification_scores, kept_clusters

__all__ = [
    "HumanCeiling",
    "SoftScores",
    "human_ceiling",
    "score_any_match",
    "score_distributions",
    "score_majority",
    "score_soft",
    "score_strict",
]


# The Jensen-Shannon distance between two label distributions.


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


Charge = Literal["first", "all"]
NO_ANNOTATION = "no annotator has given a label of the taxonomy"


@dataclass(frozen=True, slots=True)
class SoftScores:
    """Values per annotated row: shares of annotators, or distances between distributions."""

    kept: Mask
    values: Vector  # one per kept row

    @property
    def n_skipped(self) -> int:
        """The number of rows without an annotation."""
        return len(self.kept) - len(self.values)

    @property
    def mean(self) -> Estimate:
        """The mean over the kept rows."""
        return replace(mean_estimate(Rows(self.values)), bounds=(0.0, 1.0))

    def interval(self, clusters: Codes | None = None) -> Interval:
        """The interval of the mean; `clusters` has the codes of ALL rows."""
        return interval(self.mean, kept_clusters(clusters, self.kept), values=self.values)


@dataclass(frozen=True, slots=True)
class HumanCeiling:
    """Each annotator scored against the others by any-match, and the mean over annotators.

    `by_annotator` is None for an annotator who shares no row with another.
    """

    by_annotator: tuple[ClassificationScores | None, ...]
    macro_f1: Estimate
    accuracy: Estimate

    def macro_f1_interval(self, clusters: Codes | None = None) -> Interval:
        """The t interval over all rows."""
        return t_interval(self.macro_f1, clusters)

    def accuracy_interval(self, clusters: Codes | None = None) -> Interval:
        """The t interval over all rows."""
        return t_interval(self.accuracy, clusters)


def score_strict(predicted: ArrayLike, gold: ArrayLike, labels: Sequence[str]) -> ClassificationScores:
    """Score against one gold label per row; rows without one are skipped."""
    predictions, golds = _codes("predicted", predicted, labels, 1), _codes("gold", gold, labels, 1)
    _check_same_length(predicted=predictions, gold=golds)
    kept = golds >= 0
    _require_rows(kept, "no row has a gold label of the taxonomy")
    return classification_scores(labels, kept, predictions[kept], golds[kept, None])


def score_any_match(
    predicted: ArrayLike, annotations: ArrayLike, labels: Sequence[str], *, charge: Charge = "first"
) -> ClassificationScores:
    """A row is right if any annotator agrees; rows without a valid annotation are skipped."""
    if charge not in get_args(Charge):
        raise ConfigError(f"the option `charge` must be first or all. Got {charge!r} instead.")
    predictions, table = _codes("predicted", predicted, labels, 1), _codes("annotations", annotations, labels, 2)
    _check_same_length(predicted=predictions, annotations=table)
    kept = np.count_nonzero(table >= 0, axis=1) > 0
    _require_rows(kept, NO_ANNOTATION)
    predictions, table = _select(kept, predictions), _select(kept, table)
    return classification_scores(labels, kept, predictions, any_match_golds(predictions, table, labels, charge=charge))


def score_majority(predicted: ArrayLike, annotations: ArrayLike, labels: Sequence[str]) -> ClassificationScores:
    """Score strictly against the majority vote."""
    gold = majority_codes(annotations, labels)
    _require_rows(gold >= 0, NO_ANNOTATION)
    return score_strict(predicted, gold, labels)


def score_soft(predicted: ArrayLike, annotations: ArrayLike, labels: Sequence[str]) -> SoftScores:
    """For each row, the share of valid annotations that equal the predicted label."""
    predictions, table = _codes("predicted", predicted, labels, 1), _codes("annotations", annotations, labels, 2)
    _check_same_length(predicted=predictions, annotations=table)
    shares = soft_shares(predictions, table)
    kept = ~np.isnan(shares)
    _require_rows(kept, NO_ANNOTATION)
    return SoftScores(kept, shares[kept])


def score_distributions(distributions: ArrayLike, annotations: ArrayLike, labels: Sequence[str]) -> SoftScores:
    """The Jensen-Shannon distance (nats, lower is better) of predicted distributions (n, K) to the annotators'."""
    table = _codes("annotations", annotations, labels, 2)
    predicted = np.asarray(distributions, dtype=np.float64)
    if predicted.shape != (len(table), len(labels)):
        expected = f"{len(table)} rows of {len(labels)} shares"
        raise ConfigError(f"the predicted distributions must be {expected}. Got an array of shape {predicted.shape}.")
    kept = np.count_nonzero(table >= 0, axis=1) > 0
    _require_rows(kept, NO_ANNOTATION)
    return SoftScores(kept, jensen_shannon(predicted[kept], annotator_shares(table[kept], len(labels))))


def human_ceiling(annotations: ArrayLike, labels: Sequence[str], *, charge: Charge = "first") -> HumanCeiling | None:
    """Each annotator scored against the others by any-match, and the mean; None if no two annotators share a row.

    With A scored annotators j, each on n_j of the n rows, psi_i = (1/A) sum_j (n / n_j) psi_ij.
    """
    table = _codes("annotations", annotations, labels, 2)
    scored: list[ClassificationScores | None] = []
    for annotator in range(table.shape[1]):
        others = np.delete(table, annotator, axis=1)
        kept = (table[:, annotator] >= 0) & (others >= 0).any(axis=1)
        if not kept.any():
            scored.append(None)
            continue
        scores = score_any_match(table[kept, annotator], others[kept], labels, charge=charge)
        scored.append(replace(scores, kept=kept))  # as a mask over all rows
    present = [scores for scores in scored if scores is not None]
    if not present:
        return None
    return HumanCeiling(
        tuple(scored),
        _mean_of_estimates([(scores.macro_f1, scores.kept) for scores in present]),
        _mean_of_estimates([(scores.accuracy, scores.kept) for scores in present]),
    )


# The rules, row by row.


def any_match_golds(predicted: Codes, annotations: Codes, labels: Sequence[str], *, charge: Charge = "first") -> Codes:
    """The effective gold labels of each row under any-match (rows x labels), padded with -1; all -1 without a label."""
    hit = ((annotations == predicted[:, None]).any(axis=1)) & (predicted >= 0)
    golds = np.where(hit, predicted, _first(annotations, labels))[:, None]
    if charge == "first" or annotations.shape[1] < 2:
        return golds
    distinct = np.sort(annotations, axis=1)
    distinct[:, 1:][distinct[:, 1:] == distinct[:, :-1]] = NONE  # keep each label once
    return np.where(hit[:, None], np.where(np.arange(distinct.shape[1]) == 0, golds, NONE), distinct)


def majority_codes(annotations: ArrayLike, labels: Sequence[str]) -> Codes:
    """The label that annotators gave most often, ties broken alphabetically; -1 without a valid annotation."""
    table = _codes("annotations", annotations, labels, 2)
    by_rank, ranks = _alphabet(labels)
    if not table.shape[1]:
        return np.full(len(table), NONE, dtype=np.int64)
    return by_rank[majority_vote(np.where(table >= 0, ranks[table], NONE), len(labels))]


def soft_shares(predicted: Codes, annotations: Codes) -> Vector:
    """The share of a row's valid annotations that equal the predicted label; NaN without a valid annotation."""
    answered = np.count_nonzero(annotations >= 0, axis=1)
    agreeing = np.count_nonzero((annotations == predicted[:, None]) & (annotations >= 0), axis=1)
    shares: Vector = np.divide(agreeing, answered, out=np.full(len(answered), np.nan), where=answered > 0)
    return shares


def annotator_shares(annotations: Codes, classes: int) -> Vector:
    """The distribution of each row's valid annotations over the classes; zeros without a valid annotation."""
    rows, columns = np.nonzero(annotations >= 0)
    counts = np.bincount(rows * classes + annotations[rows, columns], minlength=len(annotations) * classes)
    table = counts.reshape(len(annotations), classes).astype(np.float64)
    total = table.sum(axis=1, keepdims=True)
    shares: Vector = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    return shares


def _first(annotations: Codes, labels: Sequence[str]) -> Codes:
    by_rank, ranks = _alphabet(labels)
    if not annotations.shape[1]:
        return np.full(len(annotations), NONE, dtype=np.int64)
    first: Codes = by_rank[ranks[annotations].min(axis=1)]
    return first


def _alphabet(labels: Sequence[str]) -> tuple[Codes, Codes]:
    """Codes by alphabetical rank, and ranks by code; code -1 has rank K and vice versa."""
    order = sorted(range(len(labels)), key=lambda code: labels[code])
    ranks = np.empty(len(labels) + 1, dtype=np.int64)
    ranks[order], ranks[NONE] = np.arange(len(labels)), len(labels)
    return np.array([*order, NONE], dtype=np.int64), ranks


def _mean_of_estimates(estimates: Sequence[tuple[Estimate, Mask]]) -> Estimate:
    rows = len(estimates[0][1])
    influence = np.zeros(rows)
    for estimate, kept in estimates:
        influence[kept] += estimate.influence * (rows / len(estimate.influence) / len(estimates))
    value = fsum(estimate.value for estimate, _ in estimates) / len(estimates)
    return Estimate(value, influence, corrected=False, bounds=(0.0, 1.0))


def _codes(name: str, values: ArrayLike, labels: Sequence[str], dimensions: int) -> Codes:
    """The codes as integers, with every negative code replaced by -1."""
    if len(set(labels)) < len(labels) or not labels:
        raise ConfigError(f"a taxonomy must have at least one label, and each once. Got {list(labels)!r}.")
    table = np.asarray(values)
    if table.ndim != dimensions:
        raise ConfigError(f"`{name}` must have {dimensions} dimension{'s'[: dimensions - 1]}. Got {table.ndim}.")
    if table.size and table.dtype.kind not in "iu":
        raise ConfigError(f"`{name}` must contain integer codes. Got {table.dtype}.")
    if table.size and int(table.max()) >= len(labels):
        raise ConfigError(f"`{name}` contains the code {int(table.max())}, but there are only {len(labels)} labels.")
    codes = table.astype(np.int64, copy=False)
    return np.maximum(codes, NONE) if codes.size and int(codes.min()) < NONE else codes


def _check_same_length(**tables: Codes) -> None:
    lengths = {name: len(table) for name, table in tables.items()}
    if len(set(lengths.values())) > 1:
        details = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError([Problem(code="LENGTH", message=f"the numbers of rows differ: {details}")])


def _require_rows(kept: Mask, message: str) -> None:
    if not kept.any():
        raise InputError([Problem(code="NOTHING_TO_SCORE", message=message)])


def _select(kept: Mask, table: Codes) -> Codes:
    """The kept rows; returns the table itself if all rows are kept, to avoid copying millions of rows."""
    return table if kept.all() else table[kept]
