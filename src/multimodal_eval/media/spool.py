"""Content that is wanted once more: kept in memory, or beyond some megabytes in one temporary file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from tempfile import SpooledTemporaryFile
from threading import Lock
from types import TracebackType
from typing import Self

IN_MEMORY = 32 << 20


class Spool:
    """Takes content from any thread and gives it back as often as asked, until it is closed."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._file = SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115 - closed with the spool
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def keep(self, content: bytes) -> Callable[[], bytes]:
        """Put content away; the call gives it back."""
        with self._lock:
            start = self._file.seek(0, 2)
            self._file.write(content)
        return partial(self._read, start, len(content))

    def _read(self, start: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)
