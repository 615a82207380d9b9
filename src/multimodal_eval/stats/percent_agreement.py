"""Percent agreement: how often two ratings of one unit are the same, chance not taken into account."""

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
    """Over all pairs of ratings, and over the pairs that each annotator (column) is part of."""

    overall: Agreement
    annotators: tuple[Agreement, ...]


def percent_agreement(
    ratings: ArrayLike | Ratings,
    *,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PercentAgreement:
    """sum_u (equal pairs of ratings of u) / sum_u m_u (m_u - 1) / 2; for an annotator, over their own pairs."""
    given = as_ratings(ratings)
    pairable = given.per_unit >= 2
    units = given.only(pairable)
    columns = units.codes.shape[1]
    if not pairable.any():
        nothing = undefined(NAME, 0, 0, NO_PAIRS)
        return PercentAgreement(nothing, (nothing,) * columns)
    distinct, pattern = patterns(units.codes)
    equal, met = _pairs(distinct)
    plan = Resampling(resamples, seed, groups).only(pairable)

    def shares(totals: Vector) -> Vector:
        equal, met = totals[:, :columns], totals[:, columns:]
        overall = ratio(equal.sum(axis=1), met.sum(axis=1))
        return np.column_stack([overall, ratio(equal, met)])

    overall, *own = estimate(side_by_side([equal, met]), pattern, shares, plan)
    assert overall is not None  # some unit has two ratings
    units_of = (units.codes >= 0).sum(axis=0)
    annotators = tuple(
        with_interval(NAME, interval, int(rated), units.annotators)
        if interval
        else undefined(NAME, 0, units.annotators, "rated no unit that another annotator rated")
        for interval, rated in zip(own, units_of, strict=True)
    )
    return PercentAgreement(with_interval(NAME, overall, len(units.codes), units.annotators), annotators)


def _pairs(codes: Codes) -> tuple[Vector, Vector]:
    """Of each pattern and annotator: the other ratings that are the same, and the other ratings."""
    rated = codes >= 0
    met = rated * (rated.sum(axis=1, keepdims=True) - 1).astype(np.float64)
    equal = np.zeros(codes.shape)
    for column in range(codes.shape[1]):
        own = codes[:, column : column + 1]
        equal[:, column] = ((codes == own) & (own >= 0)).sum(axis=1) - rated[:, column]
    return equal, met
