"""CSV, TSV, JSONL and Parquet in blocks of records that compiled code scans at once.

The records that it does not accept are checked in Python.
"""

from __future__ import annotations

import codecs
import csv
import io
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import ArrowColumns, CsvColumns, JsonColumns, cut_csv
from multimodal_eval.core.csv_cells import has_escapes
from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers import limits, parts
from multimodal_eval.data.readers.blocks import BLOCK, BOM, Block, DamagedStreamError, line_blocks, open_bytes
from multimodal_eval.data.readers.field_checks import checked_text
from multimodal_eval.data.readers.formats import BATCH, read_delimited, read_parquet, record_of_cells
from multimodal_eval.data.readers.json_file import record_of_line
from multimodal_eval.data.readers.parquet_file import (
    check_nesting,
    check_weight,
    parquet_errors,
    plan_reading,
    python_rows,
)
from multimodal_eval.data.readers.problems import Columns, Problems, Record
from multimodal_eval.data.readers.records import CHECKS, RecordChecker

if TYPE_CHECKING:
    import pyarrow as pa


_ROLES = {
    **{field: "text" if CHECKS[field] is checked_text else "other" for field in FIELDS},
    **dict.fromkeys(("id", "group"), "name"),
    **dict.fromkeys(("expected_answer", "caption"), "reference"),
    **dict.fromkeys(("image", "audio", "video"), "media"),
    "choices": "choices",
    "generated_answer": "answer",
    "metadata": "metadata",
    "references": "references",
}

_Bits = NDArray[np.uint8] | None
_Texts = tuple[_Bits, NDArray[np.int32], NDArray[np.uint8]]  # validity, offsets, bytes
_Lists = tuple[_Bits, NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]  # … and the offsets of the items
Line = tuple[int, int, int, int]  # line in the block, accepted row or -1, begin, end


class Scanned(NamedTuple):
    """The accepted rows of a block, and its other lines. Line numbers count from 0 in the block."""

    lines: NDArray[np.int32]
    begins: NDArray[np.int32]
    shape_of: NDArray[np.int32]
    id_hashes: NDArray[np.int64]
    media: NDArray[np.int64] | None
    others: list[tuple[int, int, int]]  # line, begin, end
    shapes: list[tuple[int, tuple[str, ...], str]]  # first row, columns, kinds
    texts: dict[int, _Texts]
    lists: _Lists | None


_NONE = np.empty(0, np.int32)
NOTHING = Scanned(_NONE, _NONE, _NONE, np.empty(0, np.int64), None, [], [], {}, None)


class Scanners:
    """The compiled scanners, which know the field of every column."""

    def __init__(self, checker: RecordChecker) -> None:
        route = [
            (column, FIELDS.index(field), "reference_item" if several else _ROLES[field])
            for column, field, several in checker.routes
        ]
        fields = len(FIELDS), FIELDS.index("id"), FIELDS.index("metadata")
        self.json = JsonColumns(route, *fields)
        self.csv = CsvColumns(route, *fields)
        self.arrow = ArrowColumns(route, *fields)


class RecordBlock(Protocol):
    """Consecutive records of a file."""

    @property
    def first_line(self) -> int:
        """The number of the first line, or of the first row."""

    def scan(self, scanners: Scanners) -> tuple[Any, ...]:
        """The items of `Scanned`. Called in any thread."""

    def end_of(self, scanned: Scanned, row: int) -> int:
        """The end of the record of an accepted row."""

    def record(self, line: Line, problems: Problems, last_good: int) -> Columns | None:
        """The record of a line, or None; `last_good` is the number of the last line that is a record."""


class Rest(msgspec.Struct, frozen=True):
    """The end of a file that is read record by record, because something in it is unusual."""

    records: Callable[[Problems], Iterator[Record]]


class CheckedLines(msgspec.Struct):
    """The lines of a block that are checked in Python, and their places among the accepted rows."""

    block: RecordBlock
    scanned: Scanned
    last_good: int  # the number of the last line that is a record
    samples: list[Sample] = msgspec.field(default_factory=list)
    sample_lines: list[int] = msgspec.field(default_factory=list)
    rows: NDArray[np.int64] = msgspec.field(
        default_factory=lambda: np.empty(0, np.int64)
    )  # the accepted rows that stay
    records: int = 0  # of other lines; in the end, of all lines
    _replaced: list[int] = msgspec.field(default_factory=list)  # accepted rows that were checked in Python

    def line_of(self, row: int) -> Line:
        """The line of an accepted row."""
        begin, end = int(self.scanned.begins[row]), self.block.end_of(self.scanned, row)
        return int(self.scanned.lines[row]), row, begin, end

    def records_before(self, line: Line) -> int:
        """The number of records before a line, if all other lines before it are checked."""
        return self.records + int(np.searchsorted(self.scanned.lines, line[0]))

    def decode(self, line: Line, problems: Problems) -> Columns | None:
        """The record of a line; None if there is none."""
        place, row, *_ = line
        before = int(np.searchsorted(self.scanned.lines, place)) if len(self.scanned.lines) else 0
        if before:
            self.last_good = max(self.last_good, self.block.first_line + int(self.scanned.lines[before - 1]))
        record = self.block.record(line, problems, self.last_good)
        if record is not None:
            self.last_good = self.block.first_line + place
            if row < 0:
                self.records += 1
            else:
                self._replaced.append(row)
        return record

    def finish(self, limit: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """The order of all samples of the block, of at most `limit` records, and the sizes of their media."""
        lines = self.scanned.lines
        accepted = len(lines) if limit is None else min(len(lines), limit - self.records)
        self.records += accepted
        if accepted:
            self.last_good = max(self.last_good, self.block.first_line + int(lines[accepted - 1]))
        self.rows = np.delete(np.arange(accepted), self._replaced)
        order, media = self.rows, self.scanned.media
        if self.samples:
            order = np.concatenate([self.rows, np.arange(len(self.samples)) + len(lines)])
            places = np.concatenate([lines[self.rows], np.array(self.sample_lines)])
            order = order[np.argsort(places)]
        if media is not None or self.samples:
            accepted_media = np.zeros(len(lines), np.int64) if media is None else media
            media = np.concatenate([accepted_media, media_sizes(self.samples)])[order]
        return order, media


def media_sizes(samples: list[Sample]) -> NDArray[np.int64]:
    """The size of the media of each sample."""
    return np.fromiter(map(parts.media_size, samples), np.int64, len(samples))


# CSV and TSV in blocks of records that are scanned at once.
#
# Compiled code finds the records exactly as the csv module does. If it finds text that the module refuses, if the file
# is damaged, or if it was exported here, the rest of the file is read by `read_delimited`.

_LONGEST = 16 * BLOCK  # a longer record is left to `read_delimited`
_ALL = 1 << 62


class CsvBlock(msgspec.Struct, frozen=True):
    """Some complete records of a file, in valid UTF-8."""

    file: str
    data: bytes
    first_line: int
    header: list[str]
    delimiter: str
    budget: limits.Budget | None  # of a compressed file

    def scan(self, scanners: Scanners) -> tuple[Any, ...]:
        """The items of `Scanned`."""
        return scanners.csv.scan(self.header, self.data, self.delimiter)

    def end_of(self, scanned: Scanned, row: int) -> int:
        """The beginning of the record after an accepted row."""
        begins, others = scanned.begins, scanned.others
        after = bisect_right(others, begins[row], key=itemgetter(1))
        end = int(begins[row + 1]) if row + 1 < len(begins) else len(self.data)
        return min(end, others[after][1]) if after < len(others) else end

    def record(self, line: Line, problems: Problems, last_good: int) -> Columns | None:
        """The record of a line; None if it has too many or too few cells."""
        place, _, begin, end = line
        cells = next(_rows(self.data[begin:end].decode(), self.delimiter))
        if self.budget is not None:
            self.budget.spend(len(cells))
        return record_of_cells(self.header, cells, problems, self.file, self.first_line + place)


def csv_blocks(path: Path, delimiter: str, skip: int = 0) -> Iterator[CsvBlock | Rest]:
    """The records of a file after the first `skip`, in blocks."""
    cutter = _Cutter(path, delimiter, skip)
    try:
        yield from cutter.blocks()
    except (UnicodeDecodeError, DamagedStreamError, _UnusualError):
        yield Rest(cutter.rest)


def csv_records(path: Path, delimiter: str) -> int | None:
    """The number of records, of any length; None if something in the file is unusual."""
    cutter = _Cutter(path, delimiter, _ALL)
    try:
        for _ in cutter.blocks():
            pass
    except (UnicodeDecodeError, DamagedStreamError, _UnusualError):
        return None
    return _ALL - cutter.skip


class _UnusualError(Exception):
    """The rest of the file is left to `read_delimited`."""


class _Cutter:
    """Cuts a file into blocks of complete records; `line` is the first line that is in none of them so far.

    Only bytes that were decoded are cut, so that invalid UTF-8 stops both readers at the same record.
    """

    def __init__(self, path: Path, delimiter: str, skip: int) -> None:
        self._path, self._delimiter = path, delimiter
        self.skip = skip  # records that are still to be skipped
        self.line = 1
        self._budget: limits.Budget | None = None

    def blocks(self) -> Iterator[CsvBlock]:
        """The blocks; an exception if the rest is unusual."""
        header: list[str] = []
        rest = b""
        for chunk, is_last in self._chunks():
            data = rest + chunk
            if not header:
                header, data = self._header(data)
            if self.skip:
                end, lines, records, _ = cut_csv(data, self._delimiter, is_last, self.skip)
                self.skip -= records
                self.line += lines
                data = data[end:]
            end, lines, _, is_valid = cut_csv(data, self._delimiter, is_last, _ALL)
            if end:
                yield CsvBlock(str(self._path), data[:end], self.line, header, self._delimiter, self._budget)
                self.line += lines
            rest = data[end:]
            if not is_valid or len(rest) > _LONGEST:
                raise _UnusualError

    def rest(self, problems: Problems) -> Iterator[Record]:
        """The records from `line` on, as `read_delimited` reads them."""
        records = read_delimited(self._path, problems, self._delimiter, first_line=self.line)
        return islice(records, self.skip, None)

    def _chunks(self) -> Iterator[tuple[bytes, bool]]:
        """(bytes, whether they are the last) of the file: complete characters of UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        chunk, pending = b"-", b""
        with open_bytes(self._path) as stream:
            self._budget = limits.budget_of(stream)
            while chunk:
                chunk = stream.read(BLOCK)
                data = pending + chunk
                if pending or not chunk.isascii():
                    decoder.decode(chunk, not chunk)
                    pending = decoder.getstate()[0]
                yield data[: len(data) - len(pending)], not chunk

    def _header(self, data: bytes) -> tuple[list[str], bytes]:
        """The names of the columns, and the bytes after them."""
        text = data.removeprefix(BOM)
        end, lines, _, _ = cut_csv(text, self._delimiter, False, 1)
        header = next(_rows(text[:end].decode(), self._delimiter), [])
        if b"\0" in data[:4] or not header or len(set(header)) < len(header) or has_escapes(header):
            raise _UnusualError
        self.line += lines
        return header, text[end:]


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(limits.current().text_bytes)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


# JSONL in blocks of lines that are scanned at once.


class JsonBlock(msgspec.Struct, frozen=True):
    """Some complete lines of a file."""

    file: str
    block: Block

    @property
    def first_line(self) -> int:
        """The number of the first line."""
        return self.block.first_line

    def scan(self, scanners: Scanners) -> tuple[Any, ...]:
        """The items of `Scanned`."""
        return scanners.json.scan(self.block.data)

    def end_of(self, scanned: Scanned, row: int) -> int:
        """The end of the line of an accepted row."""
        end = self.block.data.find(b"\n", int(scanned.begins[row]))
        return len(self.block.data) if end < 0 else end

    def record(self, line: Line, problems: Problems, last_good: int) -> Columns | None:
        """The record of a line, or None; `last_good` is the number of the last line that is a record."""
        place, _, begin, end = line
        text = self.block.data[begin:end]
        if self.block.budget is not None:
            self.block.budget.spend_json(text)
        return record_of_line(
            text,
            self.file,
            problems,
            line=self.first_line + place,
            start=self.block.offset + begin,
            cut_off=not self.block.ends_in_newline and end == len(self.block.data),
            last_good=last_good,
        )


def json_blocks(path: Path) -> Iterator[JsonBlock]:
    """The lines of a file, in blocks."""
    with open_bytes(path) as stream:
        for block in line_blocks(stream, str(path)):
            yield JsonBlock(str(path), block)


# Parquet in batches of rows that are scanned at once.

_DECODED = 64  # rows that are converted to Python at once
_LARGE = 4 * BLOCK  # a batch with more bytes is cut, so that few large media are in memory at once


class ParquetBlock(msgspec.Struct):
    """Some rows of a file."""

    file: str
    batch: pa.RecordBatch
    first_line: int
    budget: limits.Budget
    _first: int = 0  # the number of the first decoded row
    _records: list[Columns | Problem] = msgspec.field(default_factory=list)

    def scan(self, scanners: Scanners) -> tuple[Any, ...]:
        """The items of `Scanned`."""
        return scanners.arrow.scan(self.batch.schema.names, self.batch.columns)

    def end_of(self, scanned: Scanned, row: int) -> int:
        """A row has no bytes of its own."""
        return 0

    def record(self, line: Line, problems: Problems, last_good: int) -> Columns | None:
        """The record of a row; None if it cannot be converted."""
        first = line[0] - line[0] % _DECODED
        if not self._records or first != self._first:
            decoded = self.batch.slice(first, _DECODED)
            self._first, self._records = (
                first,
                list(python_rows(decoded, self.file, self.first_line + first, self.budget)),
            )
        record = self._records[line[0] - first]
        if isinstance(record, Problem):
            problems.note(record)
            return None
        return record


def parquet_blocks(path: Path, row_groups: Sequence[int] | None = None, skip: int = 0) -> Iterator[ParquetBlock | Rest]:
    """The rows of a file, or of some row groups, after the first `skip`. Row numbers count from the first row group."""
    import pyarrow.parquet as pq

    size = path.stat().st_size
    row, weight, budget = 1, 0, limits.Budget(str(path), size)
    try:
        check_nesting(path)
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=BLOCK) as parquet:
            names = parquet.schema_arrow.names
            if names and len(set(names)) == len(names):
                plan = plan_reading(parquet, path, row_groups, BATCH)
                for batch in parquet.iter_batches(batch_size=plan.rows, row_groups=plan.groups):
                    weight += batch.nbytes
                    check_weight(path, size, weight)
                    start = min(max(0, skip + 1 - row), len(batch))
                    step = max(1, BATCH * _LARGE // max(_LARGE, batch.nbytes))
                    for place in range(start, len(batch), step):
                        yield ParquetBlock(str(path), batch.slice(place, step), row + place, budget)
                    row += len(batch)
                if plan.fault is None:
                    return
    except InputError:
        raise
    except parquet_errors():
        pass
    yield Rest(partial(read_parquet, path, row_groups=row_groups, first_row=max(row, skip + 1)))
