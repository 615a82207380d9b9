"""One label per unit from several annotators' labels: majority vote, and the model of Dawid and Skene."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.stats.ratings import MISSING, Codes, Ratings, SparseTable, patterns

Vector = NDArray[np.float64]

TOLERANCE = 1e-6
MAX_ITERATIONS = 500
SMOOTHING = 0.01


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """The fitted model.

    `labels` is the most likely class of each unit (-1 without a rating), `posterior` the probabilities
    (units x classes), `priors` the shares of the classes, `confusion[a, k, l]` the probability that
    annotator a chooses l if k is true, and `log_likelihood` that of the ratings.
    """

    labels: Codes
    posterior: Vector
    priors: Vector
    confusion: Vector
    iterations: int
    converged: bool
    log_likelihood: float


def majority_vote(ratings: ArrayLike | Ratings, n_classes: int | None = None) -> Codes:
    """The class that most annotators chose, the smallest one in a tie; -1 for units without a rating."""
    votes, pattern = _votes(*_class_codes(ratings, n_classes))
    return _smallest_best(votes, votes.sum(axis=1) > 0)[pattern]


def majority_ties(ratings: ArrayLike | Ratings, n_classes: int | None = None) -> int:
    """The number of units in which two or more classes have the most votes."""
    votes, pattern = _votes(*_class_codes(ratings, n_classes))
    tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return int((tied & (votes.sum(axis=1) > 0))[pattern].sum())


def dawid_skene(
    ratings: ArrayLike | Ratings,
    n_classes: int | None = None,
    *,
    smoothing: float = SMOOTHING,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> DawidSkene:
    """Maximum likelihood by EM. Each annotator has a confusion matrix; errors are independent given the true class.

    E: T_uk ~ pi_k prod_a theta[a, k, r_ua] over the annotators who rated u;
    M: pi_k = mean_u T_uk, theta[a, k, l] ~ smoothing + sum_u T_uk [r_ua = l].

    EM starts from the shares of the votes and stops when no parameter changes by more than `tolerance`.
    `smoothing` is added to every cell of the confusion matrices, so that no error has probability 0.
    `ratings` are class indices, units x annotators; -1 or NaN is missing. Equal rows are computed once.

    Reference:
        Dawid and Skene (1979). Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm.
        Applied Statistics 28(1), 20-28.
    """
    codes, classes = _class_codes(ratings, n_classes)
    if not smoothing > 0:
        raise ConfigError(f"smoothing must be above 0. Got {smoothing!r}.")
    distinct, pattern = patterns(codes)
    rated = _rated(distinct)
    if not rated.any():
        raise ConfigError("Dawid-Skene needs at least one rating")
    weights = np.bincount(pattern, minlength=len(distinct)) * rated
    chosen = _indicators(distinct, classes)
    votes = SparseTable.of_labels(distinct, classes).dense()
    posterior = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)
    annotators = codes.shape[1]
    priors, confusion = _maximise(posterior, weights, chosen, annotators, smoothing)
    converged, iteration = False, 0
    while not converged and iteration < max_iterations:
        iteration += 1
        posterior, evidence = _expect(priors, confusion, chosen)
        before = priors, confusion
        priors, confusion = _maximise(posterior, weights, chosen, annotators, smoothing)
        change = max(np.abs(priors - before[0]).max(), np.abs(confusion - before[1]).max())
        converged = bool(change <= tolerance)
    posterior, evidence = _expect(priors, confusion, chosen)
    labels = _smallest_best(posterior, rated)
    likelihood = float(weights @ evidence)
    return DawidSkene(labels[pattern], posterior[pattern], priors, confusion, iteration, converged, likelihood)


def _class_codes(ratings: ArrayLike | Ratings, n_classes: int | None) -> tuple[Codes, int]:
    if isinstance(ratings, Ratings):
        return ratings.codes, len(ratings.values) if n_classes is None else n_classes
    table = np.asarray(ratings)
    if table.ndim != 2 or table.dtype.kind not in "iuf":
        raise ConfigError("ratings must be class indices, as an array of units x annotators")
    if table.dtype.kind == "f":
        table = np.where(np.isnan(table), MISSING, table)
    codes = table.astype(np.int64)
    classes = int(codes.max(initial=0)) + 1 if n_classes is None else n_classes
    bad = (codes != table) | (codes < MISSING) | (codes >= classes)
    if bad.any():
        got = shorten(table[bad][0].item())
        raise ConfigError(f"a rating must be a class index from 0 to {classes - 1}, or -1 or NaN. Got {got}.")
    return codes, classes


def _votes(codes: Codes, classes: int) -> tuple[Vector, Codes]:
    """The class counts of each distinct set of votes, and for each unit the index of its set."""
    distinct, pattern = patterns(np.sort(codes, axis=1))
    return SparseTable.of_labels(distinct, classes).dense(), pattern


def _rated(codes: Codes) -> NDArray[np.bool_]:
    return np.asarray((codes >= 0).any(axis=1), dtype=np.bool_)


def _indicators(codes: Codes, classes: int) -> SparseTable:
    """Patterns x (annotator, class): 1 if the annotator chose the class."""
    rows, columns = np.nonzero(codes >= 0)
    cells = columns * classes + codes[rows, columns]
    return SparseTable.of_cells(rows, cells, np.ones(len(rows)), (len(codes), codes.shape[1] * classes))


def _maximise(
    posterior: Vector, weights: Codes, chosen: SparseTable, annotators: int, smoothing: float
) -> tuple[Vector, Vector]:
    weighted = posterior * weights[:, None]
    classes = posterior.shape[1]
    priors = (weighted.sum(axis=0) + smoothing) / (weights.sum() + classes * smoothing)
    counts = chosen.transposed_times(weighted).reshape(annotators, classes, classes).transpose(0, 2, 1) + smoothing
    return priors, counts / counts.sum(axis=2, keepdims=True)


def _expect(priors: Vector, confusion: Vector, chosen: SparseTable) -> tuple[Vector, Vector]:
    """The posterior of each pattern, and the logarithm of its probability."""
    classes = len(priors)
    by_choice = np.log(confusion).transpose(0, 2, 1).reshape(-1, classes)
    joint = chosen.times(by_choice) + np.log(priors)
    highest = joint.max(axis=1, keepdims=True)
    scaled = np.exp(joint - highest)
    total = scaled.sum(axis=1, keepdims=True)
    return scaled / total, (np.log(total) + highest)[:, 0]


def _smallest_best(table: Vector, rated: NDArray[np.bool_]) -> Codes:
    """The column of each row's maximum; the first one if several are equal up to rounding."""
    highest = table >= table.max(axis=1, keepdims=True) * (1 - 1e-9)
    return np.where(rated, highest.argmax(axis=1), MISSING)
