"""Labels of several annotators for the same units, read from any supported file."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import InputError, Problem, did_you_mean, shorten
from multimodal_eval.core.levels import Level
from multimodal_eval.data.labels.cells import NO_LABEL, LabelCodes
from multimodal_eval.data.labels.collected import COLLECTED, collected_ratings
from multimodal_eval.data.readers.field_checks import RefusedError
from multimodal_eval.data.readers.formats import is_textual
from multimodal_eval.data.readers.inputs import read_records
from multimodal_eval.data.readers.layouts import Layout, Long, Record, name_of
from multimodal_eval.data.readers.problems import Problems


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
