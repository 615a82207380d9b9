"""Entries of a zip file, read into memory one by one with limits; nothing is unpacked to disk.

The standard library reads zstd (method 93) from Python 3.14 on only, and takes a second and 100 MB for the directory of
100,000 entries. Here the directory is a few arrays. Refused are archives that are damaged or encrypted, entries that
overlap (small bombs refer to the same data many times), names that lead out of a folder, and entries whose content is
larger than the limits of `data.readers.limits` allow.
"""

from __future__ import annotations

import os
import struct
import zlib
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import count_values
from multimodal_eval.core.errors import shorten
from multimodal_eval.core.system_files import BINARY, read_at
from multimodal_eval.data.readers import limits

__all__ = ["BrokenZipError", "ZipEntries", "leads_outside", "open_zip"]

_END, _END_64, _LOCATOR = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_ENTRY, _LOCAL, _EXTRA = struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s5H3L2H"), struct.Struct("<2H")
_LENGTHS, _LENGTHS_AT = struct.Struct("<3H"), 28  # of name, extra field and comment of an entry
_FIELDS = np.dtype(
    [
        ("signature", "<u4"),
        ("versions", "<u2", 2),
        ("flags", "<u2"),
        ("method", "<u2"),
        ("time", "<u2", 2),
        ("checksum", "<u4"),
        ("packed", "<u4"),
        ("size", "<u4"),
        ("name_size", "<u2"),
        ("extra_size", "<u2"),
        ("others", "<u2", 3),
        ("attributes", "<u4"),
        ("offset", "<u4"),
    ]
)
_SIGNATURE = int.from_bytes(b"PK\1\2", "little")
_LONGEST_COMMENT = 0xFFFF
_NOT_HERE, _NOT_HERE_16 = 0xFFFFFFFF, 0xFFFF  # the number is in the field of zip64
_TOO_LARGE = 1 << 62
_ZIP_64 = 1
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_METHODS = {_STORED: "stored", _DEFLATED: "deflate", _ZSTD: "zstd"}
_MOST_ENTRIES = 2_000_000
_USUAL_EXTRA = 64  # bytes between the name and the content of an entry
_TOGETHER = 1 << 20  # bytes that are unpacked by one call
_AHEAD = 3  # such calls
_BROKEN_DIRECTORY = "the directory at the end of the zip file is damaged"


class BrokenZipError(Exception):
    """The archive cannot be read; `code` is that of a problem."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def open_zip(path: Path) -> Iterator[ZipEntries]:
    """The entries of an archive."""
    file = os.open(path, os.O_RDONLY | BINARY)
    try:
        yield ZipEntries(file, str(path))
    finally:
        os.close(file)


class ZipEntries:
    """The directory of an archive. Of several entries with one name, the last counts: programs append new versions."""

    def __init__(self, file: int, name: str) -> None:
        self._file, self._name = file, name
        self._size = os.fstat(file).st_size
        self._directory = b""
        self._numbers: dict[str, int] = {}
        self._read_names(*self._find_directory())
        self._columns = self._read_columns()
        self._ends = self._checked_ends()

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def check_total(self, names: Iterable[str]) -> None:
        """Refuse entries that together are too large for an archive of this size."""
        most = limits.current().stream_bytes(self._size)
        sizes = self._columns.sizes
        if sum(sizes[self._numbers[name]] for name in names) > most:
            limits.refuse_expansion(self._name, most, self._size)

    def read(self, name: str) -> bytes:
        """The content of an entry, of the size and with the checksum that the directory states."""
        number = self._numbers[name]
        size = self._checked_size(number, name)
        data = self._packed(number, name)
        method = self._columns.methods[number]
        try:
            content = data if method == _STORED else _unpacked(data, size, method)
        except (OSError, zlib.error, ValueError, MemoryError) as error:
            raise _damaged(name) from error
        if len(content) != size or zlib.crc32(content) != self._columns.checksums[number]:
            raise _damaged(name)
        return content

    def read_json(self, names: Iterable[str]) -> Iterator[bytes]:
        """The contents of many entries with JSON. Small ones are unpacked together, the next in a thread meanwhile.

        Contents with so many values that work on them would take hours, for an archive of this size, are refused.
        """
        budget = limits.Budget(self._name, self._size)
        with ThreadPoolExecutor(1) as pool:
            ahead: deque[tuple[list[str], Future[_Together | None]]] = deque()
            for group in self._groups(names):
                packed = [self._packed(self._numbers[name], name) for name in group]
                ahead.append((group, pool.submit(self._unpacked_together, group, packed)))
                if len(ahead) > _AHEAD:
                    yield from self._contents(*ahead.popleft(), budget)
            while ahead:
                yield from self._contents(*ahead.popleft(), budget)

    def _groups(self, names: Iterable[str]) -> Iterator[list[str]]:
        """Consecutive entries with at most some MB together."""
        group: list[str] = []
        total = 0
        for name in names:
            total += self._checked_size(self._numbers[name], name)
            if group and total > _TOGETHER:
                yield group
                group, total = [], self._columns.sizes[self._numbers[name]]
            group.append(name)
        if group:
            yield group

    def _unpacked_together(self, group: list[str], packed: list[bytes]) -> _Together | None:
        """The contents, one after the other, since frames of zstd can be; None if they must be read one by one."""
        numbers = [self._numbers[name] for name in group]
        if len(group) == 1 or any(self._columns.methods[number] != _ZSTD for number in numbers):
            return None
        try:
            data = _unpacked(b"".join(packed), sum(self._columns.sizes[number] for number in numbers), _ZSTD)
        except (OSError, ValueError, MemoryError):
            return None
        return data, count_values(data)

    def _contents(self, group: list[str], future: Future[_Together | None], budget: limits.Budget) -> Iterator[bytes]:
        result, start = future.result(), 0
        together = None if result is None else result[0]
        if result is not None:
            budget.spend(result[1], len(group))
        for name in group:
            number = self._numbers[name]
            stop = start + self._columns.sizes[number]
            content = None if together is None else together[start:stop]
            if content is None or zlib.crc32(content) != self._columns.checksums[number]:
                content = self.read(name)  # which says what is wrong
                budget.spend_json(content)
            yield content
            start = stop

    def _checked_size(self, number: int, name: str) -> int:
        size = self._columns.sizes[number]
        if size > limits.current().record_bytes // 2:
            limits.refuse_record(self._name, None, 2 * size, f"the entry {shorten(name)}")
        return size

    def _packed(self, number: int, name: str) -> bytes:
        """The bytes of an entry as they are in the file."""
        offset, packed = self._columns.offsets[number], self._columns.packed[number]
        data = read_at(self._file, _LOCAL.size + 4 * len(name) + _USUAL_EXTRA + packed, offset)
        if len(data) < _LOCAL.size or data[:4] != b"PK\3\4":
            raise _damaged(name)
        *_, name_size, extra_size = _LOCAL.unpack_from(data)
        start = _LOCAL.size + name_size + extra_size
        if offset + start + packed > self._ends[number]:
            raise BrokenZipError("FORMAT", f"the entry {shorten(name)} overlaps the next")
        if start + packed > len(data):
            return read_at(self._file, packed, offset + start)
        return data[start : start + packed]

    def _find_directory(self) -> tuple[int, int, int]:
        """The offset and the size of the directory, and the number of its entries."""
        length = min(self._size, _END.size + _LONGEST_COMMENT)
        tail = read_at(self._file, length, self._size - length)
        place = tail.rfind(b"PK\5\6")
        if place < 0 or place + _END.size > len(tail):
            raise BrokenZipError("TRUNCATED", "the directory at the end of the zip file is missing")
        end = self._size - length + place
        _, _, _, _, count, size, offset, _ = _END.unpack_from(tail, place)
        if offset == _NOT_HERE or size == _NOT_HERE or count == _NOT_HERE_16:
            end, count, size, offset = self._find_directory_64(end, count, size, offset)
        if offset + size > end or count * _ENTRY.size > size:
            raise BrokenZipError("FORMAT", _BROKEN_DIRECTORY)
        if count > _MOST_ENTRIES or size > limits.current().record_bytes:
            raise BrokenZipError("TOO_LONG", f"the zip file has {count:,} entries, more than can be read")
        return offset, size, count

    def _find_directory_64(self, end: int, count: int, size: int, offset: int) -> tuple[int, int, int, int]:
        locator = read_at(self._file, _LOCATOR.size, max(0, end - _LOCATOR.size))
        if len(locator) < _LOCATOR.size or locator[:4] != b"PK\6\7":
            return end, count, size, offset
        place = _LOCATOR.unpack(locator)[2]
        record = b"" if place > self._size else read_at(self._file, _END_64.size, place)
        if len(record) < _END_64.size or record[:4] != b"PK\6\6":
            raise BrokenZipError("FORMAT", _BROKEN_DIRECTORY)
        *_, count, size, offset = _END_64.unpack(record)
        return place, count, size, offset

    def _read_names(self, offset: int, size: int, count: int) -> None:
        data = self._directory = read_at(self._file, size, offset)
        self._places = array("q")
        place, lengths, fixed = 0, _LENGTHS.unpack_from, _ENTRY.size
        for number in range(count):
            if place + fixed > len(data):
                raise BrokenZipError("FORMAT", _BROKEN_DIRECTORY)
            name_size, extra_size, comment_size = lengths(data, place + _LENGTHS_AT)
            start = place + fixed
            name = _name(data[start : start + name_size])
            self._places.append(place)
            self._numbers[name] = number
            place = start + name_size + extra_size + comment_size
        if place > len(data):
            raise BrokenZipError("FORMAT", _BROKEN_DIRECTORY)

    def _read_columns(self) -> _Columns:
        """The numbers of all entries, checked."""
        fields = np.frombuffer(b"".join(self._directory[at : at + _ENTRY.size] for at in self._places), _FIELDS)
        self._refuse(fields["signature"] != _SIGNATURE, "FORMAT", _BROKEN_DIRECTORY)
        self._refuse(fields["flags"] & 1 != 0, "FORMAT", "the entry {} is encrypted")
        known = ", ".join(_METHODS.values())
        message = f"the entry {{}} is packed in a way that cannot be read. Known: {known}"
        self._refuse(~np.isin(fields["method"], [*_METHODS]), "FORMAT", message)
        sizes, packed, offsets = (fields[name].astype(np.int64) for name in ("size", "packed", "offset"))
        for number in np.flatnonzero((sizes == _NOT_HERE) | (packed == _NOT_HERE) | (offsets == _NOT_HERE)).tolist():
            place = self._places[number] + _ENTRY.size + int(fields["name_size"][number])
            extra = self._directory[place : place + int(fields["extra_size"][number])]
            values = _with_zip_64(extra, int(sizes[number]), int(packed[number]), int(offsets[number]))
            sizes[number], packed[number], offsets[number] = (min(value, _TOO_LARGE) for value in values)
        missing = (offsets > self._size) | (packed > self._size)
        self._refuse(missing, "TRUNCATED", "the entry {} is not in the file: its end is missing")
        columns = (offsets, packed, sizes, fields["checksum"], fields["method"])
        return _Columns(*(array(kind, each.tobytes()) for kind, each in zip("qqqIH", columns, strict=True)))

    def _checked_ends(self) -> array[int]:
        """For each entry, where the next one starts; entries that overlap are refused."""
        if not self._places:
            return array("q")
        offsets, packed = (np.frombuffer(each, np.int64) for each in (self._columns.offsets, self._columns.packed))
        order = np.argsort(offsets, kind="stable")
        ends = np.full(len(offsets), self._size, np.int64)
        ends[order[:-1]] = offsets[order[1:]]
        self._refuse(offsets + _LOCAL.size + packed > ends, "FORMAT", "the entry {} overlaps the next, or the end")
        return array("q", ends.tobytes())

    def _refuse(self, rows: NDArray[np.bool_], code: str, message: str) -> None:
        """Refuse the archive if the condition holds for some entry."""
        if rows.any():
            number = int(np.flatnonzero(rows)[0])
            start = self._places[number] + _ENTRY.size
            name_size, _, _ = _LENGTHS.unpack_from(self._directory, self._places[number] + _LENGTHS_AT)
            raise BrokenZipError(code, message.format(shorten(_name(self._directory[start : start + name_size]))))


_Together = tuple[bytes, int]  # contents, one after the other, and the number of their values


@dataclass(frozen=True)
class _Columns:
    """The numbers of the entries, by field."""

    offsets: array[int]
    packed: array[int]  # the size in the file
    sizes: array[int]
    checksums: array[int]
    methods: array[int]


def leads_outside(name: str) -> bool:
    """Whether the name of an entry leads out of the folder that the archive would be unpacked into."""
    return name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or "\0" in name


def _name(raw: bytes) -> str:
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        name = raw.decode("cp437")
    if leads_outside(name):
        raise BrokenZipError("FORMAT", f"the entry {shorten(name)} leads out of the archive")
    return name


def _with_zip_64(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """The numbers that do not fit into 32 bits, from the field of zip64."""
    place = 0
    while place + _EXTRA.size <= len(extra):
        kind, length = _EXTRA.unpack_from(extra, place)
        place += _EXTRA.size
        if kind == _ZIP_64:
            field = extra[place : place + length]
            values = [value for (value,) in struct.iter_unpack("<Q", field[: len(field) // 8 * 8])]
            numbers = [size, packed, offset]
            for index, number in enumerate(numbers):
                if number == _NOT_HERE and values:
                    numbers[index] = values.pop(0)
            return numbers[0], numbers[1], numbers[2]
        place += length
    return size, packed, offset


def _unpacked(data: bytes, size: int, method: int) -> bytes:
    if method == _ZSTD:
        import pyarrow as pa

        return bytes(pa.decompress(data, decompressed_size=size, codec="zstd", asbytes=True)) if size else b""
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size + 1)


def _damaged(name: str) -> BrokenZipError:
    return BrokenZipError("ENCODING", f"the entry {shorten(name)} is damaged")
