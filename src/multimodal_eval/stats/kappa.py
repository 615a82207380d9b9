"""Cohen's and Fleiss' kappa, agreement beyond chance between two or several annotators; and percent agreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.stats.ratings import MISSING, Codes, Ratings, SparseTable, as_ratings, patterns
from multimodal_eval.stats.resampling import (
    NO_PAIRS,
    ONE_LABEL,
    RESAMPLES,
    Agreement,
    Figures,
    Resampling,
    Vector,
    estimate,
    pseudo_codes,
    rare,
    ratio,
    side_by_side,
    undefined,
    with_interval,
    without_interval,
)

Weights = Literal["linear", "quadratic"]


@dataclass(frozen=True, slots=True)
class PairwiseKappas:
    """Cohen's kappa of every pair of annotators (column indices), and the mean over the pairs with a defined kappa."""

    mean: Agreement
    pairs: dict[tuple[int, int], Agreement]


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    *,
    weights: Weights | None = None,
    order: Sequence[Any] | None = None,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Agreement:
    """kappa = 1 - sum_ij w_ij p_ij / sum_ij w_ij p_i. p_.j over the units that both annotators rated.

    p_ij is the share of units that `a` labels i and `b` labels j. The weights are w_ij = [i != j], or |i - j|
    (linear) or (i - j)^2 (quadratic), where i and j are positions in the order of the labels.

    Reference:
        Cohen (1960). A Coefficient of Agreement for Nominal Scales. Weighted: Cohen (1968).
    """
    left, right = np.asarray(a), np.asarray(b)
    if left.ndim != 1 or left.shape != right.shape:
        raise ConfigError(f"two annotators must rate the same units. Got shapes {left.shape} and {right.shape}.")
    if {left.dtype.kind, right.dtype.kind} - set("biuf"):
        left, right = left.astype(object), right.astype(object)
    ratings = as_ratings(np.stack([left, right], axis=1), order)
    return pairwise_kappas(ratings, weights=weights, groups=groups, resamples=resamples, seed=seed).pairs[0, 1]


def pairwise_kappas(
    ratings: ArrayLike | Ratings,
    *,
    weights: Weights | None = None,
    order: Sequence[Any] | None = None,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairwiseKappas:
    """`cohen_kappa` of every pair of annotators, and the mean over the pairs (Light's kappa).

    All intervals come from the same resamples of the units that two or more annotators rated.

    Reference:
        Light (1971). Measures of Response Agreement for Qualitative Data. Psychological Bulletin 76, 365-377.
    """
    table = as_ratings(ratings, order)
    if weights is not None and not table.ordered:
        raise ConfigError("a weighted kappa needs numbers, or labels with an order")
    kind = "Cohen's kappa" + (f" ({weights} weights)" if weights else "")
    pairable = table.per_unit >= 2
    units = table.only(pairable)
    pairs = list(combinations(range(units.codes.shape[1]), 2))
    if not pairs or not pairable.any():
        reason = NO_PAIRS
        nothing = undefined(kind, 0, 2, reason)
        return PairwiseKappas(undefined(f"mean {kind}", 0, 0, reason), dict.fromkeys(pairs, nothing))
    distinct, pattern = patterns(units.codes)
    labels = len(table.values)
    rows = np.concatenate([distinct, pseudo_codes(units.codes, labels)])
    statistics = side_by_side([_pair_statistics(rows[:, pair], labels, weights) for pair in pairs])
    drawn, pseudo = statistics.split(len(distinct))
    plan = Resampling(resamples, seed, groups).only(pairable)
    *intervals, mean = estimate(drawn, pattern, _kappas(len(pairs), labels, weights), plan, pseudo)
    kappas = {}
    for pair, interval in zip(pairs, intervals, strict=True):
        codes = units.codes[:, pair][(units.codes[:, pair] >= 0).all(axis=1)]
        reason = ONE_LABEL if len(codes) else "no unit is rated by both"
        kappas[pair] = (
            with_interval(kind, without_interval(interval, rare(codes)), len(codes), 2)
            if interval
            else undefined(kind, len(codes), 2, reason)
        )
    name = f"mean {kind}"
    if mean is None:
        return PairwiseKappas(undefined(name, len(units.codes), units.annotators, "no pair has a kappa"), kappas)
    shown = without_interval(mean, rare(units.codes))
    return PairwiseKappas(with_interval(name, shown, len(units.codes), units.annotators), kappas)


def _pair_statistics(codes: Codes, labels: int, weights: Weights | None) -> SparseTable:
    """The disagreement and both annotators' labels for each pattern that both rated."""
    both = (codes >= 0).all(axis=1, keepdims=True)
    rated = np.where(both, codes, MISSING)
    distance = np.abs(rated[:, 0] - rated[:, 1]).astype(np.float64)
    distance = distance**2 if weights == "quadratic" else distance if weights == "linear" else np.minimum(distance, 1)
    return side_by_side(
        [distance, SparseTable.of_labels(rated[:, :1], labels), SparseTable.of_labels(rated[:, 1:], labels)]
    )


def _kappas(pairs: int, labels: int, weights: Weights | None) -> Figures:
    def kappas(totals: Vector) -> Vector:
        table = totals.reshape(len(totals), pairs, 1 + 2 * labels)
        observed, left, right = table[..., 0], table[..., 1 : 1 + labels], table[..., 1 + labels :]
        n = left.sum(axis=-1)
        values = 1 - ratio(n * observed, _expected(left, right, n, weights))
        defined = np.count_nonzero(~np.isnan(values), axis=1).astype(np.float64)
        return np.column_stack([values, ratio(np.nansum(values, axis=1), defined)])

    return kappas


def _expected(left: Vector, right: Vector, n: Vector, weights: Weights | None) -> Vector:
    """sum_ij w_ij n_i. n_.j in closed form, without a labels x labels table."""
    if weights is None:
        return np.asarray(n**2 - (left * right).sum(axis=-1))
    if weights == "linear":
        # |i - j| is the number of thresholds between i and j
        left_up_to, right_up_to = np.cumsum(left, axis=-1), np.cumsum(right, axis=-1)
        left_above, right_above = n[..., None] - left_up_to, n[..., None] - right_up_to
        return np.asarray((left_up_to * right_above + right_up_to * left_above).sum(axis=-1))
    position = np.arange(left.shape[-1], dtype=np.float64)
    squares = left @ position**2 + right @ position**2
    return np.asarray(n * squares - 2 * (left @ position) * (right @ position))


def fleiss_kappa(
    ratings: ArrayLike | Ratings,
    *,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Agreement:
    """kappa = (P - P_e) / (1 - P_e) for units that all have the same number m of ratings.

    P = mean over units of (sum_c n_uc^2 - m) / (m (m - 1)), P_e = sum_c p_c^2, p_c the share of label c.
    Units without a rating are left out. Units with different numbers of ratings are an error: use
    `krippendorff_alpha` for them.

    Reference:
        Fleiss (1971). Measuring Nominal Scale Agreement Among Many Raters. Psychological Bulletin 76, 378-382.
    """
    table = as_ratings(ratings)
    rated = table.per_unit > 0
    units = table.only(rated)
    distinct, pattern = patterns(np.sort(units.codes, axis=1))
    counts = SparseTable.of_labels(distinct, len(table.values))
    return _fleiss(counts, pattern, units.annotators, Resampling(resamples, seed, groups).only(rated))


def fleiss_kappa_of_counts(
    counts: ArrayLike,
    *,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Agreement:
    """`fleiss_kappa` of a units x labels table of how many annotators chose each label."""
    table = np.asarray(counts)
    if table.ndim != 2 or table.dtype.kind not in "iuf" or (table < 0).any() or (table != np.floor(table)).any():
        raise ConfigError("counts must be a units x labels table of non-negative whole numbers")
    rated = table.sum(axis=1) > 0
    distinct, pattern = np.unique(table[rated], axis=0, return_inverse=True)
    annotators = int(table.sum(axis=1).max(initial=0))
    plan = Resampling(resamples, seed, groups).only(rated)
    return _fleiss(SparseTable.of_dense(distinct.astype(np.float64)), pattern.reshape(-1), annotators, plan)


def _fleiss(counts: SparseTable, pattern: Codes, annotators: int, plan: Resampling) -> Agreement:
    name, n_units = "Fleiss' kappa", len(pattern)
    if not n_units:
        return undefined(name, 0, annotators, "no unit has a rating")
    raters = counts.row_sums()
    reason = unequal_raters(raters)
    if reason:
        raise ConfigError(reason)
    m = float(raters[0])
    if m < 2:
        return undefined(name, n_units, annotators, NO_PAIRS)

    def kappa(totals: Vector) -> Vector:
        agreeing, labels = totals[:, 0], totals[:, 1:]
        n = labels.sum(axis=1)
        chance = (labels**2).sum(axis=1)
        # (P - P_e) / (1 - P_e) with P = agreeing / (n (m - 1)) and P_e = chance / n^2
        return (1 - ratio(n**2 - agreeing * n / (m - 1), n**2 - chance))[:, None]

    labels = counts.shape[1]
    pseudo = SparseTable.of_labels(pseudo_codes(np.zeros((1, int(m)), dtype=np.int64), labels), labels)
    drawn, others = (side_by_side([table.squared().row_sums() - m, table]) for table in (counts, pseudo))
    (interval,) = estimate(drawn, pattern, kappa, plan, others)
    if interval is None:
        return undefined(name, n_units, annotators, ONE_LABEL)
    totals = counts.totals(np.bincount(pattern, minlength=counts.shape[0]).astype(np.float64))
    reason = rare(np.repeat(np.arange(labels), totals.astype(np.int64)))
    return with_interval(name, without_interval(interval, reason), n_units, annotators)


def unequal_raters(raters: NDArray[Any]) -> str | None:
    """Why Fleiss' kappa is undefined for units with these numbers of ratings; None if it is defined."""
    least, most = int(raters.min()), int(raters.max())
    if least == most:
        return None
    needs = "Fleiss' kappa needs the same number for every unit; Krippendorff's alpha allows missing ratings"
    return f"units have {least} to {most} ratings, but {needs}"


# Percent agreement: how often two ratings of the same unit are equal, not corrected for chance.

NAME = "percent agreement"


@dataclass(frozen=True, slots=True)
class PercentAgreement:
    """Percent agreement over all pairs of ratings, and for each annotator (column) over their pairs."""

    overall: Agreement
    annotators: tuple[Agreement, ...]


def percent_agreement(
    ratings: ArrayLike | Ratings,
    *,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PercentAgreement:
    """sum_u (equal pairs of ratings of u) / sum_u m_u (m_u - 1) / 2; for an annotator, over their pairs."""
    table = as_ratings(ratings)
    pairable = table.per_unit >= 2
    units = table.only(pairable)
    columns = units.codes.shape[1]
    if not pairable.any():
        nothing = undefined(NAME, 0, 0, NO_PAIRS)
        return PercentAgreement(nothing, (nothing,) * columns)
    distinct, pattern = patterns(units.codes)
    rows = np.concatenate([distinct, pseudo_codes(units.codes, max(2, len(table.values)))])
    drawn, pseudo = side_by_side(_pairs(rows)).split(len(distinct))
    plan = Resampling(resamples, seed, groups).only(pairable)

    def shares(totals: Vector) -> Vector:
        equal, total = totals[:, :columns], totals[:, columns:]
        overall = ratio(equal.sum(axis=1), total.sum(axis=1))
        return np.column_stack([overall, ratio(equal, total)])

    overall, *by_annotator = estimate(drawn, pattern, shares, plan, pseudo)
    assert overall is not None  # some unit has two ratings
    rated_units = (units.codes >= 0).sum(axis=0)
    annotators = tuple(
        with_interval(NAME, interval, int(rated), units.annotators)
        if interval
        else undefined(NAME, 0, units.annotators, "shares no unit with another annotator")
        for interval, rated in zip(by_annotator, rated_units, strict=True)
    )
    return PercentAgreement(with_interval(NAME, overall, len(units.codes), units.annotators), annotators)


def _pairs(codes: Codes) -> tuple[Vector, Vector]:
    """For each pattern and annotator: the number of equal other ratings, and of all other ratings."""
    rated = codes >= 0
    total = rated * (rated.sum(axis=1, keepdims=True) - 1).astype(np.float64)
    equal = np.zeros(codes.shape)
    for column in range(codes.shape[1]):
        rating = codes[:, column : column + 1]
        equal[:, column] = ((codes == rating) & (rating >= 0)).sum(axis=1) - rated[:, column]
    return equal, total
