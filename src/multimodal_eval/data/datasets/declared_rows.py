"""Datasets whose rows are arranged as a task file declares: several columns for a field, other values, left-out rows.

The declaration is the option of the format, as JSON, so that a run folder has the whole of it: `declared:{"last": …}`.
Before that, rows are read as their files are: Parquet of the hub, a TSV of VLMEvalKit, or any other file.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.datasets.dataset_format import DatasetFormat, written_list
from multimodal_eval.data.logs.log_format import Head
from multimodal_eval.data.readers.formats import SUFFIXES, reader_of
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT", "PRESENT", "Declaration", "Groups", "add_groups", "field_of", "format_name"]

PRESENT = "present"  # any value of a column
_WHOLE = ("choices", "images", "references")  # fields that have all that their columns say
_TEXTS = frozenset(("id", "group", "question", "prompt", "expected_answer", "caption", "references", "choices"))


# New column -> the column that it is made of -> group -> values. A value in no group is a group of its own.
Groups: TypeAlias = dict[str, dict[str, dict[str, list[str]]]]


class Declaration(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """What becomes of a row, in this order. Columns that are not named stay as they are."""

    folder: str | None = None  # a column that gets the name of the file's folder
    add: dict[str, Any] = {}  # columns that are the same in every row
    lists: list[str] = []  # columns with lists that are written as text
    last: list[str] = []  # columns with lists of which the last element counts
    values: dict[str, dict[str, str | None]] = {}  # column -> value -> the value that it means; null is none
    groups: Groups = {}
    keep: dict[str, list[str]] = {}  # column -> values: other rows are left out; `present` is any value
    fields: dict[str, list[str]] = {}  # field -> the columns that it is made of
    texts: list[str] = []  # columns with numbers that are read as texts
    ids: Literal["number", "own", "field"] = "number"  # the number of a row, its column `id`, or as `fields` say
    inner: str | None = None  # the format of the files; None: by their content


def format_name(declaration: Declaration) -> str:
    """The name of the format with a declaration."""
    return f"{FORMAT.name}:{msgspec.json.encode(declaration).decode()}"


class DeclaredRows(DatasetFormat):
    """The format of rows that a task file arranges."""

    name = "declared"
    suffixes = SUFFIXES
    files = "any of these files; chosen by a task file"
    takes = "columns as the task file declares"

    def __init__(self, declaration: Declaration | None = None) -> None:
        self.declaration = declaration or Declaration()

    def with_option(self, option: str) -> Self:
        """The format with a declaration in JSON."""
        try:
            return type(self)(msgspec.json.decode(option.encode(), type=Declaration))
        except msgspec.DecodeError as fault:
            raise ConfigError(f"the option of the format `declared` must be a declaration in JSON: {fault}") from None

    def recognises(self, head: Head) -> bool:
        """Never: a task file chooses it."""
        return False

    def part_name(self, path: Path) -> str:
        """The folder and the split of a file whose rows are numbered."""
        if self.declaration.ids != "number":
            return ""
        return f"{path.parent.name}/{path.name.partition('-0')[0].partition('.')[0]}"

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per row that is kept."""
        declared = self.declaration
        folder = {} if declared.folder is None else {declared.folder: path.parent.name}
        read = reader_of(path, declared.inner or ("hf-parquet" if path.suffix.lower() == ".parquet" else None))
        number = -1
        for line, record in read(path, problems):
            number += 1
            if declared.ids == "field":
                record.pop("id", None)
            elif declared.ids == "number" and record.get("id") is None:
                record["id"] = str(number)
            record |= folder | declared.add
            if self._arranged(record):
                yield line, record

    def _arranged(self, record: Columns) -> bool:
        """Arrange a row; False if it is left out."""
        declared = self.declaration
        for column in declared.lists:
            if isinstance(text := record.get(column), str):
                record[column] = written_list(text) or [text]
        for column in declared.last:
            if isinstance(items := record.get(column), Sequence) and not isinstance(items, str | bytes):
                record[column] = items[-1] if items else None
        for column, meanings in declared.values.items():
            if (value := record.get(column)) is not None:
                record[column] = meanings.get(_text(value), value)
        add_groups(record, declared.groups)
        for column, kept in declared.keep.items():
            value = record.get(column)
            if not (_is_present(value) if PRESENT in kept else value is not None and _text(value) in kept):
                return False
        for column in declared.texts:
            if column in record:
                record[column] = _as_text(record[column])
        for field, columns in declared.fields.items():
            taken = record.pop if field in _WHOLE else record.get  # a key is made of columns that stay
            cells = [taken(column, None) for column in columns]
            record[field] = field_of(field, cells)
        return True


FORMAT = DeclaredRows()


def add_groups(record: Columns, groups: Groups) -> None:
    """Add the columns that say to which group a value belongs."""
    for column, origins in groups.items():
        for origin, members in origins.items():
            if column not in record and (value := record.get(origin)) is not None:
                record[column] = next((name for name, values in members.items() if _text(value) in values), value)


def _is_present(value: object) -> bool:
    return value is not None and value not in ("", b"", [])


def _text(value: object) -> str:
    return str(value) if not isinstance(value, float) or not value.is_integer() else str(int(value))


def _as_text(value: object) -> Any:
    """Numbers as texts, also in lists."""
    if isinstance(value, list):
        return [_as_text(item) for item in value if item is not None]
    return str(value) if isinstance(value, int | float) else value


def field_of(field: str, cells: Sequence[Any]) -> Any:
    """One value made of several cells."""
    given = [(place, cell) for place, cell in enumerate(cells) if _is_present(cell)]
    if not given:
        return None
    if field == "choices":
        return {string.ascii_uppercase[place]: _text(cell) for place, cell in given}
    if field in ("references", "images"):
        items = [item for _, cell in given for item in (cell if isinstance(cell, list) else [cell])]
        return items if field == "images" else [_text(item) for item in items]
    return ("/" if field in ("id", "group") else "\n").join(_text(cell) for _, cell in given)


def text_fields(columns: Mapping[str, str]) -> list[str]:
    """The columns whose field is a text."""
    return [column for field, column in columns.items() if field in _TEXTS]
