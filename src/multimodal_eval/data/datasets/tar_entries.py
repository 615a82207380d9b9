"""The files in a tar archive, one after the other, in bounded memory. Nothing is extracted.

Links, devices, names that leave the archive, and entries that are larger than a record may be are refused.

Reference:
    POSIX.1-2001 pax interchange format; GNU tar's long names (type L).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers import limits

__all__ = ["BrokenTarError", "TarEntry", "tar_entries"]

BLOCK = 512
LONGEST_HEADER = 1 << 20  # of a long name or of pax records
_FILES = (b"0", b"\0", b"7")
_FOLDER, _LONG_NAME, _LONG_LINK, _PAX, _GLOBAL = b"5", b"L", b"K", b"x", b"g"
_OTHERS = {b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a pipe"}
_PIECE = 1 << 20


class BrokenTarError(Exception):
    """The archive cannot be read; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class TarEntry:
    """A file of the archive."""

    name: str
    content: bytes


def tar_entries(stream: IO[bytes], file: str) -> Iterator[TarEntry]:
    """The files of an archive; `file` names it in messages."""
    budget, name, size_said = limits.budget_of(stream), "", None
    number = 0
    while (header := _exactly(stream, BLOCK, at_end=True)) and header.strip(b"\0"):
        number += 1
        if budget is not None:
            budget.spend(1)
        _check(header, number)
        kind = header[156:157]
        size = _size(header) if size_said is None or kind not in _FILES else size_said
        if kind in (_LONG_NAME, _LONG_LINK, _PAX, _GLOBAL):
            if size > LONGEST_HEADER:
                raise BrokenTarError("TOO_LONG", f"the header of entry {number} has {size:,} bytes")
            content = _content(stream, size)
            if kind == _LONG_NAME:
                name = _text(content.rstrip(b"\0"))
            elif kind == _PAX:
                records = _pax_records(content)
                name, size_said = records.get("path", name), _pax_size(records.get("size"))
                if any(key.startswith("GNU.sparse") for key in records):
                    raise BrokenTarError("FORMAT", f"entry {number} is a sparse file, which is not read")
            continue
        name = name or _name(header)
        if kind == _FOLDER:
            _skip(stream, size)
        elif kind not in _FILES:
            what = _OTHERS.get(kind, f"of the unknown type {kind!r}")
            raise BrokenTarError("FORMAT", f"{shorten(name)} is {what}. Archives must contain plain files only")
        else:
            _refuse_outside(name)
            if size > limits.current().record_bytes:
                limits.refuse_record(file, None, size, f"the entry {shorten(name)}")
            yield TarEntry(name, _content(stream, size))
        name, size_said = "", None
    if number == 0 and header:
        raise BrokenTarError("EMPTY", "the archive has no entries")


def _exactly(stream: IO[bytes], size: int, *, at_end: bool = False) -> bytes:
    """So many bytes; none at the end of the stream, if that is allowed there."""
    pieces: list[bytes] = []
    left = size
    while left and (piece := stream.read(min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    if left and not (at_end and left == size):
        raise BrokenTarError("TRUNCATED", "the archive ends in the middle of an entry")
    return b"".join(pieces)


def _content(stream: IO[bytes], size: int) -> bytes:
    content = _exactly(stream, size)
    _exactly(stream, -size % BLOCK)
    return content


def _skip(stream: IO[bytes], size: int) -> None:
    left = size + -size % BLOCK
    while left:
        left -= len(_exactly(stream, min(left, _PIECE)))


def _check(header: bytes, number: int) -> None:
    """Compare the checksum, as POSIX sums it or with signed bytes, as some old programs did."""
    rest = header[:148] + b" " * 8 + header[156:]
    said = _octal(header[148:156])
    signed = sum(byte - 256 if byte > 127 else byte for byte in rest) if said != sum(rest) else said
    if said is None or said not in (sum(rest), signed):
        what = "the file is not a tar archive" if number == 1 else f"the header of entry {number} is damaged"
        raise BrokenTarError("SYNTAX", what)


def _octal(field: bytes) -> int | None:
    text = field.strip(b" \0")
    return int(text, 8) if re.fullmatch(rb"[0-7]+", text) else None


def _size(header: bytes) -> int:
    field = header[124:136]
    size = int.from_bytes(field[1:], "big") if field[0] == 0x80 else _octal(field)
    if size is None:
        raise BrokenTarError("SYNTAX", f"{shorten(_name(header))} has no valid size")
    return size


def _name(header: bytes) -> str:
    name, prefix = (part.partition(b"\0")[0] for part in (header[:100], header[345:500]))
    return _text(prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name)


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise BrokenTarError("ENCODING", f"the name {shorten(name)} is not valid UTF-8") from None


def _pax_records(content: bytes) -> dict[str, str]:
    """The records `LENGTH KEY=VALUE\\n` of a pax header."""
    records: dict[str, str] = {}
    while content:
        digits, blank, _ = content.partition(b" ")
        length = int(digits) if blank and digits.isdigit() and len(digits) < 10 else 0
        record = content[len(digits) + 1 : length]
        key, equals, value = record.removesuffix(b"\n").partition(b"=")
        if not equals or not record.endswith(b"\n"):
            raise BrokenTarError("SYNTAX", "a pax header is damaged")
        if key in (b"path", b"size") or key.startswith(b"GNU.sparse"):
            records[_text(key)] = _text(value)
        content = content[length:]
    return records


def _pax_size(size: str | None) -> int | None:
    if size is None:
        return None
    if not size.isdecimal() or not size.isascii() or len(size) > 19:
        raise BrokenTarError("SYNTAX", "a pax header has no valid size")
    return int(size)


def _refuse_outside(name: str) -> None:
    if name.startswith("/") or ".." in name.split("/") or "\0" in name or "\\" in name:
        raise BrokenTarError("FORMAT", f"the name {shorten(name)} leaves the archive")
