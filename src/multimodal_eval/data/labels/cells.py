"""Labels given by annotators, as text or numbers: checked and converted to codes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import did_you_mean, shorten
from multimodal_eval.core.levels import Level
from multimodal_eval.core.metric import is_number
from multimodal_eval.data.readers.field_checks import RefusedError, checked_text

NUMERIC = ("interval", "ratio")
NO_LABEL = -1


class LabelCodes:
    """The labels seen so far, each with a code; labels that do not fit the scale are refused."""

    def __init__(self, scale: Level, order: Sequence[str] | None, *, textual: bool) -> None:
        self._scale, self._order, self._textual = scale, order, textual
        self._numbers = scale in NUMERIC or (scale == "ordinal" and order is None)
        self._codes: dict[Any, int] = {label: code for code, label in enumerate(order or ())}
        self._by_cell: dict[str, int] = {}  # most cells repeat and need no second check
        self._first: tuple[str, Any] | None = None

    def code(self, column: str, cell: Any) -> int:
        """The code of a cell's label; -1 if the cell is null or blank."""
        if cell is None:
            return NO_LABEL
        if type(cell) is str and cell in self._by_cell:
            return self._by_cell[cell]
        label = self._label(column, cell)
        if label is None:
            return NO_LABEL
        if self._order is not None and label not in self._codes:
            message = f"`{column}` has the label {shorten(label)}, which is not in the order."
            raise RefusedError("UNKNOWN_LABEL", message, did_you_mean(label, self._order).strip() + ".")
        code = self._codes.setdefault(label, len(self._codes))
        if type(cell) is str:
            self._by_cell[cell] = code
        return code

    def _label(self, column: str, cell: Any) -> Any:
        if type(cell) is str and not cell.strip():
            return None
        return self._number(column, cell) if self._numbers else self._name(column, cell)

    def _number(self, column: str, cell: Any) -> float:
        number = cell
        if self._textual:
            with suppress(ValueError):
                number = float(cell)
        if not is_number(number):
            message = f"`{column}` must be a number at the level {self._scale!r}. Got {shorten(cell)} instead."
            ordinal = "Labels that are not numbers need an order: --order low,mid,high."
            other = "For labels that are not numbers, use the level nominal or ordinal."
            raise RefusedError("TYPE", message, ordinal if self._scale == "ordinal" else other)
        if not isfinite(number):
            raise RefusedError("NONFINITE", f"`{column}` is {number}")
        if self._scale == "ratio" and number < 0:
            message = f"`{column}` must not be below 0 at the level 'ratio'. Got {number!r}."
            raise RefusedError("RANGE", message, "For numbers without a true zero, use the level interval.")
        return float(number)

    def _name(self, column: str, cell: Any) -> str:
        """A label as text. All labels of a file must have one type, because 1 and "1" would be the same label."""
        kind = "text" if isinstance(cell, str) else "boolean" if isinstance(cell, bool) else "number"
        if kind == "number" and not is_number(cell):
            raise RefusedError("TYPE", f"`{column}` must be a label. Got {shorten(cell)} instead.")
        if self._first is None:
            self._first = kind, cell
        elif self._first[0] != kind:
            both = f"{shorten(self._first[1])} ({self._first[0]}) and {shorten(cell)} ({kind})"
            raise RefusedError("TYPE", f"the labels mix types: {both} in `{column}`")
        if kind == "number":
            if not isfinite(cell):
                raise RefusedError("NONFINITE", f"`{column}` is {cell}")
            return str(int(cell)) if float(cell).is_integer() else repr(float(cell))
        return str(cell).lower() if kind == "boolean" else checked_text(column, cell).strip()

    def sorted(self, used: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The sorted labels, and the position of each code in them. Text is sorted alphabetically.

        The labels are those of the codes in `used`, or those of the order; all others have the position after the last.
        """
        labels = list(self._codes)
        if self._order is None:
            labels = [labels[code] for code in np.unique(used).tolist()]
            by_number = self._first is not None and self._first[0] == "number"
            labels.sort(key=float if by_number else None)
        positions = {label: index for index, label in enumerate(labels)}
        return np.array(labels), np.array([positions.get(label, len(labels)) for label in self._codes], dtype=np.int64)
