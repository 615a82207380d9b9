"""Percent agreement: how often two ratings of the same unit are equal, not corrected for chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from multimodal_eval.stats.ratings import Codes, Ratings, as_ratings, patterns
from multimodal_eval.stats.resampling import (
    NO_PAIRS,
    RESAMPLES,
    Agreement,
    Resampling,
    Vector,
    estimate,
    ratio,
    side_by_side,
    undefined,
    with_interval,
)

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
    equal, total = _pairs(distinct)
    plan = Resampling(resamples, seed, groups).only(pairable)

    def shares(totals: Vector) -> Vector:
        equal, total = totals[:, :columns], totals[:, columns:]
        overall = ratio(equal.sum(axis=1), total.sum(axis=1))
        return np.column_stack([overall, ratio(equal, total)])

    overall, *by_annotator = estimate(side_by_side([equal, total]), pattern, shares, plan)
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
