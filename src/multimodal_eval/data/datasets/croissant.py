"""Croissant: JSON-LD that describes the files and the fields of a dataset, which are read as samples.

The names of the fields are columns. The id is the field `id`, else the key of the record set, else the number of the
record, from 0. `--as croissant:NAME` chooses one of several record sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.datasets.croissant_metadata import (
    CroissantError,
    Field,
    Metadata,
    RecordSet,
    Source,
    files_of,
    metadata_of,
)
from multimodal_eval.data.datasets.dataset_format import DatasetFormat
from multimodal_eval.data.logs.log_format import Head
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.field_checks import RefusedError
from multimodal_eval.data.readers.formats import read_delimited, read_parquet
from multimodal_eval.data.readers.json_file import read_json_array, read_json_object, read_jsonl
from multimodal_eval.data.readers.problems import Problems, Record
from multimodal_eval.data.readers.records import parsed_cell

__all__ = ["FORMAT"]

_LONGEST_PATH = 300  # characters that a pattern is matched with
_Reader = Callable[[Path, Problems], Iterator[Record]]
_CSV: _Reader = partial(read_delimited, delimiter=",")
_TSV: _Reader = partial(read_delimited, delimiter="\t")
_READERS: dict[str, _Reader] = {
    "text/csv": _CSV,
    "text/tsv": _TSV,
    "text/tab-separated-values": _TSV,
    "application/json": read_json_array,
    "application/jsonlines": read_jsonl,
    "application/jsonl": read_jsonl,
    "application/x-jsonlines": read_jsonl,
    "application/x-ndjson": read_jsonl,
    "application/x-parquet": read_parquet,
    "application/vnd.apache.parquet": read_parquet,
    ".csv": _CSV,
    ".tsv": _TSV,
    ".json": read_json_array,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".parquet": read_parquet,
}
_TABLES: tuple[_Reader, ...] = (_CSV, _TSV, read_parquet)
_SHOWN_COLUMNS = 20
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


class Croissant(DatasetFormat):
    """The format of Croissant metadata; `record_set` is the name of the record set, if there are several."""

    name = "croissant"
    suffixes = (".json", ".jsonld")
    every_file = False  # other JSON files may be the data

    def __init__(self, record_set: str | None = None) -> None:
        self.record_set = record_set

    def with_option(self, option: str) -> Croissant:
        """The format that reads the record set with this name."""
        return Croissant(option)

    def recognises(self, head: Head) -> bool:
        """By the keys of JSON-LD."""
        data = head.data
        has_sets = b'recordSet"' in data or b"mlcommons.org/croissant" in data
        return has_sets and b'"@context"' in data and data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")

    def further_files(self, path: Path) -> Iterable[Path]:
        """The files that the record set is read from."""
        try:
            metadata, records = _opened(path, self.record_set, Problems())
            tables, _ = _tables(records)
            return [file for name in tables for _, file in files_of(metadata, name, path.parent)]
        except CroissantError:
            return ()

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per record of the set."""
        try:
            metadata, records = _opened(path, self.record_set, problems)
            yield from _records(metadata, records, path, problems)
        except CroissantError as fault:
            if fault.code != "REPORTED":
                problems.add(fault.code, f"{fault}", file=str(path), hint=fault.hint)


FORMAT = Croissant()


def _opened(path: Path, name: str | None, problems: Problems) -> tuple[Metadata, RecordSet]:
    content = read_json_object(path, problems)
    if content is None:
        raise CroissantError("", "REPORTED")
    metadata = metadata_of(content)
    return metadata, metadata.chosen(name)


def _tables(records: RecordSet) -> tuple[list[str], Field | None]:
    """The resource with the records, and the field that names files of another one, if there is one."""
    names = list(dict.fromkeys(source.resource for source in records.sources))
    if len(names) == 1:
        return names, None
    for field in records.fields:
        join = field.joined_with
        if len(names) == 2 and join is not None and join.resource in names and join.property is not None:
            return [name for name in names if name != join.resource], field
    listed = " and ".join(names)
    raise CroissantError(f"the fields of {records.id!r} come from {listed}, which are not joined here", "FORMAT")


def _records(metadata: Metadata, records: RecordSet, path: Path, problems: Problems) -> Iterator[Record]:
    tables, join = _tables(records)
    media: dict[str, tuple[str, Path]] = {}
    if join is not None and join.joined_with is not None:
        for name, file in files_of(metadata, join.joined_with.resource, path.parent):
            media[str(_value(join.joined_with, {}, name, file, path.parent))] = name, file
    number, columns_of_fields = 0, _FieldColumns(records, tables[0])
    for name, file in files_of(metadata, tables[0], path.parent):
        encoding = metadata.resources[tables[0]].encoding
        for line, columns in _rows(records, encoding, file, problems):
            columns_of_fields.see(columns)
            if _reader(encoding, file) in _TABLES:  # of which every row has all columns
                columns_of_fields.refuse_missing(file.name, by_first_row=True)
            row = _Row(columns, name, file, path.parent, media, join)
            try:
                record = {field.name: row.field(field) for field in records.fields}
            except RefusedError as refusal:
                problems.add(refusal.code, str(refusal), file=str(file), line=line)
                continue
            if record.get("id") is None:
                record["id"] = number if records.key is None else record.pop(records.key, None)
            number += 1
            yield number, record
    columns_of_fields.refuse_missing(tables[0])


class _FieldColumns:
    """The fields of a resource whose columns no row has so far. Rows of JSON need not have all."""

    def __init__(self, records: RecordSet, resource: str) -> None:
        self._missing = {
            field.id: field.source
            for field in records.leaves
            if field.source is not None and field.source.resource == resource and field.source.column is not None
        }
        self._known: dict[str, None] = {}

    def see(self, columns: Mapping[str, object]) -> None:
        """Note the columns of a row."""
        if self._missing:
            self._known.update(dict.fromkeys(columns))
            self._missing = {name: source for name, source in self._missing.items() if not _is_in(columns, source)}

    def refuse_missing(self, where: str, *, by_first_row: bool = False) -> None:
        """Refuse a field whose column is in none of the rows, if there are any. An object may be null in some rows."""
        missing = ((name, str(source.column)) for name, source in self._missing.items())
        if by_first_row:
            missing = ((name, column) for name, column in missing if column.partition(".")[0] not in self._known)
        name, column = next(missing, ("", ""))
        if not name or not self._known:
            return
        known = list(self._known)
        shown = ", ".join(map(repr, known[:_SHOWN_COLUMNS])) + (", …" if len(known) > _SHOWN_COLUMNS else "")
        message = f"the field {name!r} names the column {column!r}, which no row of {where} has."
        raise CroissantError(message, "UNKNOWN_COLUMN", f"The columns are {shown}.")


def _is_in(columns: Mapping[str, object], source: Source) -> bool:
    """Whether a row has the column of a source, which may be a path: `a.b`."""
    if source.column is None or source.column in columns:
        return True
    *path, last = source.column.split(".")
    inner = _at(columns, path)
    return bool(path) and isinstance(inner, Mapping) and last in inner


def _rows(records: RecordSet, encoding: str, file: Path, problems: Problems) -> Iterator[Record]:
    """The rows of a file; a file of which only properties are read is one row."""
    if all(source.column is None for source in records.sources):
        return iter([(1, {})])
    reader = _reader(encoding, file)
    if reader is None:
        raise CroissantError(f"files of the format {encoding!r} are not read: {file.name}", "FORMAT")
    path = next((source.rows for source in records.sources if source.rows), None)
    return reader(file, problems) if path is None or reader is not read_json_array else _listed(file, path, problems)


def _reader(encoding: str, file: Path) -> _Reader | None:
    return _READERS.get(encoding) or _READERS.get(bare_suffix(file))


def _listed(file: Path, path: str, problems: Problems) -> Iterator[Record]:
    """The objects of a list inside a JSON document."""
    content = read_json_object(file, problems)
    if content is None:
        return
    items = _at(content, path.split("."))
    for number, item in enumerate(items if isinstance(items, list) else (items,), 1):
        if isinstance(item, dict):
            yield number, item
        else:
            message = f"`{path}` must be a list of objects. Got {shorten(item)} instead."
            problems.add("TYPE", message, file=str(file), line=number)


@dataclass(frozen=True)
class _Row:
    """A row of a table, with its file."""

    columns: Mapping[str, object]
    name: str
    file: Path
    folder: Path
    media: Mapping[str, tuple[str, Path]]
    join: Field | None

    def field(self, field: Field) -> object:
        """The value of a field."""
        if field.parts:
            return {part.name: self.field(part) for part in field.parts}
        source = field.source
        if source is None:
            return None
        join = None if self.join is None else self.join.joined_with
        if self.join is not None and join is not None and source.resource == join.resource:
            named = self.media.get(str(self.field(self.join)))
            return None if named is None else _value(source, {}, *named, self.folder)
        value = _value(source, self.columns, self.name, self.file, self.folder)
        return _converted(field, value) if isinstance(value, str) else value


def _value(source: Source, columns: Mapping[str, object], name: str, file: Path, folder: Path) -> object:
    """The value of a source in a row, with its transforms."""
    value: object = _property(source.property, name, file, folder)
    if source.column is not None:
        value = columns.get(source.column)
        if source.column not in columns and "." in source.column:
            value = _at(columns, source.column.split("."))
    value = _at(value, source.inner) if source.inner else value
    if source.pattern is not None and isinstance(value, str):
        match = source.pattern.match(value[:_LONGEST_PATH])
        value = value if match is None else next((group for group in match.groups() if group is not None), value)
    if source.delimiter is not None and isinstance(value, str):
        return [item.strip() for item in value.split(source.delimiter)]
    return value


def _at(value: object, keys: Iterable[str]) -> object:
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _property(kind: str | None, name: str, file: Path, folder: Path) -> str | None:
    if kind == "content":  # an image is named by its path, relative to the metadata
        return PurePosixPath(file.relative_to(folder)).as_posix()
    return PurePosixPath(name).name if kind == "filename" else None if kind is None else name


def _converted(field: Field, value: object) -> object:
    """Text of a CSV file as the type of the field. An empty cell is null."""
    if not isinstance(value, str):
        return value
    if field.name in FIELDS:
        return parsed_cell(field.name, value, alone=True)
    if not value:
        return None
    try:
        if field.kind in ("Integer", "Int64", "Int32"):
            return int(value)
        if field.kind in ("Float", "Number", "Float64", "Float32"):
            return float(value)
    except ValueError:
        message = f"`{field.name}` must be of the type {field.kind}. Got {shorten(value)} instead."
        raise RefusedError("TYPE", message) from None
    return _TRUTH.get(value.strip().lower(), value) if field.kind == "Boolean" else value
