"""Inputs in memory: samples, records, columns or tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from unicodedata import is_normalized

import msgspec
import numpy as np

from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.records import InputFile
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers import limits, parts
from multimodal_eval.data.readers.column_names import PEEKED, kinds_of, taken_columns
from multimodal_eval.data.readers.field_checks import LONGEST_TEXT, checked_text
from multimodal_eval.data.readers.parts import Input, Part, SamplePart, media_size, parts_of
from multimodal_eval.data.readers.problems import Columns, Problems
from multimodal_eval.data.readers.records import CHECKS, ColumnMap, RecordChecker
from multimodal_eval.data.readers.summary import SeenIds, Summary, note_unused

if TYPE_CHECKING:
    import pyarrow as pa


# Records in memory as columns. Whole columns are checked at once; unusual records are checked one by one.
#
# A column is plain if all its values have the same simple type and if no check would change or refuse one of them.

Rows = Sequence[Any]  # samples or records
Values = list[Any]  # of a column, one per row
_MEDIA = ("image", "audio", "video")
_NAMES = ("id", "group")
_NEVER_BLANK = ("expected_answer", "caption", *_NAMES)
_PLAIN_FIELDS = frozenset([*_MEDIA, *_NEVER_BLANK, *(field for field in FIELDS if CHECKS[field] is checked_text)])
_MOST_BYTES = 4  # of a character
_LARGEST = 2**63  # of integers in JSON


class ColumnsOfRecords:
    """A part whose columns were checked as a whole."""

    def __init__(self, length: int, columns: Mapping[str, Values], metadata: Mapping[str, Values]) -> None:
        self._length, self._columns, self._metadata = length, columns, metadata

    def __len__(self) -> int:
        return self._length

    @cached_property
    def _arrays(self) -> dict[str, pa.Array]:
        from multimodal_eval.data.runs.sample_table import string_lists, strings

        arrays = {
            field: string_lists(values) if field == "references" else strings(values)
            for field, values in self._columns.items()
        }
        if self._metadata:
            encode = msgspec.json.Encoder(order="deterministic").encode
            rows = zip(*self._metadata.values(), strict=True)
            records = (
                {name: value for name, value in zip(self._metadata, row, strict=True) if value is not None}
                for row in rows
            )
            arrays["metadata"] = strings([encode(record).decode() if record else None for record in records])
        return arrays

    def samples(self, fields: Collection[str]) -> list[Sample]:
        """The samples with their ids and the given fields."""
        from multimodal_eval.data.runs.sample_table import columns_of_fields, to_samples

        return to_samples(self.table(0).select(columns_of_fields({"id", *fields})))

    def table(self, first_row: int) -> pa.Table:
        """The table to store; `first_row` is the number of the first sample in the input."""
        from multimodal_eval.data.runs.sample_table import table_of_columns

        return table_of_columns(self._arrays, self._length, first_row)


def memory_parts(
    rows: Rows,
    checker: RecordChecker,
    seen: SeenIds,
    most: int,
    as_record: Callable[[Any], Mapping[str, object]],
) -> Iterator[Part]:
    """The checked samples in parts of at most `most`; a part ends early once it has 64 MB of media."""
    start = 0
    while start < len(rows):
        part = _plain_part(rows[start : start + most], start + 1, checker, seen)
        if part is not None:
            start += len(part)
            yield part
            continue
        samples: list[Sample] = []
        size = 0
        while start < len(rows) and len(samples) < most and size < parts.MEDIA_BYTES:
            start += 1
            fields = checker.fields(start, as_record(rows[start - 1]))
            if fields is not None:
                seen.add(fields["id"])
                samples.append(Sample(**fields))
                size += media_size(samples[-1])
        if samples:
            yield SamplePart(samples)


def _plain_part(rows: Rows, line: int, checker: RecordChecker, seen: SeenIds) -> ColumnsOfRecords | None:
    """The part with these rows; None if a row is unusual. `line` is the number of the first row."""
    raw = None if checker.has_annotators else _columns_of(rows)
    if raw is None:
        return None
    fields = {column: field for column, field, _ in checker.routes}
    given = raw.pop("metadata", None)
    inner = _inner_metadata(given)
    metadata = {column: values for column, values in raw.items() if column not in fields}
    if inner is None or inner.keys() & (metadata.keys() | fields.keys()):
        return None
    columns: dict[str, Values] = {}
    for column in [column for column in raw if column in fields]:
        field, plain = fields[column], _plain(fields[column], raw[column])
        if plain is None or field in columns:  # two columns for one field
            return None
        columns[field] = plain
    metadata |= inner
    kinds = {column: raw[column] for column in raw if fields.get(column) in _NAMES} | metadata
    if (
        None in columns.get("id", [None])
        or not all(map(_is_plain_metadatum, metadata.values()))
        or not all(checker.is_kind(column, _first(values)[1]) for column, values in kinds.items())
        or sum(len(path) for field in _MEDIA for path in columns.get(field, ()) if path) >= parts.MEDIA_BYTES
    ):
        return None
    for column, values in kinds.items():
        row, value = _first(values)
        checker.note_kind(column, value, line + row)
    answers = [answer for answer in columns.get("generated_answer", ()) if answer is not None]
    counts = {field: len(values) - values.count(None) for field, values in columns.items()}
    if given is not None or metadata:
        every = zip(*metadata.values(), *([] if given is None else [given]), strict=True)
        counts["metadata"] = sum(row.count(None) < len(row) for row in every)
    checker.see_columns(chain.from_iterable(FIELDS if type(row) is Sample else row for row in rows))
    checker.count_fields(counts, sum(not answer.strip() for answer in answers))
    seen.add_hashes(np.fromiter(map(hash, columns["id"]), np.int64, len(rows)))
    return ColumnsOfRecords(len(rows), columns, metadata)


def _columns_of(rows: Rows) -> dict[str, Values] | None:
    """The values of each column that has any; None if a row is neither a sample nor a plain dictionary."""
    kinds = set(map(type, rows))
    if kinds == {Sample}:
        columns = {field: list(map(attrgetter(field), rows)) for field in FIELDS}
    elif kinds == {dict}:
        names = tuple(dict.fromkeys(chain.from_iterable(rows)))
        if not all(type(name) is str and name.isascii() for name in names):
            return None
        columns = {name: [row.get(name) for row in rows] for name in names}
    else:
        return None
    return {name: values for name, values in columns.items() if values.count(None) < len(rows)}


def _inner_metadata(values: Values | None) -> dict[str, Values] | None:
    """The columns inside the field `metadata`; None if they are unusual."""
    return {} if values is None else _columns_of([{} if value is None else value for value in values])


def _first(values: Values) -> tuple[int, Any]:
    """The first value and its row."""
    return next((row, value) for row, value in enumerate(values) if value is not None)


def _plain(field: str, values: Values) -> Values | None:
    """The values as they are stored; None if one of them is unusual."""
    present = [value for value in values if value is not None]
    kinds = set(map(type, present))
    if field == "references":
        if kinds != {list} or not all(present):
            return None
        items = list(chain.from_iterable(present))
        return values if set(map(type, items)) == {str} and _are_plain(items) and all(map(str.strip, items)) else None
    if field in _NAMES and kinds == {int}:
        return [None if value is None else str(value) for value in values]
    if kinds != {str} or field not in _PLAIN_FIELDS or not _are_plain(present, is_path=field in _MEDIA):
        return None
    return values if field not in _NEVER_BLANK or all(map(str.strip, present)) else None


def _are_plain(texts: Sequence[str], *, is_path: bool = False) -> bool:
    """Whether no text would be refused or normalised."""
    joined = "".join(texts)
    longest = max(map(len, texts), default=0)
    if "\0" in joined or longest > LONGEST_TEXT // _MOST_BYTES:
        return False
    if joined.isascii():
        return True
    try:
        joined.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return is_path or is_normalized("NFC", joined)


def _is_plain_metadatum(values: Values) -> bool:
    present = [value for value in values if value is not None]
    kinds = set(map(type, present))
    if kinds == {str}:
        return _are_plain(present)
    if kinds == {bool}:
        return True
    return kinds <= {int, float} and all(
        isfinite(value) and (type(value) is float or abs(value) < _LARGEST) for value in present
    )


class MemoryInput(Input):
    """Samples, records, columns or a table in memory. Rows are numbered if none of them has an id."""

    def __init__(
        self,
        data: Iterable[Sample | Mapping[str, object]] | Mapping[str, Sequence[object]] | Table,
        annotators: tuple[str, ...] = (),
        columns: ColumnMap | None = None,
    ) -> None:
        records = without_frames(data)
        self.columns, self.annotators = columns or {}, annotators
        rows = _rows_of_columns(records) if isinstance(records, Mapping) else list(records)
        self.rows, self._numbering = with_ids(rows, self.columns)

    def describe(self) -> list[InputFile]:
        """The input files for run.json."""
        return [InputFile(path=None, samples=len(self.rows))]

    def recipe(self) -> None:
        """None: an input in memory cannot be opened again."""

    def parts(self, problems: Problems, summary: Summary, most: int, limit: int | None = None) -> Iterator[Part]:
        """The checked samples in parts of at most `most`; problems are added to `problems`."""

        kinds = kinds_of(row for row in self.rows[:PEEKED] if isinstance(row, Mapping))
        taken = taken_columns(kinds, self.columns, self.annotators)
        checker = RecordChecker(None, problems, self.columns, annotators=self.annotators, taken=taken)
        rows, seen = self.rows[:limit], SeenIds()
        for part in memory_parts(rows, checker, seen, most, _as_record):
            summary.samples += len(part)
            yield part
        ids = ((None, number, checker.id_of(_as_record(row))) for number, row in enumerate(rows, 1))
        seen.note_duplicates(problems, lambda: ids)
        summary.add(checker)
        summary.notes.extend(self._numbering)
        note_unused("map", checker.unused_map, checker, problems, summary)
        note_unused("annotators", checker.unused_annotators, checker, problems, summary)

    def places(self) -> Iterator[tuple[str | None, int, str | None]]:
        """(None, number, id) of every row, for messages about samples that were read before."""
        checker = RecordChecker(None, Problems(), self.columns, annotators=self.annotators)
        return ((None, number, checker.id_of(_as_record(row))) for number, row in enumerate(self.rows, 1))


class JoinedInput(MemoryInput):
    """Samples joined from several files, such as gold and predictions, and already checked.

    run.json lists the files.
    """

    def __init__(self, samples: list[Sample], files: Sequence[Path], notes: Sequence[str] = ()) -> None:
        super().__init__(samples)
        self._joined, self._files, self._notes = samples, files, notes

    def describe(self) -> list[InputFile]:
        """The input files for run.json."""

        from multimodal_eval.data.readers.files import describe_file

        return [describe_file(path) for path in self._files]

    def parts(self, problems: Problems, summary: Summary, most: int, limit: int | None = None) -> Iterator[Part]:
        """The samples unchanged; the notes about the files go into `summary`."""
        return map(SamplePart, parts_of(self._samples(summary, limit), most))

    def joined(self) -> Iterator[Sample]:
        """All samples."""
        return iter(self._joined)

    def _samples(self, summary: Summary, limit: int | None) -> Iterator[Sample]:
        for sample in islice(self.joined(), limit):
            summary.samples += 1
            summary.blank_answers += sample.generated_answer is not None and not sample.generated_answer.strip()
            summary.fields.update(name for name in FIELDS if getattr(sample, name) is not None)
            summary.metadata.update(sample.metadata)
            yield sample
        summary.notes.extend(self._notes)


def _as_record(row: Sample | Mapping[str, object]) -> Mapping[str, object]:
    if isinstance(row, Sample):
        return msgspec.structs.asdict(row)
    if isinstance(row, Mapping):
        return row
    raise ConfigError(f"a sample must be a Sample or a mapping. Got {shorten(row)} instead.")


def _rows_of_columns(columns: Mapping[str, Sequence[object]]) -> list[Mapping[str, object]]:
    """Rows from parallel lists. Lists of different lengths are refused."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError([Problem(code="LENGTH", message=f"the columns differ in length: {shown}")])
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


# Tables in memory as records: pandas and polars frames, Arrow tables, Hugging Face datasets; ids for rows without.
#
# None of these libraries is imported. An object is recognised by the module of its class, or by its Arrow interface.

NUMBERED = "the samples have no ids: they are numbered from 0, in their order"


class Table(Protocol):
    """A table with the Arrow interface: a frame of pandas or polars, or a table of pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream."""


def without_frames(data: Any) -> Any:
    """The records of a frame, a table or a dataset; other data unchanged."""
    if type(data) in (list, dict):
        return data
    if _is_a(data, "pandas", "DataFrame"):
        return _rows_of_pandas(data)
    if _is_a(data, "polars", "LazyFrame"):
        data = data.collect()
    if _is_a(data, "polars", "DataFrame"):
        return data.to_dicts()
    if _is_a(data, "datasets", "DatasetDict") or _is_a(data, "datasets", "IterableDatasetDict"):
        splits = ", ".join(map(repr, data))
        raise ConfigError(f"the data have several splits: {splits}. Pass one of them: data[{next(iter(data), '')!r}]")
    if _is_a(data, "datasets", "Dataset"):
        return _rows_of_dataset(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _rows_of_arrow(data)
    if not isinstance(data, Iterable) or isinstance(data, bytes):
        raise ConfigError(f"the data must be a path, a frame, a table, or records. Got {shorten(data)} instead.")
    return data


def _is_a(data: object, library: str, name: str) -> bool:
    """Whether the class or one of its bases has this name in this library."""
    return any(base.__name__ == name and base.__module__.partition(".")[0] == library for base in type(data).__mro__)


def _rows_of_pandas(frame: Any) -> list[Columns]:
    """The rows; missing values (None, NaN, NA, NaT) become None, and the named levels of the index are columns."""
    names = [str(name) for name in frame.columns]
    levels = [name for name in frame.index.names if name is not None and str(name) not in names]
    _refuse_repeated([*names, *map(str, levels)])
    columns = {str(level): _cells(frame.index.get_level_values(level)) for level in levels}
    columns |= {name: _cells(frame.iloc[:, place]) for place, name in enumerate(names)}
    rows = zip(*columns.values(), strict=True) if columns else ((),) * len(frame)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _cells(series: Any) -> list[object]:
    return [
        None if is_missing else _plain_value(value)
        for value, is_missing in zip(series.tolist(), series.isna().tolist(), strict=True)
    ]


def _plain_value(value: Any, depth: int = 0) -> object:
    """An array in a cell as a list: pandas reads the lists of a Parquet file as arrays."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    if type(value) is not list or depth > limits.DEEPEST:  # the check of the values refuses deeper ones
        return value
    return [_plain_value(item, depth + 1) for item in value]


def _rows_of_dataset(dataset: Any) -> list[Columns]:
    """The rows of a Hugging Face dataset as they are stored: images are not decoded, class labels get their names."""
    rows = _rows_of_arrow(dataset.with_format("arrow")[:])
    for column, feature in (dataset.features or {}).items():
        if hasattr(feature, "int2str"):
            for row in rows:
                code = row[column]
                row[column] = feature.names[code] if isinstance(code, int) and code >= 0 else None  # -1: no label
    return rows


def _rows_of_arrow(data: Any) -> list[Columns]:
    import pyarrow as pa

    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise ConfigError(f"{type(data).__name__} is not a table with named columns: {error}") from None
    _refuse_repeated(table.column_names)
    for column in table.schema:
        if _is_deep(column.type):
            limits.refuse_nesting(column.name)
    rows: list[Columns] = table.to_pylist()
    return rows


def _is_deep(kind: pa.DataType) -> bool:
    """Whether a type has more levels than values may have; a map is a list of pairs, and has two."""
    levels = [(kind, 0)]
    while levels:
        inner, depth = levels.pop()
        if depth > limits.DEEPEST:
            return True
        levels += [(inner.field(place).type, depth + 1) for place in range(inner.num_fields)]
    return False


def _refuse_repeated(names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        message = f"the table has more than one column named {', '.join(map(repr, repeated))}"
        raise InputError([Problem(code="DUPLICATE", message=message, field=repeated[0])])


Row = Sample | Mapping[str, object]


def with_ids(rows: Sequence[Row], columns: ColumnMap) -> tuple[Sequence[Row], list[str]]:
    """The rows, numbered from 0 if none of them has an id, and a note about it.

    If only some of them have an id, all stay as they are, and the check of the records refuses the others.
    """
    first = rows[0] if rows else None
    if not isinstance(first, Mapping) or first.get("id") is not None or "id" in columns:
        return rows, []
    id_of = RecordChecker(None, Problems(), columns).id_of
    if not all(isinstance(row, Mapping) and id_of(row) is None for row in rows):
        return rows, []
    return [{**row, "id": str(number)} for number, row in enumerate(rows) if isinstance(row, Mapping)], [NUMBERED]
