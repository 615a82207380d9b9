"""Record the progress of a run in its folder, so that the viewer can show it: every stage, on every engine."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from time import time

from multimodal_eval.core.errors import MultimodalEvalError, described
from multimodal_eval.core.progress import Progress, ProgressLine, can_redraw, named, noted, silent
from multimodal_eval.data.runs.checksums import RESULTS
from multimodal_eval.data.runs.progress_file import ProgressRecord, is_recorded, remove_progress, write_progress
from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = ["recorded"]

INTERVAL = 1.0  # seconds between two records of the same stage
_LONGEST = 1_000  # characters of a note or a reason


@contextmanager
def recorded(folder: RunFolder, progress: Progress) -> Iterator[Progress]:
    """The callback of a run, which also writes what it is told to the folder.

    The record is removed at the end. After an error it stays, with the reason, until the run is continued.
    """
    if not is_recorded(folder):
        yield progress
        return
    recording = _Recorded(folder, progress)
    try:
        yield recording
    except BaseException as error:
        recording.end(_reason(error))
        raise
    remove_progress(folder)


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return str(error) if isinstance(error, MultimodalEvalError) else described(error)


class _Recorded:
    """A progress callback."""

    def __init__(self, folder: RunFolder, progress: Progress) -> None:
        self._folder, self._progress = folder, progress
        self._lock = Lock()
        self._stage, self._notes = "", list[str]()
        self._done, self._first = 0, 0
        self._total: int | None = None
        self._started = self._advanced = time()
        self._written = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Record how many samples of a stage are done."""
        self._progress(stage, done, total)
        with self._lock:
            now = time()
            is_new = stage != self._stage
            if is_new:
                self._stage, self._notes = stage, []
                self._started, self._first = now, done
            if is_new or done != self._done:
                self._advanced = now
            self._done, self._total = done, total
            self._write(now, is_due=is_new)

    def working_on(self, text: str) -> None:
        """Record what the stage computes, or what has failed."""
        named(self._progress, text)
        self._note([text] if text else [])

    def noting(self, notes: Sequence[str]) -> None:
        """Record notes on the stage."""
        noted(self._progress, notes)
        self._note(notes)

    def _note(self, notes: Sequence[str]) -> None:
        with self._lock:
            is_first = not self._notes and bool(notes)
            self._notes = [note[:_LONGEST] for note in notes]
            self._write(time(), is_due=is_first)

    def end(self, reason: str) -> None:
        """Record why the run stopped, if it is neither discarded nor finished."""
        with self._lock:
            if self._folder.storage.exists(RESULTS):
                remove_progress(self._folder)
            elif self._folder.storage.exists("run.json"):
                write_progress(self._folder, self._record(time(), reason[:_LONGEST]))

    def _write(self, now: float, *, is_due: bool) -> None:
        if is_due or now - self._written >= INTERVAL:
            self._written = now
            write_progress(self._folder, self._record(now, None))

    def _record(self, now: float, ended: str | None) -> ProgressRecord:
        return ProgressRecord(
            stage=self._stage,
            done=self._done,
            total=self._total,
            started=self._started,
            first=self._first,
            advanced=self._advanced,
            updated=now,
            notes=self._notes,
            host=socket.gethostname(),
            pid=os.getpid(),
            ended=ended,
        )


@contextmanager
def shown(progress: Progress | bool | None) -> Iterator[Progress]:
    """The callback for a run: the given one, or a line if it is True, or in terminals and notebooks if it is None.

    The line is removed at the end.
    """
    if callable(progress):
        yield progress
    elif progress or (progress is None and sys.stderr is not None and can_redraw(sys.stderr)):
        with ProgressLine() as line:
            yield line
    else:
        yield silent
