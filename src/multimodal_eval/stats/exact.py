"""Sums and averages of floating-point numbers as fractions, without rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

__all__ = ["Nested", "exact_mean", "exact_sum"]

Vector = NDArray[np.float64]
Codes = NDArray[np.int64]
_BITS = 53  # of the mantissa of a double
_HALF = 26


def exact_sum(values: Vector) -> Fraction:
    """The sum of finite numbers. Mantissas are added as whole numbers, in two halves, so that none overflows."""
    mantissas, exponents = np.frexp(values)
    whole = (mantissas * 2.0**_BITS).astype(np.int64)
    total = Fraction(0)
    for exponent in np.unique(exponents).tolist():
        chosen = whole[exponents == exponent]
        units = (int((chosen >> _HALF).sum()) << _HALF) + int((chosen & ((1 << _HALF) - 1)).sum())
        total += units * Fraction(2) ** (exponent - _BITS)
    return total


def exact_mean(values: Vector) -> Fraction | None:
    """The mean; None of nothing."""
    return exact_sum(values) / len(values) if len(values) else None


@dataclass(frozen=True)
class Nested:
    """The mean over groups of the means over their rows, or of the means over their subgroups, and so on.

    `levels` are the codes of the groups, from the outermost to the innermost; -1 means left out. `weights`
    replace the equal weights of the outermost groups. With `is_product`, a group counts by the product of its values.
    """

    levels: Sequence[Codes]
    weights: Mapping[int, Fraction] | None = None
    is_product: bool = False

    def of(self, values: Vector) -> Fraction | None:
        """The average of the rows whose value is not NaN; None without such a row."""
        kept = ~np.isnan(values) & (self.levels[-1] >= 0)
        if not kept.any():
            return None
        groups = self._groups(values[kept], self.levels[-1][kept])
        for outer, inner in zip(self.levels[-2::-1], self.levels[:0:-1], strict=True):
            parent = dict(zip(inner[kept].tolist(), outer[kept].tolist(), strict=True))
            members: dict[int, list[Fraction]] = {}
            for code, mean in groups.items():
                members.setdefault(parent[code], []).append(mean)
            groups = {code: _mean(means) for code, means in members.items()}
        if self.weights is None:
            return _mean(list(groups.values()))
        return sum((self.weights.get(code, Fraction(0)) * mean for code, mean in groups.items()), Fraction(0))

    def _groups(self, values: Vector, codes: Codes) -> dict[int, Fraction]:
        """The mean or the product of each innermost group."""
        if np.isin(values, (0.0, 1.0)).all():
            rows, right = np.bincount(codes), np.bincount(codes, weights=values).astype(np.int64)
            if self.is_product:
                return {code: Fraction(int(right[code] == rows[code])) for code in np.flatnonzero(rows).tolist()}
            return {code: Fraction(int(right[code]), int(rows[code])) for code in np.flatnonzero(rows).tolist()}
        order = np.argsort(codes, kind="stable")
        known, starts = np.unique(codes[order], return_index=True)
        pieces = np.split(values[order], starts[1:])
        if self.is_product:
            return {
                code: prod(map(Fraction, piece.tolist()), start=Fraction(1))
                for code, piece in zip(known.tolist(), pieces, strict=True)
            }
        return {code: exact_sum(p) / len(p) for code, p in zip(known.tolist(), pieces, strict=True)}


def _mean(values: Sequence[Fraction]) -> Fraction:
    """The mean; equal values are added once, since adding fractions is slow."""
    counts: dict[Fraction, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return sum((count * value for value, count in counts.items()), Fraction(0)) / len(values)
