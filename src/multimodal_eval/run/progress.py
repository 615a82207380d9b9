"""Record the progress of a run in its folder, so that the viewer can show it: every stage, on every engine."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from time import time

import msgspec

from multimodal_eval.core.errors import MissingFileError, MultimodalEvalError, described
from multimodal_eval.core.progress import Progress, ProgressLine, can_redraw, named, noted, silent
from multimodal_eval.data.runs.checksums import RESULTS
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import LocalStorage

__all__ = [
    "FILE",
    "ProgressRecord",
    "is_recorded",
    "read_progress",
    "recorded",
    "remove_progress",
    "works_on",
    "write_progress",
]

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
                self._write(time(), is_due=True, ended=reason[:_LONGEST])

    def _write(self, now: float, *, is_due: bool, ended: str | None = None) -> None:
        if not is_due and now - self._written < INTERVAL:
            return
        self._written = now
        record = ProgressRecord(
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
        write_progress(self._folder, record)


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


# progress.json: what the process that works on a run is doing, for others to read.
#
# It is written from time to time and removed when the run ends well. Nothing depends on it: a run folder without it, or
# with a damaged one, is complete.

FILE = "progress.json"
_LARGEST = 1 << 16  # bytes; a larger file is not ours


class ProgressRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stage of a run: how many samples are done, since when, and by which process."""

    stage: str
    done: int
    total: int | None = None  # None if it is not known yet
    started: float  # when this process started the stage: seconds since 1970
    first: int = 0  # samples that were done then
    advanced: float = 0.0  # when `done` last changed
    updated: float = 0.0
    notes: list[str] = []  # metrics, failures, costs
    host: str
    pid: int
    ended: str | None = None  # why the process stopped before the run was finished


def is_recorded(folder: RunFolder) -> bool:
    """Whether progress is recorded in a folder: only on a local disk, and not in a temporary folder."""
    return type(folder.storage) is LocalStorage


def write_progress(folder: RunFolder, record: ProgressRecord) -> None:
    """Replace the record. A failure to write it is ignored: the run is more important."""
    with suppress(OSError):
        folder.storage.write_bytes(FILE, msgspec.json.encode(record), is_temporary=True)


def remove_progress(folder: RunFolder) -> None:
    """Remove the record."""
    with suppress(OSError):
        folder.storage.remove(FILE)


def read_progress(folder: RunFolder) -> ProgressRecord | None:
    """The record; None if there is none that this version understands."""
    try:
        content = folder.storage.read_bytes(FILE, 0, _LARGEST + 1)
        record = msgspec.json.decode(content, type=ProgressRecord)
    except (MissingFileError, OSError, msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError, ValueError):
        return None
    numbers = (record.done, record.first, record.total or 0, record.started, record.advanced, record.updated)
    return record if all(0 <= number < 1 << 40 for number in numbers) else None


def works_on(record: ProgressRecord) -> bool | None:
    """Whether the process of a record is still working; None if this machine cannot tell."""
    if record.ended is not None:
        return False
    if record.host != socket.gethostname() or os.name == "nt":  # on Windows, asking would end the process
        return None
    if not 0 < record.pid < 1 << 31:
        return False
    try:
        os.kill(record.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        return True
    return True
