"""A file of JSON lines that people's work is appended to: whole lines, on the disk, or a clear error.

Several processes and threads may append at the same time: each takes a lock for one line. A line that a crash cut off
is moved to a file beside it (`NAME.partial`), so that the next line is readable and nothing is lost.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import msgspec

from multimodal_eval.core.errors import ConfigError, MultimodalEvalError
from multimodal_eval.core.system_files import BINARY, close_locked, read_at, try_lock
from multimodal_eval.data.runs.storage import sync_directory

__all__ = ["MOST_BYTES", "AppendFile", "NotSavedError", "Repair", "refuse_unsuitable"]

MOST_BYTES = 256 * 2**20  # of the file: nobody writes so much by hand
_LONGEST_LINE = 2**20
_WAIT = 30.0  # seconds for the lock
_PAUSE = 0.001  # seconds between two attempts; a process that appends line after line frees the lock for a moment only
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | BINARY
_APPENDING = os.O_RDWR | os.O_APPEND | _PLAIN
_CREATING = _APPENDING | os.O_CREAT
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _PLAIN  # a pipe does not make it wait


class NotSavedError(MultimodalEvalError):
    """A line that could not be written. The file is as it was before."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A line that was cut off and moved to another file."""

    bytes: int
    moved_to: Path

    def __str__(self) -> str:
        return f"the last line was incomplete ({self.bytes:,} bytes), and is now in {self.moved_to}"


def refuse_unsuitable(path: Path) -> Path:
    """The real path of a file to append to. Raises ConfigError for links, special files, and places in a run folder."""
    try:
        if path.is_symlink():
            raise ConfigError(f"{path} is a link. Name the file itself")
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path} is not a file")
        folder = path.parent.resolve(strict=True)
    except FileNotFoundError:
        raise ConfigError(f"the folder of {path} does not exist") from None
    except OSError as fault:
        raise ConfigError(f"{path} cannot be used: {fault.strerror or fault}") from None
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    for place in (folder, *folder.parents):
        if (place / "run.json").exists():
            raise ConfigError(f"{path} is in the run folder {place}, which is never changed. Choose a place beside it")
    return folder / path.name


class AppendFile:
    """Appends lines to a file and reads them. `path` comes from `refuse_unsuitable`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.repairs: list[Repair] = []  # that this process has made
        self._threads = Lock()

    def append(self, record: bytes) -> None:
        """Add a line and wait until it is on the disk. Raises NotSavedError, and then the file is as before."""
        assert b"\n" not in record
        if len(record) >= _LONGEST_LINE:
            raise NotSavedError(f"nothing was saved: a line may have {_LONGEST_LINE:,} bytes at most")
        try:
            with self._opened(_CREATING) as handle:
                self._repair(handle)
                size = os.fstat(handle).st_size
                if size + len(record) >= MOST_BYTES:
                    raise NotSavedError(f"nothing was saved: {self.path.name} has reached {MOST_BYTES:,} bytes")
                self._write(handle, record + b"\n", size)
        except OSError as fault:
            raise NotSavedError(f"nothing was saved: {self.path.name}: {fault.strerror or fault}") from None

    def repair(self) -> None:
        """Move a last line that was cut off to another file."""
        try:
            with self._opened(_APPENDING) as handle:
                self._repair(handle)
        except FileNotFoundError:
            return
        except OSError as fault:
            raise NotSavedError(f"{self.path} cannot be written: {fault.strerror or fault}") from None

    def read(self, start: int = 0) -> tuple[list[bytes], int]:
        """The whole lines from a place on, and the place after them; no lines if there is no file."""
        try:
            with self._opened(_READING) as handle:
                end = os.fstat(handle).st_size
                if end > MOST_BYTES:
                    raise OSError(f"it has more than {MOST_BYTES:,} bytes")
                if end < start:  # somebody has written the file anew
                    start = 0
                content = _between(handle, start, end)
        except FileNotFoundError:
            return [], 0
        whole = content[: content.rfind(b"\n") + 1]
        return whole.split(b"\n")[:-1], start + len(whole)

    def identity(self) -> tuple[int, int, int, int]:
        """A key that changes whenever the file changes; zeros if there is no file."""
        try:
            known = os.lstat(self.path)
        except OSError:
            return 0, 0, 0, 0
        return known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        """The locked file. It is a plain file at its place: no link has taken that place since the start."""
        if self.path.parent.resolve() != self.path.parent:
            raise OSError("its folder has been replaced by a link")
        with self._threads:
            handle = self._open_locked(flags)
            try:
                yield handle
            finally:
                close_locked(handle)

    def _open_locked(self, flags: int) -> int:
        until = time.monotonic() + _WAIT
        while True:
            if not hasattr(os, "O_NOFOLLOW") and self.path.is_symlink():  # as the flag does
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            is_new = flags == _CREATING and not self.path.exists()
            handle = os.open(self.path, flags, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise OSError("it is not a plain file")
                if try_lock(handle, shared=flags == _READING) and _is_at(handle, self.path):
                    if is_new:
                        sync_directory(self.path.parent)
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
            if time.monotonic() > until:
                raise OSError(f"another process has locked it for more than {_WAIT:g} seconds")
            time.sleep(_PAUSE)

    def _write(self, handle: int, line: bytes, size: int) -> None:
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(handle, view) :]
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)
            raise

    def _repair(self, handle: int) -> None:
        tail = _tail(handle)
        if not tail:
            return
        size = os.fstat(handle).st_size
        if _is_record(tail):  # only its end is missing, as some editors leave it
            self._write(handle, b"\n", size)
            return
        beside = self.path.with_name(self.path.name + ".partial")
        kept = os.open(beside, _CREATING, 0o644)
        try:
            self._write(kept, tail + b"\n", os.fstat(kept).st_size)
        finally:
            os.close(kept)
        os.ftruncate(handle, size - len(tail))
        os.fsync(handle)
        self.repairs.append(Repair(len(tail), beside))


def _between(handle: int, start: int, end: int) -> bytes:
    pieces = []
    while start < end and (piece := read_at(handle, end - start, start)):
        pieces.append(piece)
        start += len(piece)
    return b"".join(pieces)


def _tail(handle: int) -> bytes:
    """What follows the last line end."""
    size = os.fstat(handle).st_size
    start = max(0, size - _LONGEST_LINE)
    content = _between(handle, start, size)
    tail = content[content.rfind(b"\n") + 1 :]
    if start and len(tail) == len(content):
        raise OSError(f"its last line has more than {_LONGEST_LINE:,} bytes")
    return tail


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _is_at(handle: int, path: Path) -> bool:
    """Whether the opened file is still at its place: an editor may have replaced it."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
