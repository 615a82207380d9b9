"""Records in memory as columns. Whole columns are checked at once; unusual records are checked one by one.

A column is plain if all its values have the same simple type and if no check would change or refuse one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from unicodedata import is_normalized

import msgspec
import numpy as np

from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers import parts
from multimodal_eval.data.readers.field_checks import LONGEST_TEXT, checked_text
from multimodal_eval.data.readers.ids import SeenIds
from multimodal_eval.data.readers.parts import Part, SamplePart, media_size
from multimodal_eval.data.readers.records import CHECKS, RecordChecker

if TYPE_CHECKING:
    import pyarrow as pa

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
        from multimodal_eval.data.runs.arrays import string_lists, strings

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
