"""Ratings as arrays: what annotators said of units, with gaps, in the form that every agreement figure starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval.core.errors import ConfigError, did_you_mean, shorten
from multimodal_eval.core.metric import is_number

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Codes = NDArray[np.int64]
MISSING = -1


@dataclass(frozen=True, slots=True)
class Ratings:
    """One row a unit, one column an annotator; a code is an index into `values`, -1 where there is no rating."""

    codes: Codes
    values: NDArray[Any]  # numbers or texts, from the lowest to the highest
    ordered: bool  # whether the order of `values` means anything

    @property
    def per_unit(self) -> Codes:
        """How many ratings each unit has."""
        return np.asarray(np.count_nonzero(self.codes >= 0, axis=1), dtype=np.int64)

    def only(self, units: NDArray[np.bool_]) -> Ratings:
        """The ratings of some units."""
        return Ratings(self.codes[units], self.values, self.ordered)

    @property
    def annotators(self) -> int:
        """How many annotators rated anything."""
        return int(np.count_nonzero((self.codes >= 0).any(axis=0)))


def as_ratings(ratings: ArrayLike | Ratings, order: Sequence[Any] | None = None) -> Ratings:
    """Ratings from an array of units x annotators.

    Missing is NaN among numbers, and None, NaN or "" among texts. `order` lists every label, the lowest
    first; without it numbers stand in their order and texts in the alphabet's, which says nothing.
    """
    if isinstance(ratings, Ratings):
        return ratings
    table = np.asarray(ratings)
    if table.ndim != 2:
        raise ConfigError(f"ratings must be an array of units x annotators. Got {table.ndim} dimensions instead.")
    present = _present(table)
    given = table[present]
    if table.dtype.kind not in "biuf":
        given = _of_one_kind(given)
    values, codes = np.unique(given, return_inverse=True)
    ordered = values.dtype.kind in "biuf"
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ConfigError("ratings must be finite numbers; NaN stands for a missing one. Got infinity.")
    if order is not None:
        values, codes = _in_order(values, codes, order)
        ordered = True
    full = np.full(table.shape, MISSING, dtype=np.int64)
    full[present] = codes.reshape(-1)
    return Ratings(full, values, ordered)


def _present(table: NDArray[Any]) -> NDArray[np.bool_]:
    """Where there is a rating."""
    if table.dtype.kind in "biu":
        return np.ones(table.shape, dtype=np.bool_)
    if table.dtype.kind == "f":
        return np.asarray(~np.isnan(table), dtype=np.bool_)
    filled = [item is not None and item == item and item != "" for item in table.ravel().tolist()]
    return np.array(filled, dtype=np.bool_).reshape(table.shape)


def _of_one_kind(given: NDArray[Any]) -> NDArray[Any]:
    """Objects as texts or as numbers; a mixture has no order and is refused."""
    items = given.tolist()
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) == len(items):
        return np.array(items, dtype=str)
    others = [item for item in items if not isinstance(item, str)]
    if texts:
        raise ConfigError(f"ratings mix texts and other values: {shorten(texts[0])} and {shorten(others[0])}")
    for item in others:
        if not is_number(item):
            raise ConfigError(f"a rating must be a number or a text. Got {shorten(item)} instead.")
    return np.array(others, dtype=np.float64)


def _in_order(values: NDArray[Any], codes: Codes, order: Sequence[Any]) -> tuple[NDArray[Any], Codes]:
    place = {label: index for index, label in enumerate(order)}
    if len(place) < len(order):
        raise ConfigError(f"the order names a label twice: {shorten(list(order))}")
    for value in values.tolist():
        if value not in place:
            raise ConfigError(f"the label {value!r} is not in the order.{did_you_mean(value, list(map(str, order)))}")
    to_place = np.array([place[value] for value in values.tolist()], dtype=np.int64)
    return np.array(order), to_place[codes.reshape(-1)]


def patterns(codes: Codes) -> tuple[Codes, Codes]:
    """The distinct rows, sorted, and the index of each unit's row.

    A million units with three annotators and nine labels have at most a thousand patterns: what is
    computed once a pattern costs next to nothing.
    """
    if not len(codes):
        return codes, np.zeros(0, dtype=np.int64)
    base = int(codes.max()) + 2  # one more for a missing rating
    if base ** codes.shape[1] < 2**63:
        powers = np.array([base**exponent for exponent in reversed(range(codes.shape[1]))], dtype=np.int64)
        _, first, inverse = np.unique((codes + 1) @ powers, return_index=True, return_inverse=True)
        return codes[first], inverse
    rows, inverse = np.unique(codes, axis=0, return_inverse=True)
    return rows, inverse.reshape(-1)


def label_counts(codes: Codes, labels: int) -> csr_array:
    """n_uc: how often each label occurs in each row, as a sparse matrix rows x labels."""
    from scipy.sparse import csr_array

    rows, columns = np.nonzero(codes >= 0)
    ones = np.ones(len(rows))
    counts = csr_array((ones, (rows, codes[rows, columns])), shape=(len(codes), labels))
    counts.sum_duplicates()
    return counts
