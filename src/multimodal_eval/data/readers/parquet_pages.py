"""What a Parquet file would take in memory, from the headers of its pages, before a page is decompressed.

The sizes in the footer may be wrong, but a page is decompressed into the size that its own header states. A page of
a dictionary is decompressed here, because a single long value in it may be repeated in every row.

Reference:
    The Apache Parquet format, PageHeader in parquet.thrift, written in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.limits import MB

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["rows_together"]

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_BY_DICTIONARY = (2, 8)  # encodings whose values are in the dictionary
_HEADER = 1 << 16  # bytes: more than a page header has, with its statistics
_DEEPEST = 8
_TOGETHER = 64 * MB  # of a batch
_COPIES = 4  # of a page: compressed, decompressed, decoded
_OFFSET = 16  # bytes per value: levels and offsets
_VALUE = 100  # bytes of a value once it is a Python object, and its share of the time
_FREE = 4096 * MB  # rows that are read one batch after the other, whatever the size of the file
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


@dataclass(frozen=True, slots=True)
class _Page:
    kind: int
    size: int  # once it is decompressed
    stored: int
    values: int
    encoding: int
    start: int  # of the content in the file


class _BrokenHeaderError(ValueError):
    """The header cannot be read; the reader of the file says why."""


class _Header:
    """Reads a structure in Thrift's compact protocol: only integers and structures are kept."""

    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def _byte(self) -> int:
        if self.position >= len(self._data):
            raise _BrokenHeaderError
        self.position += 1
        return self._data[self.position - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise _BrokenHeaderError

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def structure(self, depth: int = 0) -> dict[int, int | dict[int, object]]:
        """Field number -> integer, or the fields of an inner structure."""
        if depth > _DEEPEST:
            raise _BrokenHeaderError
        fields: dict[int, int | dict[int, object]] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            value = self._value(head & 15, depth)
            if value is not None:
                fields[number] = value
        return fields

    def _value(self, kind: int, depth: int) -> int | dict[int, object] | None:
        if kind in (1, 2):  # true, false
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            self.position += 8
        elif kind == 8:
            self.position += self._unsigned()
        elif kind in (9, 10):
            head = self._byte()
            for _ in range(head >> 4 if head >> 4 < 15 else self._unsigned()):
                self._value(head & 15, depth + 1)
        elif kind == 12:
            return dict(self.structure(depth + 1))
        else:
            raise _BrokenHeaderError
        return None


def _page_at(file: IO[bytes], offset: int) -> _Page:
    file.seek(offset)
    header = _Header(file.read(_HEADER))
    fields = header.structure()
    kind, size, stored = (fields.get(number) for number in (1, 2, 3))
    inner = next((fields[number] for number in (5, 7, 8) if number in fields), {})
    if not (isinstance(kind, int) and isinstance(size, int) and isinstance(stored, int) and isinstance(inner, dict)):
        raise _BrokenHeaderError
    values, encoding = inner.get(1, 0), inner.get(4 if kind == _DATA_V2 else 2, 0)
    if not (isinstance(values, int) and isinstance(encoding, int)) or min(size, stored, values) < 0:
        raise _BrokenHeaderError
    return _Page(kind, size, stored, values, encoding, offset + header.position)


def _pages(file: IO[bytes], column: pq.ColumnChunkMetaData) -> Iterator[_Page]:
    """The pages of a column chunk, as a reader finds them: until it has all values."""
    offset = column.data_page_offset
    if column.dictionary_page_offset is not None and 0 < column.dictionary_page_offset < offset:
        offset = column.dictionary_page_offset
    end = offset + column.total_compressed_size
    while offset < end:
        page = _page_at(file, offset)
        yield page
        offset = page.start + page.stored


@dataclass(slots=True)
class _Column:
    """The bytes of a column chunk: of its largest page, decompressed, and once all its values are decoded."""

    page: int = 0
    decompressed: int = 0
    decoded: int = 0
    values: int = 0
    longest: int = 0  # value of the dictionary
    per_row: int = 0  # the most that one row adds to a batch


def _measured(file: IO[bytes], column: pq.ColumnChunkMetaData, rows: int) -> _Column:
    sizes = _Column()
    width = _WIDTHS.get(column.physical_type, 0)
    for page in _pages(file, column):
        sizes.page = max(sizes.page, page.size)
        sizes.decompressed += page.size
        if _COPIES * page.size > limits.current().record_bytes:  # it is not decompressed here either
            return sizes
        if page.kind == _DICTIONARY:
            sizes.longest = width or _longest(file, page, column.compression)
        elif page.kind in (_DATA, _DATA_V2):
            sizes.values += page.values
            by_dictionary = page.encoding in _BY_DICTIONARY
            sizes.decoded += page.values * sizes.longest if by_dictionary else max(page.size, page.values * width)
            most = sizes.longest if by_dictionary else -(-page.size // max(1, page.values))
            sizes.per_row = max(sizes.per_row, most)
    sizes.per_row = max(sizes.per_row, width) * max(1, -(-sizes.values // max(1, rows)))
    return sizes


def _longest(file: IO[bytes], page: _Page, compression: str) -> int:
    """The length of the longest value of a dictionary; that of the page if it cannot be read."""
    import pyarrow as pa

    if page.values == 0 or page.size <= MB // 64:
        return page.size
    file.seek(page.start)
    content = file.read(page.stored)
    try:
        if compression != "UNCOMPRESSED":
            content = pa.decompress(content, page.size, compression.lower(), asbytes=True)
    except (pa.ArrowException, ValueError, OSError):
        return page.size
    longest = position = 0
    while position + 4 <= len(content):
        length = int.from_bytes(content[position : position + 4], "little")
        longest = max(longest, length)
        position += 4 + length
    return min(longest, page.size)


def rows_together(parquet: pq.ParquetFile, path: Path, row_groups: Sequence[int] | None, most: int) -> int:
    """How many rows may be decoded together, at most `most`. Row groups that would take too much memory are refused."""
    size = path.stat().st_size
    groups = range(parquet.metadata.num_row_groups) if row_groups is None else row_groups
    weight = longest = 0
    with path.open("rb") as stream:
        for number in groups:
            group = _GroupSizes(str(path), size, number)
            group.measure(stream, parquet.metadata.row_group(number), parquet.schema)
            weight, longest = weight + group.weight, max(longest, group.per_row)
            allowed = max(_FREE, limits.current().expansion * size)
            if weight > allowed:
                limits.refuse_expansion(str(path), allowed, size)
    return max(1, min(most, _TOGETHER // max(1, longest)))


class _GroupSizes:
    """The sizes of a row group."""

    def __init__(self, file: str, size: int, number: int) -> None:
        self._file, self._size, self._number = file, size, number
        self.weight = 0  # bytes of all values once they are decoded, and their share of the time
        self.per_row = 0

    def measure(self, stream: IO[bytes], group: pq.RowGroupMetaData, schema: pq.ParquetSchema) -> None:
        """Add up the columns, and refuse those that are too large."""
        limit, pages = limits.current(), 0
        for index in range(group.num_columns):
            column = group.column(index)
            name = f"the column {shorten(column.path_in_schema)} of row group {self._number}"
            try:
                sizes = _measured(stream, column, group.num_rows)
            except _BrokenHeaderError:
                continue  # the reader of the file says what is wrong
            pages += _COPIES * sizes.page
            if pages > max(limit.record_bytes, _COPIES * self._size):
                limits.refuse_record(self._file, None, pages, f"a page of {name}")
            memory = sizes.decoded + _OFFSET * sizes.values
            is_nested = schema.column(index).max_repetition_level > 0
            if is_nested and memory > max(limit.record_bytes, limit.expansion * column.total_compressed_size):
                limits.refuse_record(self._file, None, memory, name)
            self.weight += max(sizes.decompressed, sizes.decoded) + _VALUE * sizes.values
            self.per_row += sizes.per_row
