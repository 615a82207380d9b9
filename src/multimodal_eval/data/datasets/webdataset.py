"""WebDataset shards: tar archives, in which consecutive files with the same name but for the extension are a sample.

    00017.jpg  00017.json  00017.txt  00017.cls

The name is the id. Images, audio and video become these fields, `.txt` is the caption, `.cls` the expected answer, and
the keys of `.json` are columns. Files with other extensions are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO

import msgspec

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.datasets.dataset_format import DatasetFormat, natural_key
from multimodal_eval.data.logs.log_format import Head
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import DamagedStreamError, open_bytes
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT", "BrokenTarError", "TarEntry", "tar_entries"]


# The files in a tar archive, one after the other, in bounded memory. Nothing is extracted.
#
# Links, devices, names that leave the archive, and entries that are larger than a record may be are refused.
#
# Reference:
#     POSIX.1-2001 pax interchange format; GNU tar's long names (type L).

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


_MEMBER = re.compile(r"((?:.*/|)[^./][^./]*)\.([^/]*)", re.DOTALL)  # as webdataset: up to the first dot of the name
_MARKER = re.compile(r"__[^/]*__(?:$|/)")  # such as __meta__, as webdataset
_MEDIA = {
    **dict.fromkeys(("jpg", "jpeg", "png", "webp", "gif", "bmp", "ppm", "pgm", "tif", "tiff"), "image"),
    **dict.fromkeys(("wav", "mp3", "flac", "ogg"), "audio"),
    **dict.fromkeys(("mp4", "webm", "mkv", "mov", "avi"), "video"),
}
_NAMED = {"txt": "caption", "cls": "expected_answer"}
_TEXTS = ("json", *_NAMED)
Member = tuple[str, str, bytes]  # key, extension, content


class WebDataset(DatasetFormat):
    """The format of WebDataset."""

    name = "webdataset"
    suffixes = (".tar",)

    def recognises(self, head: Head) -> bool:
        """By the suffix, so that a damaged archive is reported as one."""
        return True

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per key, in the order of the archive."""
        file = str(path)
        try:
            with open_bytes(path) as stream:
                members = _members(stream, file)
                for number, (key, group) in enumerate(groupby(members, itemgetter(0)), 1):
                    record = _record(key, list(group), problems, file, number)
                    if record is not None:
                        yield number, record
        except (BrokenTarError, DamagedStreamError) as fault:
            problems.add(fault.code, f"{fault}.", file=file)


FORMAT = WebDataset()


def _members(stream: IO[bytes], file: str) -> Iterator[Member]:
    """(key, extension, content) of the members that belong to a sample. A sample must fit in a record's memory."""
    key, size = "", 0
    for entry in tar_entries(stream, file):
        match = _MEMBER.fullmatch(entry.name.removeprefix("./"))
        if match is None or _MARKER.match(entry.name):
            continue
        key, size = match[1], (size if match[1] == key else 0) + len(entry.content)
        if size > limits.current().record_bytes:
            limits.refuse_record(file, None, size, f"the sample {shorten(key)}")
        extension = match[2].lower()
        wanted = extension.rpartition(".")[2] in (*_MEDIA, *_TEXTS)
        yield key, extension, entry.content if wanted else b""


def _record(key: str, members: list[Member], problems: Problems, file: str, number: int) -> Columns | None:
    """The columns of a sample; None if a member cannot be read, which is a problem."""
    contents: dict[str, bytes] = {}
    for _, extension, content in members:
        if extension in contents:
            message = f"the sample {shorten(key)} has two files with the extension {shorten(extension)}"
            problems.add("DUPLICATE", message, file=file, line=number)
            return None
        contents[extension] = content
    record: Columns = {"id": key, "__key__": key}
    for extension in sorted(contents, key=_json_first):
        if extension.rpartition(".")[2] not in _TEXTS:
            continue
        try:
            columns = _text_columns(extension, contents[extension], file, number)
            named = _NAMED.get(extension, "")
            if record.get(named, columns.get(named)) != columns.get(named):  # the JSON has another one
                columns = {extension: columns[named]}
            record |= columns
        except ValueError as fault:
            code = "ENCODING" if isinstance(fault, UnicodeDecodeError) else "SYNTAX"
            problems.add(code, f"{shorten(f'{key}.{extension}')} {_reason(fault)}", file=file, line=number)
            return None
    return record | _media(contents)


def _reason(fault: ValueError) -> str:
    return f"is not valid UTF-8, at byte {fault.start}" if isinstance(fault, UnicodeDecodeError) else str(fault)


def _text_columns(extension: str, content: bytes, file: str, number: int) -> Columns:
    """The columns of a JSON object, a caption or a class. A longer extension, as in `0.info.json`, is a column."""
    head, _, kind = extension.rpartition(".")
    if kind == "json":
        limits.check_json(content, file, number)
        value = _json(content)
        if head:
            return {head: value}
        if not isinstance(value, dict):
            raise ValueError(f"must be a JSON object. Got {shorten(value)} instead.")
        return value
    text = content.decode("utf-8-sig")
    if head:
        return {extension: text}
    return {_NAMED[kind]: text if kind == "txt" else text.strip()}


def _json_first(extension: str) -> bool:
    return not extension.endswith("json")


def _json(content: bytes) -> object:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise ValueError(f"is not valid JSON: {fault}") from None


def _media(contents: dict[str, bytes]) -> Columns:
    """The media: one image is `image`, several are `images`, in the order of their extensions."""
    record: Columns = {}
    for field in dict.fromkeys(_MEDIA.values()):
        named = {each: data for each, data in contents.items() if _MEDIA.get(each.rpartition(".")[2]) == field}
        media = [named[extension] for extension in sorted(named, key=natural_key)]
        if field == "image" and len(media) > 1:
            record["images"] = media
        elif media:
            record[field] = media[0]
    return record
