"""A journal: records that are appended one by one and survive the end of the process.

Each line is the CRC-32 of the record in hexadecimal, a space and the record, which is JSON without line breaks. A line
that was cut off when the process ended, or that is damaged, is ignored.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.system_files import BINARY

__all__ = ["Journal"]

_FLUSHED_EVERY = 256  # records between two flushes to the disk: a failure of the machine loses about these
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for its reader
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY | _PLAIN


class Journal:
    """Appends records to a file. A record is in the file when `append` returns, also if the process is killed then.

    A thread flushes the file to the disk from time to time, for a failure of the machine. Without a path, nothing is
    kept.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._unflushed = 0
        self._thread: ThreadPoolExecutor | None = None
        self._flushing: Future[None] | None = None

    def append(self, record: bytes) -> None:
        """Add a record. If the disk is full, the record is not added, and those before it are intact."""
        if self.path is None:
            return
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = _opened(self.path)
        view = memoryview(b"%08x %s\n" % (zlib.crc32(record), record))
        while view:
            view = view[os.write(self._descriptor, view) :]
        self._unflushed += 1
        if self._unflushed >= _FLUSHED_EVERY:
            self._flush_later(self._descriptor)

    def _flush_later(self, descriptor: int) -> None:
        if self._flushing is not None:
            if not self._flushing.done():
                return
            self._flushing.result()  # raises what the disk has reported
        self._unflushed = 0
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "journal")
        self._flushing = self._thread.submit(_flush, descriptor)

    def records(self) -> Iterator[bytes]:
        """The intact records, in the order in which they were appended."""
        if self.path is None or not self.path.is_file():
            return
        with self.path.open("rb") as stream:
            for line in stream:
                check, _, record = line.removesuffix(b"\n").partition(b" ")
                if check == b"%08x" % zlib.crc32(record):
                    yield record

    def close(self) -> None:
        """Flush and close the file."""
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            if self._flushing is not None:
                self._flushing.result()
            _flush(descriptor)
        finally:
            self._flushing = None
            os.close(descriptor)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _flush(descriptor: int) -> None:
    """Wait until the content of a file is on the disk. Only Linux can leave out the time of the change."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def _opened(path: Path) -> int:
    """A file to append to. A line that was cut off is ended, so that the next record starts on its own line."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise RunFolderError(f"{path} is not a regular file, so nothing can be appended to it. Remove it")
    if path.is_file() and path.stat().st_size:
        with path.open("rb+") as stream:
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":
                stream.write(b"\n")
    return os.open(path, _FLAGS, 0o644)
