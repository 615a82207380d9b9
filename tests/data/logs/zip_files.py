"""Zip files as other programs write them, and as they should not be."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

STORED, DEFLATED, ZSTD = 0, 8, 93


@dataclass
class Entry:
    """An entry; the numbers that are not None replace the true ones in the directory."""

    name: str
    content: bytes = b"{}"
    method: int = ZSTD
    flags: int = 0x800
    size: int | None = None
    packed_size: int | None = None
    checksum: int | None = None
    offset: int | None = None
    packed: bytes | None = None
    extra: bytes = b""  # of the local header


def zip_bytes(entries: list[Entry], *, zip_64: bool = False, comment: bytes = b"") -> bytes:
    """An archive, with the sizes in fields of zip64 if asked for."""
    file, directory = bytearray(), bytearray()
    for entry in entries:
        raw = entry.name.encode()
        packed = _packed(entry) if entry.packed is None else entry.packed
        checksum = zlib.crc32(entry.content) if entry.checksum is None else entry.checksum
        size = len(entry.content) if entry.size is None else entry.size
        packed_size = len(packed) if entry.packed_size is None else entry.packed_size
        offset = len(file) if entry.offset is None else entry.offset
        head = (45, entry.flags, entry.method, 0, 33, checksum, packed_size & 0xFFFFFFFF, size & 0xFFFFFFFF)
        file += struct.pack("<4s5H3L2H", b"PK\3\4", *head, len(raw), len(entry.extra)) + raw + entry.extra + packed
        extra = struct.pack("<2H3Q", 1, 24, size, packed_size, offset) if zip_64 else b""
        numbers = (0xFFFFFFFF,) * 3 if zip_64 else (packed_size, size, offset)
        fields = (45, 45, entry.flags, entry.method, 0, 33, checksum, *numbers[:2], len(raw), len(extra), 0, 0, 0, 0)
        directory += struct.pack("<4s6H3L5H2L", b"PK\1\2", *fields, numbers[2]) + raw + extra
    start, count = len(file), len(entries)
    end = start + len(directory)
    file += directory
    if zip_64:
        file += struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(directory), start)
        file += struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
        file += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, len(comment))
    else:
        file += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), start, len(comment))
    return bytes(file + comment)


def write_zip(path: Path, entries: list[Entry], *, zip_64: bool = False, comment: bytes = b"") -> Path:
    """The archive in a file."""
    path.write_bytes(zip_bytes(entries, zip_64=zip_64, comment=comment))
    return path


def _packed(entry: Entry) -> bytes:
    if entry.method == ZSTD:
        return bytes(pa.compress(entry.content, codec="zstd", asbytes=True))
    if entry.method == DEFLATED:
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        return deflate.compress(entry.content) + deflate.flush()
    return entry.content
