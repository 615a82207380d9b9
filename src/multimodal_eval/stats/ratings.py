"""Ratings of units by annotators as arrays of codes, the input of every agreement statistic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval.core.errors import ConfigError, did_you_mean, shorten
from multimodal_eval.core.metric import is_number

Codes = NDArray[np.int64]
MISSING = -1


@dataclass(frozen=True, slots=True)
class Ratings:
    """One row per unit, one column per annotator; a code is an index into `values`, -1 if there is no rating."""

    codes: Codes
    values: NDArray[Any]  # numbers or strings, in ascending order
    ordered: bool  # whether the order of `values` is meaningful

    @property
    def per_unit(self) -> Codes:
        """The number of ratings of each unit."""
        return np.asarray(np.count_nonzero(self.codes >= 0, axis=1), dtype=np.int64)

    def only(self, units: NDArray[np.bool_]) -> Ratings:
        """The ratings of the selected units."""
        return Ratings(self.codes[units], self.values, self.ordered)

    @property
    def annotators(self) -> int:
        """The number of annotators with at least one rating."""
        return int(np.count_nonzero((self.codes >= 0).any(axis=0)))


def as_ratings(ratings: ArrayLike | Ratings, order: Sequence[Any] | None = None) -> Ratings:
    """Ratings from an array of units x annotators.

    Missing ratings are NaN among numbers, and None, NaN or "" among strings. `order` lists every label, lowest
    first. By default, numbers are in numerical order, and strings are sorted but not considered ordered.
    """
    if isinstance(ratings, Ratings):
        return ratings
    table = np.asarray(ratings)
    if table.ndim != 2:
        raise ConfigError(f"ratings must be an array of units x annotators. Got {table.ndim} dimensions instead.")
    present = _present(table)
    items = table[present]
    if table.dtype.kind not in "biuf":
        items = _of_one_kind(items)
    values, codes = np.unique(items, return_inverse=True)
    ordered = values.dtype.kind in "biuf"
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ConfigError("ratings must be finite numbers, or NaN if missing. Got infinity.")
    if order is not None:
        values, codes = _in_order(values, codes, order)
        ordered = True
    full = np.full(table.shape, MISSING, dtype=np.int64)
    full[present] = codes.reshape(-1)
    return Ratings(full, values, ordered)


def _present(table: NDArray[Any]) -> NDArray[np.bool_]:
    """A mask of the cells with a rating."""
    if table.dtype.kind in "biu":
        return np.ones(table.shape, dtype=np.bool_)
    if table.dtype.kind == "f":
        return np.asarray(~np.isnan(table), dtype=np.bool_)
    filled = [item is not None and item == item and item != "" for item in table.ravel().tolist()]
    return np.array(filled, dtype=np.bool_).reshape(table.shape)


def _of_one_kind(objects: NDArray[Any]) -> NDArray[Any]:
    """Objects as strings or as numbers; a mixture has no order and is an error."""
    items = objects.tolist()
    strings = [item for item in items if isinstance(item, str)]
    if len(strings) == len(items):
        return np.array(items, dtype=str)
    non_strings = [item for item in items if not isinstance(item, str)]
    if strings:
        raise ConfigError(f"ratings mix strings and other values: {shorten(strings[0])} and {shorten(non_strings[0])}")
    for item in non_strings:
        if not is_number(item):
            raise ConfigError(f"a rating must be a number or a string. Got {shorten(item)} instead.")
    return np.array(non_strings, dtype=np.float64)


def _in_order(values: NDArray[Any], codes: Codes, order: Sequence[Any]) -> tuple[NDArray[Any], Codes]:
    positions = {label: index for index, label in enumerate(order)}
    if len(positions) < len(order):
        raise ConfigError(f"the order lists a label twice: {shorten(list(order))}")
    for value in values.tolist():
        if value not in positions:
            raise ConfigError(f"the label {value!r} is not in the order.{did_you_mean(value, list(map(str, order)))}")
    new_codes = np.array([positions[value] for value in values.tolist()], dtype=np.int64)
    return np.array(order), new_codes[codes.reshape(-1)]


def patterns(codes: Codes) -> tuple[Codes, Codes]:
    """The distinct rows, sorted, and for each unit the index of its row.

    A million units with three annotators and nine labels have at most a thousand patterns, so computing
    statistics once per pattern is cheap.
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
