"""Ratings of units by annotators as arrays of codes, the input of every agreement statistic, and sparse tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multimodal_eval._native import summed_rows, table_times
from multimodal_eval.core.errors import ConfigError, did_you_mean, shorten
from multimodal_eval.core.metric import is_number

__all__ = ["SparseTable"]


# A sparse table of numbers: few entries per row, and the sums that agreement statistics need.
#
# Sums are in the order of the rows, so that every machine gives the same digits.

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SparseTable:
    """Row r has the entries from starts[r] to starts[r + 1], each with a column and a value, in ascending columns."""

    starts: Indices
    columns: Indices
    values: Vector
    width: int

    @classmethod
    def of_labels(cls, codes: Indices, labels: int) -> SparseTable:
        """n_uc: how often each label occurs in each row of codes; negative codes are missing."""
        if len(codes) * labels <= 16 * codes.size:  # few labels: count in a dense table
            cells = (codes + np.arange(len(codes))[:, None] * labels)[codes >= 0]
            return cls.of_dense(np.bincount(cells, minlength=len(codes) * labels).reshape(len(codes), labels))
        ordered = np.sort(codes, axis=1)
        is_first = ordered >= 0
        is_first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
        places = np.flatnonzero(is_first.reshape(-1))
        # A label ends where the next one begins, or with its row.
        ends = np.minimum(np.append(places[1:], ordered.size), (places // max(codes.shape[1], 1) + 1) * codes.shape[1])
        starts = _starts(np.count_nonzero(is_first, axis=1))
        return cls(starts, ordered.reshape(-1)[places].astype(np.int64), (ends - places).astype(np.float64), labels)

    @classmethod
    def of_dense(cls, table: Vector | Indices) -> SparseTable:
        """The entries of an array that are not 0; a vector becomes one column."""
        dense = table[:, None] if table.ndim == 1 else table
        places = np.flatnonzero(dense != 0)
        starts = np.searchsorted(places, np.arange(len(dense) + 1) * dense.shape[1])
        return cls(starts, places % dense.shape[1], dense.reshape(-1)[places].astype(np.float64), dense.shape[1])

    @classmethod
    def of_cells(cls, rows: Indices, columns: Indices, values: Vector, shape: tuple[int, int]) -> SparseTable:
        """From entries in ascending rows, with no cell twice."""
        starts = _starts(np.bincount(rows, minlength=shape[0]))
        return cls(starts, columns.astype(np.int64), np.asarray(values, dtype=np.float64), shape[1])

    @classmethod
    def side_by_side(cls, tables: Sequence[SparseTable]) -> SparseTable:
        """The columns of several tables with the same rows."""
        starts = np.sum([table.starts for table in tables], axis=0)
        columns, values = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1], dtype=np.float64)
        first, width = starts[:-1].copy(), 0  # where the next entry of each row goes
        for table in tables:
            places = np.arange(len(table.values)) + np.repeat(first - table.starts[:-1], table.per_row)
            columns[places], values[places] = table.columns + width, table.values
            first += table.per_row
            width += table.width
        return cls(starts, columns, values, width)

    def split(self, rows: int) -> tuple[SparseTable, SparseTable]:
        """The first rows, and the others."""
        cut = int(self.starts[rows])
        return (
            SparseTable(self.starts[: rows + 1], self.columns[:cut], self.values[:cut], self.width),
            SparseTable(self.starts[rows:] - cut, self.columns[cut:], self.values[cut:], self.width),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.starts) - 1, self.width

    @property
    def per_row(self) -> Indices:
        """The number of entries of each row."""
        return np.diff(self.starts)

    @property
    def rows(self) -> Indices:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), self.per_row)

    def dense(self) -> Vector:
        """The whole table as an array."""
        dense = np.zeros(self.shape[0] * self.width)
        dense[self.rows * self.width + self.columns] = self.values
        return dense.reshape(self.shape)

    def squared(self) -> SparseTable:
        """Every entry squared."""
        return SparseTable(self.starts, self.columns, self.values**2, self.width)

    def row_sums(self) -> Vector:
        """The sum of each row."""
        return self.times(np.ones(self.width))

    def times(self, dense: Vector) -> Vector:
        """The table times an array or a vector."""
        return self._product(dense, transposed=False)

    def transposed_times(self, dense: Vector) -> Vector:
        """The transposed table times an array or a vector."""
        return self._product(dense, transposed=True)

    def totals(self, weights: Vector) -> Vector:
        """The weighted sums of the rows, for a vector of weights or for each row of an array."""
        return self.transposed_times(weights.T).T

    def summed(self, weights: SparseTable) -> SparseTable:
        """For each row of sparse weights, the weighted sum of the rows. The columns of its rows are in any order."""
        entries = weights.starts, weights.columns, weights.values
        return SparseTable(*summed_rows(*entries, self.starts, self.columns, self.values, self.width), self.width)

    def _product(self, dense: Vector, *, transposed: bool) -> Vector:
        factor = np.ascontiguousarray(dense, dtype=np.float64)
        rows = len(self.starts) - 1 if not transposed else self.width
        if factor.ndim == 2 and factor.shape[1] == 0:
            return np.zeros((rows, 0))
        matrix = factor[:, None] if factor.ndim == 1 else factor
        product = table_times(self.starts, self.columns, self.values, matrix, transposed, self.width)
        return product[:, 0] if factor.ndim == 1 else product


def _starts(per_row: Indices) -> Indices:
    starts = np.zeros(len(per_row) + 1, dtype=np.int64)
    np.cumsum(per_row, out=starts[1:])
    return starts


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
