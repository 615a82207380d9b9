"""The decompressed bytes of a file, in blocks of complete lines. Only \\n ends a record."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.data.readers import limits

BLOCK = 1 << 20
PIECE = 1 << 14  # small, so that little of a damaged stream is lost
BOM = b"\xef\xbb\xbf"
COMPRESSED = (".gz", ".zst")


class DamagedStreamError(Exception):
    """The compressed stream is truncated or invalid; `code` says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Block(msgspec.Struct, frozen=True):
    """Some complete lines: their bytes, the number of the first line and its offset in the (decompressed) file."""

    data: bytes
    first_line: int
    offset: int
    ends_in_newline: bool
    budget: limits.Budget | None = None  # of a compressed file


def bare_suffix(path: Path) -> str:
    """The suffix without compression: `.jsonl` for answers.jsonl.gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@contextmanager
def open_bytes(path: Path, *, whole: bool = False) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed according to its suffix; `whole`: all of it will be in memory."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".gz":
            with gzip.open(path, "rb") as stream:
                yield limits.bounded(stream, str(path), path.stat().st_size, whole=whole)
        elif suffix == ".zst":
            import pyarrow as pa

            with pa.OSFile(str(path)) as file, pa.CompressedInputStream(file, "zstd") as stream:
                yield limits.bounded(_Unbuffered(stream), str(path), path.stat().st_size, whole=whole)
        else:
            with path.open("rb") as stream:
                yield stream
    except EOFError as end:
        raise DamagedStreamError("TRUNCATED", "the compressed file ends too early") from end
    except (gzip.BadGzipFile, zlib.error) as fault:
        raise DamagedStreamError("ENCODING", f"not a readable {suffix} file: {fault}") from fault
    except OSError as fault:
        if suffix != ".zst" or fault.errno is not None:
            raise
        code = "TRUNCATED" if "runcated" in str(fault) else "ENCODING"
        raise DamagedStreamError(code, f"not a readable .zst file: {fault}") from fault


class _Unbuffered:
    """An Arrow stream with the two methods that the readers use."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return bytes(self._stream.read(None if size < 0 else size))

    def readable(self) -> bool:
        return True


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks of the stream; if it is damaged, everything before the damage, then the error."""
    piece_size = BLOCK if isinstance(stream, io.BufferedReader) else PIECE  # a plain file is not damaged
    while True:
        pieces: list[bytes] = []
        size = 0
        try:
            while size < BLOCK and (piece := stream.read(piece_size)):
                pieces.append(piece)
                size += len(piece)
        except (EOFError, OSError, zlib.error):
            yield b"".join(pieces)
            raise
        if not pieces:
            return
        yield b"".join(pieces)


def line_blocks(stream: IO[bytes], file: str) -> Iterator[Block]:
    """The stream in blocks of complete lines; the last may lack its newline."""
    line, offset, rest = 1, 0, b""
    budget, first = limits.budget_of(stream), True
    for chunk in _chunks(stream):
        data = rest + chunk
        if first:
            refuse_utf16(data, file)
            if data.startswith(BOM):
                data, offset = data[len(BOM) :], len(BOM)
            first = False
        cut = data.rfind(b"\n", len(rest)) + 1 if len(rest) < len(data) else 0
        if cut == 0:
            rest = data
            if len(rest) > limits.current().text_bytes:
                limits.refuse_text(file, line)
            continue
        yield Block(data[:cut], line, offset, True, budget)
        line += data.count(b"\n", 0, cut)
        offset += cut
        rest = data[cut:]
    if rest:
        yield Block(rest, line, offset, False, budget)


def refuse_utf16(head: bytes, file: str) -> None:
    """Refuse UTF-16 with a clear message; other checks would report its NUL bytes."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or (b"\0" in head[:4] and len(head) >= 4):
        problem = Problem(
            code="ENCODING",
            message="the file looks like UTF-16, at byte 0; it must be UTF-8.",
            file=file,
            hint="Convert it, for example with: iconv -f UTF-16 -t UTF-8",
        )
        raise InputError([problem])
