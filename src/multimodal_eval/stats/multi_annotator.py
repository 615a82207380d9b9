"""Classification scored against several annotators: strict, any-match, majority vote, soft; any taxonomy.

Everything works on whole-number codes: `predicted` (n,), `gold` (n,) and `annotations` (n, annotators), a code being an
index into the taxonomy's `labels` and -1 "no label of the taxonomy". Rows without a valid gold label are skipped and
counted; a prediction outside the taxonomy is wrong and charged to the gold label alone. "Alphabetical" is the order of
`sorted(labels)`, whatever the order of the codes.

With p the prediction and G the set of valid labels that annotators gave, the golds that a row counts for are

    strict           {the one gold label}
    any-match        {p} where p in G, else {the alphabetically first of G}     (charge "first")
                     {p} where p in G, else all of G                            (charge "all")
    majority vote    {the label given most often, ties broken alphabetically}

and every score is made of three additive statistics a class k: hits H_k (rows with p = k a gold), gold N_k (rows that
count k as a gold) and predicted P_k (scored rows with p = k):

    precision_k = H_k / P_k    recall_k = H_k / N_k    F_k = 2 H_k / D_k,  D_k = N_k + P_k    macro F1 = (1/K) sum_k F_k

over all K labels of the taxonomy, 0 where a denominator is 0. Under charge "all" a miss costs one false negative of
every gold label and one false positive, so N_k = H_k + FN_k still holds and the formula stays the same (it is
scikit-learn's of a multi-label indicator); the sum of N_k may exceed the number of rows. The influence values are those
of macro_f1.py with an indicator of a set in place of that of the gold label:

    psi_i = (n/K) sum_k [ 2 h_ik - F_k (g_ik + p_ik) ] / D_k
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
from multimodal_eval.stats.intervals import Interval, interval, t_interval, wilson_interval
from multimodal_eval.stats.jensen_shannon import jensen_shannon
from multimodal_eval.stats.macro_f1 import FEW_GOLD

Charge = Literal["first", "all"]
Codes = NDArray[np.int64]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

NONE = -1


@dataclass(frozen=True, slots=True)
class ClassificationScores:
    """One way of scoring, over the rows that have a gold label (`kept`, a mask of all rows).

    `right` says of each kept row whether it counts as correct. `confusion[g, p]` counts kept rows by effective gold and
    prediction; a prediction outside the taxonomy has no column, so a row's sum is the class's gold minus those.
    Under charge "all" a miss stands in the row of every gold label.
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
        """Rows that count."""
        return len(self.right)

    @property
    def n_skipped(self) -> int:
        """Rows without a gold label."""
        return len(self.kept) - len(self.right)

    @property
    def accuracy(self) -> Estimate:
        """The share of kept rows that are right."""
        share = int(np.count_nonzero(self.right)) / len(self.right)
        return Estimate(share, self.right.astype(np.float64) - share)

    @property
    def precision(self) -> Vector:
        """By class; 0 where the class was never predicted."""
        return _ratio(self.hits, self.predicted)

    @property
    def recall(self) -> Vector:
        """By class; 0 where the class is never gold."""
        return _ratio(self.hits, self.gold)

    @property
    def f1(self) -> Vector:
        """By class; 0 where the class is neither gold nor predicted."""
        return _ratio(2 * self.hits, self.gold + self.predicted)

    @property
    def per_class(self) -> dict[str, dict[str, float]]:
        """Label -> precision, recall, F1, its gold rows (`support`) and its predicted rows."""
        columns = {
            "precision": self.precision.tolist(),
            "recall": self.recall.tolist(),
            "f1": self.f1.tolist(),
            "support": self.gold.tolist(),
            "predicted": self.predicted.tolist(),
        }
        return {label: {key: own[k] for key, own in columns.items()} for k, label in enumerate(self.labels)}

    @property
    def few_gold(self) -> list[str]:
        """Classes with gold examples too few for the interval of macro F1 to be trusted."""
        return [label for label, count in zip(self.labels, self.gold.tolist(), strict=True) if count < FEW_GOLD]

    def macro_f1_interval(self, clusters: Codes | None = None) -> Interval:
        """The t interval of macro F1; `clusters` are codes of ALL rows."""
        return t_interval(self.macro_f1, _of_kept(clusters, self.kept))

    def accuracy_interval(self, clusters: Codes | None = None) -> Interval:
        """Wilson's interval of the accuracy; `clusters` are codes of ALL rows."""
        return wilson_interval(self.accuracy, _of_kept(clusters, self.kept))


@dataclass(frozen=True, slots=True)
class SoftScores:
    """A mean over the rows that annotators labelled: shares of annotators, or distances of distributions."""

    kept: Mask
    values: Vector  # one a kept row

    @property
    def n_skipped(self) -> int:
        """Rows that no annotator labelled."""
        return len(self.kept) - len(self.values)

    @property
    def mean(self) -> Estimate:
        """The score."""
        return mean_estimate(Rows(self.values))

    def interval(self, clusters: Codes | None = None) -> Interval:
        """The interval of the mean; `clusters` are codes of ALL rows."""
        return interval(self.mean, _of_kept(clusters, self.kept), values=self.values)


@dataclass(frozen=True, slots=True)
class HumanCeiling:
    """Each annotator scored against the others by the any-match rule, and the mean over annotators.

    `by_annotator` has None for an annotator who shares no row with another.
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
    """Against the one gold label a row; rows without one are skipped."""
    said, right = _codes("predicted", predicted, labels, 1), _codes("gold", gold, labels, 1)
    _same_length(predicted=said, gold=right)
    kept = right >= 0
    _refuse_nothing(kept, "no row has a gold label of the taxonomy")
    return _scores(labels, kept, said[kept], right[kept], None)


def score_any_match(
    predicted: ArrayLike, annotations: ArrayLike, labels: Sequence[str], *, charge: Charge = "first"
) -> ClassificationScores:
    """Right where any annotator agrees; rows without a valid annotation are skipped."""
    if charge not in get_args(Charge):
        raise ConfigError(f"the option `charge` must be first or all. Got {charge!r} instead.")
    said, given = _codes("predicted", predicted, labels, 1), _codes("annotations", annotations, labels, 2)
    _same_length(predicted=said, annotations=given)
    kept = np.count_nonzero(given >= 0, axis=1) > 0
    _refuse_nothing(kept, "no annotator has given a label of the taxonomy")
    said, given = _where(kept, said), _where(kept, given)
    gold = effective_gold(said, given, labels)
    return _scores(labels, kept, said, gold, given if charge == "all" else None)


def effective_gold(predicted: Codes, annotations: Codes, labels: Sequence[str]) -> Codes:
    """The prediction where any annotator gave it, else the alphabetically first label given; -1 where none was."""
    hit = ((annotations == predicted[:, None]).any(axis=1)) & (predicted >= 0)
    return np.where(hit, predicted, _first(annotations, labels))


def majority_codes(annotations: ArrayLike, labels: Sequence[str]) -> Codes:
    """The label that annotators gave most often, each of them counting; ties broken alphabetically; -1 without any."""
    given = _codes("annotations", annotations, labels, 2)
    by_rank, ranks = _alphabet(labels)
    if not given.shape[1]:
        return np.full(len(given), NONE, dtype=np.int64)
    return by_rank[majority_vote(np.where(given >= 0, ranks[given], NONE), len(labels))]


def score_majority(predicted: ArrayLike, annotations: ArrayLike, labels: Sequence[str]) -> ClassificationScores:
    """Strict scoring against the majority vote."""
    gold = majority_codes(annotations, labels)
    _refuse_nothing(gold >= 0, "no annotator has given a label of the taxonomy")
    return score_strict(predicted, gold, labels)


def score_soft(predicted: ArrayLike, annotations: ArrayLike, labels: Sequence[str]) -> SoftScores:
    """The share of the valid annotations that are the predicted label, row by row."""
    said, given = _codes("predicted", predicted, labels, 1), _codes("annotations", annotations, labels, 2)
    _same_length(predicted=said, annotations=given)
    answered = np.count_nonzero(given >= 0, axis=1)
    kept = answered > 0
    _refuse_nothing(kept, "no annotator has given a label of the taxonomy")
    agreeing = np.count_nonzero((given == said[:, None]) & (given >= 0), axis=1)
    return SoftScores(kept, agreeing[kept] / answered[kept])


def score_distributions(distributions: ArrayLike, annotations: ArrayLike, labels: Sequence[str]) -> SoftScores:
    """The Jensen-Shannon distance (nats, lower is better) of predicted distributions (n, K) to the annotators'."""
    given = _codes("annotations", annotations, labels, 2)
    predicted = np.asarray(distributions, dtype=np.float64)
    if predicted.shape != (len(given), len(labels)):
        wanted = f"{len(given)} rows of {len(labels)} shares"
        raise ConfigError(f"the predicted distributions must be {wanted}. Got an array of shape {predicted.shape}.")
    kept = np.count_nonzero(given >= 0, axis=1) > 0
    _refuse_nothing(kept, "no annotator has given a label of the taxonomy")
    return SoftScores(kept, jensen_shannon(predicted[kept], annotator_shares(given[kept], len(labels))))


def annotator_shares(annotations: Codes, classes: int) -> Vector:
    """The distribution of each row's valid annotations over the classes; zeros where there is none."""
    rows, columns = np.nonzero(annotations >= 0)
    counts = np.bincount(rows * classes + annotations[rows, columns], minlength=len(annotations) * classes)
    table = counts.reshape(len(annotations), classes).astype(np.float64)
    total = table.sum(axis=1, keepdims=True)
    shares: Vector = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    return shares


def human_ceiling(annotations: ArrayLike, labels: Sequence[str], *, charge: Charge = "first") -> HumanCeiling | None:
    """The mean over annotators, each scored against the others by the any-match rule; None where no two share a row.

    With A annotators who can be scored, on n_j of the n rows each, psi_i = (1/A) sum_j (n / n_j) psi_ij.
    """
    given = _codes("annotations", annotations, labels, 2)
    scored: list[ClassificationScores | None] = []
    for annotator in range(given.shape[1]):
        others = np.delete(given, annotator, axis=1)
        mine = given[:, annotator] >= 0
        kept = mine & (others >= 0).any(axis=1)
        if not kept.any():
            scored.append(None)
            continue
        own = score_any_match(given[kept, annotator], others[kept], labels, charge=charge)
        scored.append(replace(own, kept=kept))  # said of all rows
    present = [one for one in scored if one is not None]
    if not present:
        return None
    return HumanCeiling(
        tuple(scored),
        _mean_of_estimates([(one.macro_f1, one.kept) for one in present]),
        _mean_of_estimates([(one.accuracy, one.kept) for one in present]),
    )


def macro_f1_of_sums(sums: Vector) -> float:
    """Macro F1 of summed statistics: hits, gold and predicted of each class, one after the other."""
    hits, gold, predicted = sums.reshape(3, -1)
    return float(_ratio(2 * hits, gold + predicted).mean())


def macro_f1_gradient(sums: Vector) -> Vector:
    """d macro F1 / d statistics: 2/(K D_k) by H_k, -F_k/(K D_k) by N_k and by P_k; 0 for classes that do not occur."""
    hits, gold, predicted = sums.reshape(3, -1)
    sizes = gold + predicted
    share = _ratio(np.ones_like(sizes), sizes) / len(sizes)
    by_size = -_ratio(2 * hits, sizes) * share
    return np.concatenate([2 * share, by_size, by_size])


def row_statistics(predicted: int, golds: Sequence[int], classes: int) -> tuple[float, ...]:
    """The additive statistics of one row that counts for these golds."""
    table = [0.0] * (3 * classes)
    for gold in golds:
        table[classes + gold] = 1.0
    if predicted >= 0:
        table[2 * classes + predicted] = 1.0
        table[predicted] = float(predicted in golds)
    return tuple(table)


def golds_of_row(
    predicted: int, annotations: Sequence[int], labels: Sequence[str], *, charge: Charge = "first"
) -> list[int]:
    """What one row counts for under any-match; empty where no annotator gave a label."""
    given = sorted({code for code in annotations if code >= 0}, key=lambda code: labels[code])
    if predicted in given:
        return [predicted]
    return given if charge == "all" else given[:1]


def _scores(
    labels: Sequence[str], kept: Mask, predicted: Codes, gold: Codes, sets: Codes | None
) -> ClassificationScores:
    """The scores of kept rows with one gold each; a miss counts for every label of its row in `sets`, if given."""
    classes, rows = len(labels), len(gold)
    right = predicted == gold
    owners, charged = np.arange(rows), gold
    if sets is not None:
        missed = np.flatnonzero(~right)
        row, code = _distinct(sets[missed])
        owners, charged = np.concatenate([np.flatnonzero(right), missed[row]]), np.concatenate([gold[right], code])
    hits, sizes = _counts(gold[right], classes), _counts(charged, classes)
    guesses = _counts(predicted, classes)
    pairs = predicted[owners] >= 0
    cells = charged[pairs] * classes + predicted[owners[pairs]]
    confusion = np.bincount(cells, minlength=classes * classes).reshape(classes, classes).astype(np.int64)
    share = _ratio(np.ones(classes), sizes + guesses)
    loss = _ratio(2 * hits, sizes + guesses) * share
    influence: Vector = -np.bincount(owners, weights=loss[charged], minlength=rows).astype(np.float64)
    influence[right] += 2 * share[gold[right]]
    influence -= np.append(loss, 0.0)[predicted]  # code -1 takes the last, which is 0
    value = float(_ratio(2 * hits, sizes + guesses).mean())
    estimate = Estimate(value, influence * (rows / classes), corrected=False)
    return ClassificationScores(tuple(labels), kept, right, hits, sizes, guesses, confusion, estimate)


def _distinct(annotations: Codes) -> tuple[Codes, Codes]:
    """(row, code) of each label that a row holds, once a row."""
    ordered = np.sort(annotations, axis=1)
    fresh = ordered >= 0
    fresh[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    rows, columns = np.nonzero(fresh)
    return rows, ordered[rows, columns]


def _first(annotations: Codes, labels: Sequence[str]) -> Codes:
    by_rank, ranks = _alphabet(labels)
    if not annotations.shape[1]:
        return np.full(len(annotations), NONE, dtype=np.int64)
    first: Codes = by_rank[ranks[annotations].min(axis=1)]
    return first


def _alphabet(labels: Sequence[str]) -> tuple[Codes, Codes]:
    """Codes by alphabetical rank, and ranks by code; code -1 has the rank K and the rank K the code -1."""
    order = sorted(range(len(labels)), key=lambda code: labels[code])
    ranks = np.empty(len(labels) + 1, dtype=np.int64)
    ranks[order], ranks[NONE] = np.arange(len(labels)), len(labels)
    return np.array([*order, NONE], dtype=np.int64), ranks


def _mean_of_estimates(found: Sequence[tuple[Estimate, Mask]]) -> Estimate:
    rows = len(found[0][1])
    influence = np.zeros(rows)
    for estimate, kept in found:
        influence[kept] += estimate.influence * (rows / len(estimate.influence) / len(found))
    return Estimate(fsum(estimate.value for estimate, _ in found) / len(found), influence, corrected=False)


def _codes(name: str, values: ArrayLike, labels: Sequence[str], dimensions: int) -> Codes:
    """The codes as whole numbers, every negative one -1."""
    if len(set(labels)) < len(labels) or not labels:
        raise ConfigError(f"a taxonomy names at least one label, and each once. Got {list(labels)!r}.")
    table = np.asarray(values)
    if table.ndim != dimensions:
        raise ConfigError(f"`{name}` must have {dimensions} dimension{'s'[: dimensions - 1]}. Got {table.ndim}.")
    if table.size and table.dtype.kind not in "iu":
        raise ConfigError(f"`{name}` must hold whole-number codes. Got {table.dtype}.")
    if table.size and int(table.max()) >= len(labels):
        raise ConfigError(f"`{name}` holds the code {int(table.max())}, and there are {len(labels)} labels.")
    codes = table.astype(np.int64, copy=False)
    return np.maximum(codes, NONE) if codes.size and int(codes.min()) < NONE else codes


def _same_length(**tables: Codes) -> None:
    lengths = {name: len(table) for name, table in tables.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError([Problem(code="LENGTH", message=f"the rows differ in number: {told}")])


def _refuse_nothing(kept: Mask, message: str) -> None:
    if not kept.any():
        raise InputError([Problem(code="NOTHING_TO_SCORE", message=message)])


def _where(kept: Mask, table: Codes) -> Codes:
    """Some rows; the table itself where it is all of them, since copying a million rows costs."""
    return table if kept.all() else table[kept]


def _of_kept(clusters: Codes | None, kept: Mask) -> Codes | None:
    return None if clusters is None else clusters[kept]


def _counts(codes: Codes, classes: int) -> Codes:
    known = codes[codes >= 0]
    return np.bincount(known, minlength=classes).astype(np.int64)


def _ratio(over: ArrayLike, under: ArrayLike) -> Vector:
    below = np.asarray(under, dtype=np.float64)
    above = np.asarray(over, dtype=np.float64)
    return np.divide(above, below, out=np.zeros(len(below)), where=below > 0)
