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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers import limits

__all__ = ["BrokenZipError", "ZipEntries", "open_zip"]

_END, _END_64, _LOCATOR = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_DIRECTORY, _LOCAL, _EXTRA = struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s5H3L2H"), struct.Struct("<2H")
_LONGEST_COMMENT = 0xFFFF
_NOT_HERE = 0xFFFFFFFF  # the number is in the field of zip64
_ZIP_64 = 1
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_METHODS = {_STORED: "stored", _DEFLATED: "deflate", _ZSTD: "zstd"}
_MOST_ENTRIES = 2_000_000
_USUAL_EXTRA = 64  # bytes between the name and the content of an entry


class BrokenZipError(Exception):
    """The archive cannot be read; `code` is that of a problem."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def open_zip(path: Path) -> Iterator[ZipEntries]:
    """The entries of an archive."""
    file = os.open(path, os.O_RDONLY)
    try:
        yield ZipEntries(file, str(path))
    finally:
        os.close(file)


class ZipEntries:
    """The directory of an archive. Of several entries with one name, the last counts, as for the programs that append."""

    def __init__(self, file: int, name: str) -> None:
        self._file, self._name = file, name
        self._size = os.fstat(file).st_size
        self._offsets, self._packed, self._sizes = array("Q"), array("Q"), array("Q")
        self._checksums, self._methods = array("I"), array("H")
        self._numbers: dict[str, int] = {}
        self._read_directory(*self._directory())
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
        if sum(self._sizes[self._numbers[name]] for name in names) > most:
            limits.refuse_expansion(self._name, most, self._size)

    def read(self, name: str) -> bytes:
        """The content of an entry, of the size and with the checksum that the directory states."""
        number = self._numbers[name]
        size, packed, method = self._sizes[number], self._packed[number], self._methods[number]
        if size > limits.current().record_bytes // 2:
            limits.refuse_record(self._name, None, 2 * size, f"the entry {shorten(name)}")
        data = self._content(number, name, packed)
        try:
            content = data if method == _STORED else _unpacked(data, size, method)
        except (OSError, zlib.error, ValueError, MemoryError) as error:
            raise _damaged(name) from error
        if len(content) != size or zlib.crc32(content) != self._checksums[number]:
            raise _damaged(name)
        return content

    def _content(self, number: int, name: str, packed: int) -> bytes:
        offset = self._offsets[number]
        most = _LOCAL.size + len(name.encode()) + _USUAL_EXTRA + packed
        data = os.pread(self._file, most, offset)
        if len(data) < _LOCAL.size or data[:4] != b"PK\3\4":
            raise _damaged(name)
        *_, name_size, extra_size = _LOCAL.unpack_from(data)
        start = _LOCAL.size + name_size + extra_size
        if offset + start + packed > self._ends[number]:
            raise BrokenZipError("FORMAT", f"the entry {shorten(name)} overlaps the next")
        if start + packed > len(data):
            return os.pread(self._file, packed, offset + start)
        return data[start : start + packed]

    def _directory(self) -> tuple[bytes, int]:
        """The bytes of the directory, and the number of its entries."""
        length = min(self._size, _END.size + _LONGEST_COMMENT)
        tail = os.pread(self._file, length, self._size - length)
        place = tail.rfind(b"PK\5\6")
        if place < 0 or place + _END.size > len(tail):
            raise BrokenZipError("TRUNCATED", "the directory at the end of the zip file is missing")
        end = self._size - length + place
        _, _, _, _, count, size, offset, _ = _END.unpack_from(tail, place)
        if offset == _NOT_HERE or size == _NOT_HERE or count == 0xFFFF:
            end, count, size, offset = self._directory_64(end, count, size, offset)
        if offset + size > end or count * _DIRECTORY.size > size:
            raise BrokenZipError("FORMAT", "the directory at the end of the zip file is damaged")
        if count > _MOST_ENTRIES or size > limits.current().record_bytes:
            raise BrokenZipError("TOO_LONG", f"the zip file has {count:,} entries, more than can be read")
        return os.pread(self._file, size, offset), count

    def _directory_64(self, end: int, count: int, size: int, offset: int) -> tuple[int, int, int, int]:
        locator = os.pread(self._file, _LOCATOR.size, max(0, end - _LOCATOR.size))
        if len(locator) < _LOCATOR.size or locator[:4] != b"PK\6\7":
            return end, count, size, offset
        place = _LOCATOR.unpack(locator)[2]
        record = b"" if place > self._size else os.pread(self._file, _END_64.size, place)
        if len(record) < _END_64.size or record[:4] != b"PK\6\6":
            raise BrokenZipError("FORMAT", "the directory at the end of the zip file is damaged")
        *_, count, size, offset = _END_64.unpack(record)
        return place, count, size, offset

    def _read_directory(self, data: bytes, count: int) -> None:
        place, unpack, fixed = 0, _DIRECTORY.unpack_from, _DIRECTORY.size
        for number in range(count):
            if place + fixed > len(data) or data[place : place + 4] != b"PK\1\2":
                raise BrokenZipError("FORMAT", "the directory at the end of the zip file is damaged")
            entry = unpack(data, place)
            _, _, _, flags, method, _, _, checksum, packed, size, name_size, extra_size, comment, *_, offset = entry
            start = place + fixed
            name = _name(data[start : start + name_size])
            place = start + name_size + extra_size + comment
            if place > len(data):
                raise BrokenZipError("FORMAT", "the directory at the end of the zip file is damaged")
            if _NOT_HERE in (packed, size, offset):
                extra = data[start + name_size : start + name_size + extra_size]
                size, packed, offset = _with_zip_64(extra, size, packed, offset)
            if flags & 1:
                raise BrokenZipError("FORMAT", f"the entry {shorten(name)} is encrypted")
            if method not in _METHODS:
                known = ", ".join(_METHODS.values())
                message = f"the entry {shorten(name)} is packed with method {method}, which cannot be read. Known: {known}"
                raise BrokenZipError("FORMAT", message)
            if max(offset, packed) > self._size or size >= 1 << 62:
                raise BrokenZipError("TRUNCATED", f"the entry {shorten(name)} is not in the file: its end is missing")
            self._offsets.append(offset)
            self._packed.append(packed)
            self._sizes.append(size)
            self._checksums.append(checksum)
            self._methods.append(method)
            self._numbers[name] = number

    def _checked_ends(self) -> array[int]:
        """For each entry, where the next one starts; entries that overlap are refused."""
        offsets = np.frombuffer(self._offsets, np.uint64).astype(np.int64) if self._offsets else np.zeros(0, np.int64)
        packed = np.frombuffer(self._packed, np.uint64).astype(np.int64) if self._packed else offsets
        order = np.argsort(offsets, kind="stable")
        ends = np.full(len(offsets), self._size, np.int64)
        ends[order[:-1]] = offsets[order[1:]]
        overlapping = np.flatnonzero(offsets + _LOCAL.size + packed > ends)
        if len(overlapping):
            names = {number: name for name, number in self._numbers.items()}
            name = shorten(names.get(int(overlapping[0]), "of that name"))
            raise BrokenZipError("FORMAT", f"the entry {name} overlaps the next, or ends after the file")
        return array("q", ends.tobytes())


def _name(raw: bytes) -> str:
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        name = raw.decode("cp437")
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or "\0" in name:
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
