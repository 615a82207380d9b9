"""Labels of several annotators for the same units, read from any supported file."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import InputError, Problem, did_you_mean, shorten
from multimodal_eval.core.levels import Level
from multimodal_eval.core.metric import is_number
from multimodal_eval.data.labels.human import last_labels, read_labels
from multimodal_eval.data.readers.field_checks import RefusedError, as_mapping, checked_name, checked_text, json_cell
from multimodal_eval.data.readers.formats import is_textual
from multimodal_eval.data.readers.inputs import read_records
from multimodal_eval.data.readers.problems import Problems

__all__ = ["COLLECTED", "collected_ratings"]


# Layouts of files with labels of several annotators.

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


# A file of labels as ratings: one record per annotator and labelled answer or comparison, with the last label.

COLLECTED = Long("unit", "annotator", "label")  # the layout of `collected_ratings`


def collected_ratings(path: Path) -> Iterator[tuple[int, Record]]:
    """(line, rating) of every label that counts. The unit is the run, what it is compared with, the metric and the id.

    The columns `id`, `run` and `metric` can group units.
    """
    for label in last_labels(read_labels(path)):
        unit = msgspec.json.encode(label.unit).decode()
        rating = {"unit": unit, "annotator": label.annotator, "label": label.label}
        yield label.line or 0, {**rating, "id": label.id, "run": label.run, "metric": label.metric}


# Labels given by annotators, as text or numbers: checked and converted to codes.

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


@dataclass(frozen=True, slots=True)
class Annotations:
    """Units x annotators: a code is an index into `labels`, or -1 if there is no label.

    `labels` are those that annotators gave, or all labels of the order. Any other gold label has the code len(labels).
    `gold` has one code per unit and `groups` one integer per unit; they are None if no such column was requested.
    """

    codes: NDArray[np.int64]
    labels: NDArray[Any]
    annotators: list[str]
    gold: NDArray[np.int64] | None
    groups: NDArray[np.int64] | None


def read_annotations(
    path: Path,
    layout: Layout | None,
    *,
    scale: Level = "nominal",
    order: Sequence[str] | None = None,
    group: str | None = None,
    gold: str | None = None,
) -> Annotations:
    """Read the labels of a file; raises one InputError with all problems.

    Without a layout, it is a file of labels as `mmeval view --label` writes them.
    """
    problems = Problems()
    textual = is_textual(path)
    table = _Table(str(path), layout or COLLECTED, LabelCodes(scale, order, textual=textual), problems)
    table.group, table.gold = group, gold
    for line, record in collected_ratings(path) if layout is None else read_records(path, problems):
        table.add(line, record, textual=textual)
    missing = table.missing_columns()
    table.check_duplicates()
    if missing:  # first, because the other problems may follow from them
        raise InputError([*missing, *problems.kept], len(missing) + problems.total)
    problems.raise_if_any()
    table.check_contents()
    problems.raise_if_any()
    return table.finish()


class _Table:
    """The ratings read so far, with the group and gold label of each unit."""

    group: str | None = None
    gold: str | None = None

    def __init__(self, file: str, layout: Layout, labels: LabelCodes, problems: Problems) -> None:
        self.file, self.layout, self.labels, self.problems = file, layout, labels, problems
        self.columns: dict[str, None] = {}
        self.annotators: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.units: dict[str, tuple[int, int]] = {}  # name -> (index, line)
        self.group_of, self.gold_of = array("q"), array("q")  # one per unit
        self.ratings = tuple(array("q") for _ in range(4))  # unit, annotator, code, line

    def add(self, line: int, record: Record, *, textual: bool) -> None:
        """Add one record; problems with it are recorded."""
        if not record.keys() <= self.columns.keys():
            self.columns.update(dict.fromkeys(record))
        try:
            unit = self._unit(line, record)
            cells = self.layout.cells(record, textual=textual)
        except RefusedError as refusal:
            self._note(refusal, line)
            return
        self._add_group_and_gold(unit, line, record)
        for annotator, where, cell in cells:
            index = self.annotators.setdefault(annotator, len(self.annotators))
            try:
                code = self.labels.code(where, cell)
            except RefusedError as refusal:
                self._note(refusal, line, field=where, value=shorten(cell))
                continue
            if code != NO_LABEL:
                for values, value in zip(self.ratings, (unit, index, code, line), strict=True):
                    values.append(value)

    def _unit(self, line: int, record: Record) -> int:
        """The index of the record's unit."""
        column, unit = self.layout.unit, len(self.gold_of)
        if column is not None:
            name = name_of(column, record.get(column))
            if name is None:
                raise RefusedError("MISSING_ID", f"`{column}` is empty: it must name the unit")
            known = name in self.units
            unit, first = self.units.setdefault(name, (unit, line))
            if known and not isinstance(self.layout, Long):
                raise RefusedError("DUPLICATE", f"the unit {shorten(name)} occurs twice, in lines {first} and {line}")
        if unit == len(self.gold_of):
            self.group_of.append(NO_LABEL)
            self.gold_of.append(NO_LABEL)
        return unit

    def _add_group_and_gold(self, unit: int, line: int, record: Record) -> None:
        """Record the unit's group and gold label; all records of a unit must agree."""
        try:
            if self.group is not None:
                name = name_of(self.group, record.get(self.group))
                code = NO_LABEL if name is None else self.groups.setdefault(name, len(self.groups))
                _set(self.group_of, unit, code, self.group)
            if self.gold is not None:
                _set(self.gold_of, unit, self.labels.code(self.gold, record.get(self.gold)), self.gold)
        except RefusedError as refusal:
            self._note(refusal, line)

    def _note(self, refusal: RefusedError, line: int, **where: Any) -> None:
        self.problems.add(refusal.code, str(refusal), file=self.file, line=line, hint=refusal.hint, **where)

    def missing_columns(self) -> list[Problem]:
        """The requested columns that no record has."""
        missing = []
        requested = dict.fromkeys([*self.layout.requested, self.layout.unit, self.group, self.gold])
        for column in requested if self.columns else ():
            if column is None or column in self.columns:
                continue
            if column in self.layout.requested and any(self.layout.matches(column, other) for other in self.columns):
                continue
            hint = did_you_mean(column, list(self.columns)).strip() + "."
            message = f"no column is named {column!r}."
            missing.append(Problem(code="UNKNOWN_COLUMN", message=message, file=self.file, hint=hint))
        return missing

    def check_duplicates(self) -> None:
        """Refuse two ratings of a unit by the same annotator, which only the long layout can contain."""
        if not isinstance(self.layout, Long) or not self.ratings[0]:
            return
        units, annotators, _, lines = self._columns()
        key = units * len(self.annotators) + annotators
        order = np.argsort(key, kind="stable")
        duplicates = np.flatnonzero(key[order][1:] == key[order][:-1])
        names, unit_names = list(self.annotators), list(self.units)
        for first, second in zip(order[duplicates].tolist(), order[duplicates + 1].tolist(), strict=True):
            rating = f"{names[annotators[second]]!r} rated the unit {shorten(unit_names[units[second]])} twice"
            message = f"{rating}, in lines {lines[first]} and {lines[second]}"
            hint = "If the last label counts, leave out --unit, --annotator and --label."
            self.problems.add("DUPLICATE", message, file=self.file, line=int(lines[second]), hint=hint)

    def check_contents(self) -> None:
        """Agreement needs two annotators and at least one label."""
        if not self.columns:
            self.problems.add("EMPTY", "the input has no records", file=self.file)
        elif not self.ratings[0]:
            self.problems.add("EMPTY", "no annotator gave a label", file=self.file)
        elif len(self.annotators) < 2:
            (only,) = self.annotators
            self.problems.add("ANNOTATORS", f"agreement needs two annotators. Got only {only!r}.", file=self.file)

    def _columns(self) -> list[NDArray[np.int64]]:
        return [np.frombuffer(values, dtype=np.int64) for values in self.ratings]

    def finish(self) -> Annotations:
        """The finished table."""
        units, annotators, rated, _ = self._columns()
        labels, positions = self.labels.sorted(rated)
        codes = np.full((len(self.gold_of), len(self.annotators)), NO_LABEL, dtype=np.int64)
        codes[units, annotators] = positions[rated]
        gold = groups = None
        if self.gold is not None:
            gold_codes = np.array(self.gold_of, dtype=np.int64)
            gold = np.where(gold_codes < 0, NO_LABEL, positions[gold_codes])
        if self.group is not None:
            groups = np.array(self.group_of, dtype=np.int64)
            alone = groups < 0  # a unit without a group is a separate group
            groups[alone] = len(self.groups) + np.arange(int(alone.sum()))
            if len(np.unique(groups)) == len(groups):  # groups of one unit do not count as groups
                groups = None
        return Annotations(codes, labels, list(self.annotators), gold, groups)


def _set(codes: array[int], unit: int, code: int, column: str) -> None:
    if code == NO_LABEL:
        return
    if codes[unit] not in (NO_LABEL, code):
        raise RefusedError("CONFLICT", f"`{column}` has different values for one unit")
    codes[unit] = code
