"""Slices: the values of a sample field or metadata column, each scored by itself."""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import FIELDS, Sample

MOST_SLICES = 200
NO_VALUE = "(none)"


def field_of(column: str) -> str:
    """The field of a sample that holds a column: itself, or the metadata."""
    return column if column in FIELDS else "metadata"


def slice_value(sample: Sample, column: str) -> str:
    """The sample's value of the column, as text."""
    value = getattr(sample, column) if column in FIELDS else sample.metadata.get(column)
    return NO_VALUE if value is None else str(value)


class SliceValues:
    """The values seen so far, so that a column that cannot be sliced by is refused before anything is scored."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._values: dict[str, set[str]] = {column: set() for column in columns}

    def see(self, samples: Sequence[Sample]) -> None:
        """Look at some samples."""
        for column, values in self._values.items():
            values.update(slice_value(sample, column) for sample in samples)
            if len(values) > MOST_SLICES:
                raise ConfigError(f"--by {column}: the column has more than {MOST_SLICES} values")

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Refuse a column that no sample has."""
        for column in self._values:
            if column not in known:
                have = ", ".join(sorted(known))
                raise ConfigError(f"--by {column}: no sample has that column. There are: {have}")
