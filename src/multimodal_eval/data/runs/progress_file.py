"""progress.json: what the process that works on a run is doing, for others to read.

It is written from time to time and removed when the run ends well. Nothing depends on it: a run folder without it, or
with a damaged one, is complete.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import msgspec

from multimodal_eval.core.errors import MissingFileError
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import LocalStorage

__all__ = ["FILE", "ProgressRecord", "is_recorded", "read_progress", "remove_progress", "works_on", "write_progress"]

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
