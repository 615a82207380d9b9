"""Which columns of CLARITY's files hold what: by convention, or as the user names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from multimodal_eval.contests.clarity.labels import TASKS, ClarityTask, TaskName
from multimodal_eval.core.errors import UnknownNameError, did_you_mean
from multimodal_eval.data.readers.formats import is_textual
from multimodal_eval.data.readers.inputs import read_records
from multimodal_eval.data.readers.problems import Columns, Problems
from multimodal_eval.data.readers.records import Fields, RecordChecker
from multimodal_eval.data.readers.summary import SeenIds

ANNOTATOR = re.compile(r"annotator[ _-]?(\d+)", re.IGNORECASE)  # does not match `annotator_id`
NO_ANNOTATORS = "none"
DATA_FIELDS = ("question", *(task.gold_column for task in TASKS.values()))
PREDICTION_FIELDS = tuple(task.prediction_column for task in TASKS.values())
FIELDS = ("id", *DATA_FIELDS, *PREDICTION_FIELDS)


@dataclass(frozen=True, slots=True)
class ClarityColumns:
    """The user's names of columns by field, and names or patterns of the annotators' columns (None: by convention)."""

    names: Mapping[str, str] = field(default_factory=dict)
    annotators: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in FIELDS:
                raise UnknownNameError("field of CLARITY's files", name, FIELDS)

    def is_annotator(self, column: str) -> bool:
        """Whether a column has an annotator's labels."""
        if self.annotators is None:
            return ANNOTATOR.fullmatch(column) is not None
        return any(column == name or fnmatchcase(column, name) for name in self._annotator_names)

    @property
    def _annotator_names(self) -> tuple[str, ...]:
        return () if self.annotators == (NO_ANNOTATORS,) else self.annotators or ()

    def annotators_in(self, columns: Sequence[str], file: str, problems: Problems) -> list[str]:
        """The annotators' columns: by their numbers, or in the order in which they are named."""
        if self.annotators is None:
            numbers = {column: int(match[1]) for column in columns if (match := ANNOTATOR.fullmatch(column))}
            return sorted(numbers, key=numbers.__getitem__)
        annotators: dict[str, None] = {}
        for name in self._annotator_names:
            matching = [column for column in columns if column == name or fnmatchcase(column, name)]
            if not matching:
                note_unknown_column(name, columns, file, problems)
            annotators |= dict.fromkeys(matching)
        return list(annotators)

    def renames(self, fields: Sequence[str], columns: Sequence[str], file: str, problems: Problems) -> dict[str, str]:
        """column -> field for the fields that the user has named; a column that is not there is noted."""
        chosen = {self.names[name]: name for name in fields if name in self.names}
        for column in chosen:
            if column not in columns:
                note_unknown_column(column, columns, file, problems)
        return chosen

    def id_column(self, columns: Sequence[str], convention: Sequence[str]) -> str | None:
        """The column with the ids: the user's, or the first of the usual ones; None if there is none."""
        usual = [name for name in (self.names.get("id"), *convention) if name in columns]
        return usual[0] if usual else None

    def note_unknown_id(self, columns: Sequence[str], files: Sequence[Path], problems: Problems) -> None:
        """Note the user's id column if no file has it."""
        name = self.names.get("id")
        if name is not None and name not in columns:
            note_unknown_column(name, list(dict.fromkeys(columns)), " and ".join(map(str, files)), problems)


def prediction_columns(columns: Sequence[str], by_user: Mapping[str, TaskName]) -> dict[str, TaskName]:
    """The columns that hold predictions: the user's and `evasion_pred`; without the user's, also similar names."""
    chosen = dict(by_user)
    for name, task in TASKS.items():
        similar = () if by_user else (task.gold_column, f"{name}_prediction", name)
        column = next((column for column in (task.prediction_column, *similar) if column in columns), None)
        if column is not None and name not in by_user.values():
            chosen[column] = name
    return chosen


def label_column(task: ClarityTask, columns: Mapping[str, TaskName]) -> str:
    """The name that a task's column of predictions has in the file."""
    return next((column for column, name in columns.items() if name == task.name), task.prediction_column)


def note_unknown_column(name: str, columns: Sequence[str], file: str, problems: Problems) -> None:
    """Note that a file has no such column."""
    hint = did_you_mean(name, columns).strip() + "."
    problems.add("UNKNOWN_COLUMN", f"no column is named {name!r}.", file=file, hint=hint)


def file_columns(path: Path, convention: Sequence[str] = ()) -> list[str]:
    """The columns of the first record; of all records if the first has none of the columns in `convention`."""
    columns: dict[str, None] = {}
    for _, record in read_records(path, Problems()):
        columns |= dict.fromkeys(record)
        if not convention or any(name in columns for name in convention):
            break
    return list(columns)


class LabelledRecords:
    """The checked records of a file, with columns renamed to fields. Without an id column, rows are numbered from 1."""

    def __init__(
        self,
        path: Path,
        problems: Problems,
        renames: Mapping[str, str],
        id_column: str | None,
        group: str | None = None,
    ) -> None:
        self.path, self.problems, self.renames = path, problems, renames
        self.is_numbered = id_column is None
        mapping = {"id": (id_column or "id",)} | ({} if group is None else {"group": (group,)})
        self.checker = RecordChecker(str(path), problems, mapping, textual=is_textual(path))

    def __iter__(self) -> Iterator[tuple[int, Fields]]:
        seen = SeenIds()
        for line, record in self._records(self.problems):
            fields = self.checker.fields(line, record)
            if fields is not None:
                seen.add(fields["id"])
                yield line, fields
        seen.note_duplicates(self.problems, self._ids)

    def _records(self, problems: Problems) -> Iterator[tuple[int, Columns]]:
        for number, (line, record) in enumerate(read_records(self.path, problems), 1):
            yield line, self._renamed(record) | ({"id": str(number)} if self.is_numbered else {})

    def _renamed(self, record: Columns) -> Columns:
        if not self.renames:
            return record
        taken = set(self.renames.values())
        kept = {name: value for name, value in record.items() if name not in self.renames and name not in taken}
        return kept | {new: record[old] for old, new in self.renames.items() if old in record}

    def _ids(self) -> Iterator[tuple[str | None, int, str | None]]:
        return ((str(self.path), line, self.checker.id_of(record)) for line, record in self._records(Problems()))
