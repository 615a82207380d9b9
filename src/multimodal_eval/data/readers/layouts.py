"""Layouts of files with labels of several annotators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers.field_checks import RefusedError, as_mapping, checked_name, json_cell

Record = Mapping[str, object]
Cell = tuple[str, str, Any]  # annotator, place in the record, label


@dataclass(frozen=True, slots=True)
class Wide:
    """One record per unit, one column per annotator: names, or patterns with * and ?. Patterns skip `excluded`."""

    columns: tuple[str, ...]
    unit: str | None = None
    excluded: tuple[str | None, ...] = ()
    _chosen: dict[tuple[str, ...], list[str]] = field(default_factory=dict, compare=False)

    @property
    def requested(self) -> tuple[str, ...]:
        """The required columns, or patterns that must match a column."""
        return self.columns

    def matches(self, pattern: str, column: str) -> bool:
        """Whether the pattern, one of `columns`, selects the column."""
        if column == pattern:
            return True
        return fnmatchcase(column, pattern) and column != self.unit and column not in self.excluded

    def cells(self, record: Record, *, textual: bool) -> Iterable[Cell]:
        """The labels of a record."""
        columns = tuple(record)
        chosen = self._chosen.get(columns)
        if chosen is None:
            chosen = [column for column in columns if any(self.matches(pattern, column) for pattern in self.columns)]
            self._chosen[columns] = chosen
        return [(column, column, record[column]) for column in chosen]


@dataclass(frozen=True, slots=True)
class Nested:
    """One record per unit, with all its labels in one column: annotator -> label, or a list."""

    column: str
    unit: str | None = None

    @property
    def requested(self) -> tuple[str, ...]:
        """The required columns."""
        return (self.column,)

    def matches(self, pattern: str, column: str) -> bool:
        """Whether the names are equal."""
        return pattern == column

    def cells(self, record: Record, *, textual: bool) -> Iterable[Cell]:
        """The labels of a record; a list is numbered from 1."""
        column, labels = self.column, record.get(self.column)
        if textual and isinstance(labels, str):
            labels = json_cell(column, labels) if labels.strip() else None
        if labels is None:
            return []
        labels = as_mapping(column, labels, twice="names an annotator twice")
        if isinstance(labels, Mapping):
            return [(str(name), f"{column}.{name}", item) for name, item in labels.items()]
        if not isinstance(labels, list):
            expected = "an object annotator -> label, or a list of labels"
            raise RefusedError("TYPE", f"`{column}` must be {expected}. Got {shorten(labels)} instead.")
        return [(str(place), f"{column}[{place - 1}]", item) for place, item in enumerate(labels, 1)]


@dataclass(frozen=True, slots=True)
class Long:
    """One record per rating."""

    unit: str
    annotator: str
    label: str

    @property
    def requested(self) -> tuple[str, ...]:
        """The required columns."""
        return self.annotator, self.label

    def matches(self, pattern: str, column: str) -> bool:
        """Whether the names are equal."""
        return pattern == column

    def cells(self, record: Record, *, textual: bool) -> Iterable[Cell]:
        """The single label of a record."""
        annotator = name_of(self.annotator, record.get(self.annotator))
        if annotator is None:
            raise RefusedError("MISSING_ID", f"`{self.annotator}` is empty: it must name the annotator")
        return [(annotator, self.label, record.get(self.label))]


Layout = Wide | Nested | Long


def name_of(column: str, value: Any) -> str | None:
    """The name of an annotator, a unit or a group; None if the cell is null or blank."""
    blank = value is None or (isinstance(value, str) and not value.strip())
    return None if blank else checked_name(column, value)
