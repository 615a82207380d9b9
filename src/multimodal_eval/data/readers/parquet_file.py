"""Parquet files: what they would take in memory, before a page is decompressed, and their rows as Python values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from struct import Struct
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import msgspec

from multimodal_eval.core.errors import Problem, shorten
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.limits import MB
from multimodal_eval.data.readers.problems import Columns

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = [
    "BrokenThriftError",
    "Fields",
    "ReadPlan",
    "Thrift",
    "check_nesting",
    "check_weight",
    "integer",
    "parquet_errors",
    "plan_reading",
    "python_rows",
    "structure",
    "structures",
]


# Thrift's compact protocol, in which Parquet writes its footer and its page headers.
#
# pyarrow ends the process on some invalid metadata of a column, so that they must be read without it.

Fields: TypeAlias = "dict[int, int | bytes | Fields | list[Fields]]"

_DEEPEST = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCTURE, _UUID = 1, 2, 3, 7, 8, 9, 10, 11, 12, 13
_INTEGERS = (4, 5, 6)
_SIZES = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}
_MOST_BITS = 63
_LONGEST = 1000  # bytes


class BrokenThriftError(ValueError):
    """The bytes are not in this protocol."""


class Thrift:
    """Reads a structure. Integers, short texts, structures and lists of structures are kept; the rest is skipped."""

    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def _byte(self) -> int:
        if self.position >= len(self._data):
            raise BrokenThriftError("the end is missing")
        self.position += 1
        return self._data[self.position - 1]

    def _skip(self, size: int) -> None:
        self.position += size
        if self.position > len(self._data):
            raise BrokenThriftError("the end is missing")

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > _MOST_BITS:
                raise BrokenThriftError("a number is too long")

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def structure(self, depth: int = 0) -> Fields:
        """The fields by number."""
        if depth > _DEEPEST:
            raise BrokenThriftError("structures are nested too deeply")
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            value = self._value(head & 15, depth)
            if value is not None:
                fields[number] = value
        return fields

    def _text(self) -> bytes | None:
        size, start = self._unsigned(), self.position
        self._skip(size)
        return self._data[start : self.position] if size <= _LONGEST else None

    def _value(self, kind: int, depth: int) -> int | bytes | Fields | list[Fields] | None:
        if kind in (_TRUE, _FALSE):
            return int(kind == _TRUE)
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCTURE:
            return self.structure(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _BINARY:
            return self._text()
        if kind == _MAP:
            self._skip_map(depth)
        elif kind in _SIZES:
            self._skip(_SIZES[kind])
        else:
            raise BrokenThriftError(f"a value has the unknown type {kind}")
        return None

    def _skip_map(self, depth: int) -> None:
        count = self._unsigned()
        kinds = self._byte() if count else 0
        for _ in range(count):
            for kind in (kinds >> 4, kinds & 15):
                if kind in (_TRUE, _FALSE):
                    self._skip(1)
                else:
                    self._value(kind, depth + 1)

    def _list(self, depth: int) -> list[Fields] | None:
        if depth > _DEEPEST:
            raise BrokenThriftError("lists are nested too deeply")
        head = self._byte()
        kind, count = head & 15, head >> 4
        if count == 15:
            count = self._unsigned()
        if kind in (_TRUE, _FALSE):
            self._skip(count)
            return None
        items: list[Fields] = []
        for _ in range(count):  # each takes a byte or more
            item = self._value(kind, depth + 1)
            if isinstance(item, dict):
                items.append(item)
        return items if kind == _STRUCTURE else None


def integer(fields: Fields, number: int, default: int | None = None) -> int:
    """An integer field that is not negative."""
    value = fields.get(number, default)
    if not isinstance(value, int) or value < 0:
        raise BrokenThriftError(f"the field {number} must be a number")
    return value


def structure(fields: Fields, number: int) -> Fields:
    """A field that is a structure."""
    value = fields.get(number)
    if not isinstance(value, dict):
        raise BrokenThriftError(f"the field {number} must be a structure")
    return value


def structures(fields: Fields, number: int) -> list[Fields]:
    """A field that is a list of structures."""
    value = fields.get(number)
    if not isinstance(value, list):
        raise BrokenThriftError(f"the field {number} must be a list")
    return value


# What a Parquet file would take in memory, from the headers of its pages, before a page is decompressed.
#
# The sizes in the footer may be wrong, but a page is decompressed into the size that its own header states. A page of
# a dictionary is decompressed here, because a single long value in it may be repeated in every row.
#
# Reference:
#     The Apache Parquet format: FileMetaData and PageHeader in parquet.thrift.

_KINDS = _DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_BY_DICTIONARY = (2, 8)  # encodings whose values are in the dictionary
_PREFIXES = 7  # the encoding DELTA_BYTE_ARRAY
_HEADER = 1 << 16  # bytes: more than a page header has, with its statistics
_TOGETHER = 64 * MB  # of a batch
_COPIES = 4  # of a page: compressed, decompressed, decoded
_OFFSET = 16  # bytes per value: levels and offsets
_VALUE = 100  # bytes of a value once it is a Python object, and its share of the time
_FREE = 4096 * MB  # rows that are read one batch after the other, whatever the size of the file
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # bytes of a value, by the number of its physical type
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


class _Page(msgspec.Struct, frozen=True):
    kind: int
    size: int  # once it is decompressed
    stored: int
    values: int
    encoding: int
    start: int  # of the content in the file


class _Chunk(msgspec.Struct, frozen=True):
    """A column of a row group, as the footer describes it."""

    kind: int  # the physical type
    codec: int
    values: int
    compressed: int
    start: int


class _Group(msgspec.Struct, frozen=True):
    rows: int
    chunks: list[_Chunk]


def _read_footer(file: IO[bytes]) -> _Footer:
    """The columns and the row groups in the footer."""
    end = file.seek(0, 2)
    file.seek(max(0, end - 8))
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(0, end - 8 - length))
    footer = Thrift(file.read(length)).structure()
    groups = [_Group(integer(group, 3), list(map(_chunk, structures(group, 1)))) for group in structures(footer, 4)]
    return _Footer(_too_deep(structures(footer, 2)), groups)


def _too_deep(schema: Sequence[Fields]) -> str | None:
    """The first column that has too many levels. The elements of a schema are in order, each before its children."""
    column, parents = None, list[int]()  # the number of children that each level still has
    for element in schema:
        if len(parents) == 1:
            name = element.get(4)
            column = name.decode("utf-8", "replace") if isinstance(name, bytes) else "?"
        if parents:
            parents[-1] -= 1
        parents.append(integer(element, 5, 0))
        if len(parents) > limits.DEEPEST:
            return column
        while parents and not parents[-1]:
            parents.pop()
    return None


def _chunk(fields: Fields) -> _Chunk:
    column = structure(fields, 3)
    start, dictionary = integer(column, 9), integer(column, 11, 0)
    first = dictionary if 0 < dictionary < start else start
    return _Chunk(integer(column, 1), integer(column, 4), integer(column, 5), integer(column, 7), first)


def _page_at(file: IO[bytes], offset: int) -> _Page:
    file.seek(offset)
    header = Thrift(file.read(_HEADER))
    fields = header.structure()
    kind, size, stored = (integer(fields, number) for number in (1, 2, 3))
    inner = structure(fields, {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}[kind]) if kind in _KINDS else {}
    encoding = integer(inner, 4 if kind == _DATA_V2 else 2, 0)
    return _Page(kind, size, stored, integer(inner, 1, 0), encoding, offset + header.position)


def _pages(file: IO[bytes], chunk: _Chunk) -> Iterator[_Page]:
    """The pages of a column chunk, as pyarrow reads them: until it has all values."""
    offset, end, values = chunk.start, chunk.start + chunk.compressed, 0
    while offset < end and values < chunk.values:
        page = _page_at(file, offset)
        yield page
        offset = page.start + page.stored
        values += page.values if page.kind in (_DATA, _DATA_V2) else 0


class _Column(msgspec.Struct):
    """The bytes of a column chunk: of its largest page, decompressed, and once all its values are decoded."""

    page: int = 0
    decompressed: int = 0
    decoded: int = 0
    values: int = 0
    longest: int = 0  # value of the dictionary
    per_row: int = 0  # the most that one row adds to a batch


def _measured(file: IO[bytes], chunk: _Chunk, rows: int) -> _Column:
    sizes = _Column()
    width = _WIDTHS.get(chunk.kind, 0)
    for page in _pages(file, chunk):
        sizes.page = max(sizes.page, page.size)
        sizes.decompressed += page.size
        if _COPIES * page.size > limits.current().record_bytes:  # it is not decompressed here either
            return sizes
        if page.kind == _DICTIONARY:
            sizes.longest = width or _longest(file, page, chunk.codec)
        elif page.kind in (_DATA, _DATA_V2):
            sizes.values += page.values
            by_dictionary = page.encoding in _BY_DICTIONARY
            sizes.decoded += page.values * sizes.longest if by_dictionary else max(page.size, page.values * width)
            sizes.per_row = max(sizes.per_row, _longest_of_page(page, sizes.longest if by_dictionary else None))
    sizes.per_row = max(sizes.per_row, width) * max(1, -(-sizes.values // max(1, rows)))
    return sizes


def _longest_of_page(page: _Page, in_dictionary: int | None) -> int:
    """The bytes of a value of a page: at most, or in the mean if all values together are limited by the page."""
    if in_dictionary is not None:
        return in_dictionary
    if page.encoding == _PREFIXES:  # a value may repeat all of the one before it
        return page.size
    return -(-page.size // max(1, page.values))


def _longest(file: IO[bytes], page: _Page, codec: int) -> int:
    """The length of the longest value of a dictionary; that of the page if it cannot be read."""
    import pyarrow as pa

    file.seek(page.start)
    content = file.read(page.stored)
    try:
        if codec:
            content = pa.decompress(content, page.size, _CODECS.get(codec, ""), asbytes=True)
    except (pa.ArrowException, ValueError, OSError):
        return page.size
    longest, position, last, length_at = 0, 0, len(content) - 4, Struct("<I").unpack_from
    while position <= last:
        (length,) = length_at(content, position)
        if length > longest:
            longest = length
        position += 4 + length
    return min(longest, page.size)


class ReadPlan(msgspec.Struct, frozen=True):
    """How to read row groups: which, how many rows at once, and what is wrong with the next one."""

    groups: list[int]
    rows: int
    fault: ValueError | None = None


def plan_reading(parquet: pq.ParquetFile, path: Path, row_groups: Sequence[int] | None, most: int) -> ReadPlan:
    """How to read some row groups, at most `most` rows at once. Those that would take too much memory are refused.

    A row group whose headers cannot be read is not read, and neither are those after it: they could hide anything.
    """
    state = path.stat()
    footer = _footer(str(path), state.st_size, state.st_mtime_ns, limits.current())
    repeats = [parquet.schema.column(index).max_repetition_level > 0 for index in range(len(parquet.schema))]
    chosen = list(range(len(footer.groups)) if row_groups is None else row_groups)
    weight = longest = 0
    fault = None
    with path.open("rb") as stream:
        for place, number in enumerate(chosen):
            try:
                group = footer.sizes(number, stream, str(path), state.st_size, repeats)
            except BrokenThriftError as error:
                chosen, fault = chosen[:place], error
                break
            weight, longest = weight + group.weight, max(longest, group.per_row)
            check_weight(path, state.st_size, weight)
    return ReadPlan(chosen, max(1, min(most, _TOGETHER // max(1, longest))), fault)


class _Footer(msgspec.Struct):
    """The row groups of a file, and the sizes of those that were measured."""

    deep_column: str | None  # that has too many levels
    groups: list[_Group]
    _sizes: dict[int, _GroupSizes] = msgspec.field(default_factory=dict)

    def sizes(self, number: int, stream: IO[bytes], file: str, size: int, repeats: Sequence[bool]) -> _GroupSizes:
        """The sizes of one row group."""
        if number not in self._sizes:
            if number >= len(self.groups):
                raise BrokenThriftError("the footer has too few row groups")
            sizes = _GroupSizes(file, size, number)
            sizes.measure(stream, self.groups[number], repeats)
            self._sizes[number] = sizes
        return self._sizes[number]


@lru_cache(maxsize=4)
def _footer(path: str, size: int, changed: int, limit: limits.Limits) -> _Footer:
    """The footer of a file, read once: a file of many row groups is opened for each range of them."""
    with Path(path).open("rb") as stream:
        return _read_footer(stream)


def check_nesting(path: Path) -> None:
    """Refuse a file with a column of too many levels, before pyarrow reads them."""
    state = path.stat()
    try:
        column = _footer(str(path), state.st_size, state.st_mtime_ns, limits.current()).deep_column
    except BrokenThriftError:  # pyarrow says what is wrong with the file
        return
    if column is not None:
        limits.refuse_nesting(column, str(path))


def check_weight(path: Path, size: int, weight: int) -> None:
    """Refuse a file whose content has too many bytes."""
    allowed = max(_FREE, limits.current().expansion * size)
    if weight > allowed:
        limits.refuse_expansion(str(path), allowed, size)


class _GroupSizes:
    """The sizes of a row group."""

    def __init__(self, file: str, size: int, number: int) -> None:
        self._file, self._size, self._number = file, size, number
        self.weight = 0  # bytes of all values once they are decoded, and their share of the time
        self.per_row = 0

    def measure(self, stream: IO[bytes], group: _Group, repeats: Sequence[bool]) -> None:
        """Add up the columns, and refuse those that are too large. `repeats`: whether a column is in a list."""
        limit, pages = limits.current(), 0
        for number, (chunk, is_nested) in enumerate(zip(group.chunks, repeats, strict=False), 1):
            name = f"column {number} of row group {self._number + 1}"
            sizes = _measured(stream, chunk, group.rows)
            pages += _COPIES * sizes.page
            if pages > max(limit.record_bytes, _COPIES * self._size):
                limits.refuse_record(self._file, None, pages, f"a page of {name}")
            memory = sizes.decoded + _OFFSET * sizes.values
            if is_nested and memory > max(limit.record_bytes, limit.expansion * chunk.compressed):
                limits.refuse_record(self._file, None, memory, name)
            self.weight += max(sizes.decompressed, sizes.decoded) + _VALUE * sizes.values
            self.per_row += sizes.per_row


# Rows of Parquet as Python values, with the errors that a damaged file causes.

_ROWS_TOGETHER = 64  # rows that are converted at once


def parquet_errors() -> tuple[type[Exception], ...]:
    """What pyarrow raises if a file cannot be read."""
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)


def python_rows(batch: pa.RecordBatch, file: str, first_row: int, budget: limits.Budget) -> Iterator[Columns | Problem]:
    """The rows as Python values, a few at a time; a problem for each row that cannot be converted.

    A row that would take too much memory is refused.
    """
    for start in range(0, len(batch), _ROWS_TOGETHER):
        together = batch.slice(start, _ROWS_TOGETHER)
        budget.spend(sum(map(_leaves, together.columns)), len(together))
        if _memory(together) <= limits.current().record_bytes:
            try:
                rows = together.to_pylist()
            except parquet_errors():
                rows = None
            if rows is not None:
                yield from rows
                continue
        for place in range(len(together)):
            yield _one_row(together.slice(place, 1), file, first_row + start + place)


def _one_row(row: pa.RecordBatch, file: str, number: int) -> Columns | Problem:
    memory = _memory(row)
    if memory > limits.current().record_bytes:
        limits.refuse_record(file, number, memory)
    columns: Columns = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            columns[name] = column[0].as_py()
        except UnicodeDecodeError as fault:
            message = f"the column {shorten(name)} has text that is not valid UTF-8, at byte {fault.start} of the text"
            return Problem(code="ENCODING", message=message, file=file, line=number, field=name)
        except parquet_errors() as fault:
            message = f"the column {shorten(name)} has a value that cannot be read: {fault}"
            return Problem(code="TYPE", message=message, file=file, line=number, field=name)
    return columns


def _memory(batch: pa.RecordBatch) -> int:
    """About how many bytes the rows take as Python objects."""
    return 2 * int(batch.nbytes) + sum(_VALUE * _leaves(column) for column in batch.columns)


def _leaves(array: Any) -> int:
    """The number of values at the lowest level."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_struct(kind):
        return sum(map(_leaves, array.flatten()))
    if pa.types.is_map(kind):
        keys, items = array.keys, array.items
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        return _leaves(keys.slice(first, last - first)) + _leaves(items.slice(first, last - first))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return len(array) + _leaves(array.flatten())
    return len(array)
