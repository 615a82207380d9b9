"""Write the parts of a run in threads, while the next ones are read."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from multimodal_eval.core.machine import cores
from multimodal_eval.data.runs.run_folder import RunFolder

_MOST_THREADS = 4


class PartWriter:
    """Writes parts of samples, a few at a time. All are written when the `with` statement ends."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._threads = min(cores(), _MOST_THREADS) if isinstance(folder.location, Path) else 1
        self._pool: ThreadPoolExecutor | None = None
        self._pending: deque[Future[None]] = deque()

    def write(self, number: int, table: Any) -> None:
        """Write a part. An error may be raised by a later call."""
        if self._threads == 1 or self._folder.defers:
            self._folder.write_part("samples", number, table)
            return
        self._pool = self._pool or ThreadPoolExecutor(self._threads)
        if len(self._pending) == self._threads:
            self._pending.popleft().result()
        self._pending.append(self._pool.submit(self._folder.write_part, "samples", number, table))

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        if error is None:
            for written in self._pending:
                written.result()
