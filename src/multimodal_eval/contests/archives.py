"""Zip archives: members of submitted ones, read into memory with a limit, and archives with reproducible bytes."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TypeVar

from multimodal_eval.core.errors import ConfigError, described, shorten
from multimodal_eval.data.readers.problems import Problems

T = TypeVar("T")
MAX_RATIO = 300  # unpacked to packed bytes; texts have 5 to 20
FREE_BYTES = 1 << 22  # of a member whose ratio does not matter
_DAMAGED = (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, zlib.error)  # with a message for people
# What Python's zipfile raises for archives that are damaged, encrypted, or packed in a way that it does not know.
UNREADABLE = (
    *_DAMAGED,
    lzma.LZMAError,
    struct.error,
    ValueError,
    RuntimeError,
    OverflowError,
    LookupError,
    MemoryError,
)


def read_archive(path: Path, read: Callable[[zipfile.ZipFile], T], problems: Problems, how: str) -> T | None:
    """What `read` returns for an opened archive; a problem is noted and None returned if it cannot be opened."""
    try:
        with zipfile.ZipFile(path) as archive:
            return read(archive)
    except UNREADABLE as error:
        problems.add("FORMAT", f"not a readable zip file: {_reason(error)}", file=str(path), hint=f"{how}.")
        return None


def member_content(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: str, problems: Problems, *, most: int, what: str, how: str
) -> bytes | None:
    """The bytes of a member; a problem is noted and None returned if there are too many or none can be read.

    At most `most` bytes are read, and at most `MAX_RATIO` times the packed ones. The size that an archive declares may
    be wrong, so reading stops at the limit too. `what` names the content, `how` says how to make the archive.
    """
    if member.flag_bits & 0x1:
        problems.add("FORMAT", f"{shorten(member.filename)} is encrypted", file=file, hint="Zip it without a password.")
        return None
    limit = min(most, max(FREE_BYTES, MAX_RATIO * max(0, member.compress_size)))
    try:
        with archive.open(member) as stream:
            content = b"" if member.file_size > most else stream.read(limit + 1)
    except UNREADABLE as error:
        message = f"{shorten(member.filename)} cannot be read: {_reason(error)}"
        problems.add("TRUNCATED", message, file=file, hint=f"{how}.")
        return None
    if member.file_size <= most and len(content) <= limit:
        return content
    is_bomb = member.file_size <= most and limit < most
    size = f"{MAX_RATIO} times its packed size" if is_bomb else f"{most >> 20} MB unpacked"
    problems.add("TOO_LONG", f"{shorten(member.filename)} is larger than {size}, too large for {what}", file=file)
    return None


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, _DAMAGED) else described(error)


# Zip archives with the same bytes for the same content.

_DATE = (2026, 1, 1, 0, 0, 0)
_SIZE = 128  # pixels of the logo
_COLOUR = (36, 84, 164)


Files = Mapping[str, bytes | Path]  # name -> content, or a file to read


def write_archive(target: Path | IO[bytes], files: Files) -> None:
    """Write an archive with these files, one after the other."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content.read_bytes() if isinstance(content, Path) else content)


def zipped(files: Files) -> bytes:
    """An archive inside another one."""
    buffer = io.BytesIO()
    write_archive(buffer, files)
    return buffer.getvalue()


def packages_in(folder: str | None) -> Iterator[tuple[str, Path]]:
    """(name, path) of the installed packages that a scoring program carries, below `packages/`."""
    if folder is None:
        return
    root = Path(folder)
    if not (root / "multimodal_eval").is_dir():
        raise ConfigError(
            f"`packages`: {folder} has no multimodal_eval. "
            f"Create it with: pip install --target {folder} multimodal-eval"
        )
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"packages/{path.relative_to(root).as_posix()}", path


def logo() -> bytes:
    """A square of one colour as PNG: platforms ask for an image."""
    row = b"\0" + bytes(_COLOUR) * _SIZE
    header = struct.pack(">IIBBBBB", _SIZE, _SIZE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(row * _SIZE)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
