"""CSV and TSV in blocks of records that are scanned at once.

Compiled code finds the records exactly as the csv module does. If it finds text that the module refuses, if the file
is damaged, or if it was exported here, the rest of the file is read by `read_delimited`.
"""

from __future__ import annotations

import codecs
import csv
import io
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from multimodal_eval._native import cut_csv
from multimodal_eval.core.csv_cells import has_escapes
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import BLOCK, BOM, DamagedStreamError, open_bytes
from multimodal_eval.data.readers.formats import read_delimited, record_of_cells
from multimodal_eval.data.readers.problems import Columns, Problems, Record
from multimodal_eval.data.readers.scanned import Line, Rest, Scanned, Scanners

_LONGEST = 16 * BLOCK  # a longer record is left to `read_delimited`
_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class CsvBlock:
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
