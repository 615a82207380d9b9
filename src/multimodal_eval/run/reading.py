"""Read an input in parallel: count its splits, read them into parts, and compare the hashes of their ids.

Whatever is unusual (a refused record, two ids with the same hash, columns of mixed types) only raises a doubt. The
input is then read in this process from start to end, which reports every problem with its file and line. So both ways
store the same parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.records import InputFile
from multimodal_eval.data.readers.blocks import DamagedStreamError
from multimodal_eval.data.readers.inputs import describe_file
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.ranges import RangeReader, TooLongError, id_hashes
from multimodal_eval.data.readers.records import CheckerNotes
from multimodal_eval.data.readers.splits import MiscountedError, Range, Task, counted
from multimodal_eval.data.runs.run_folder import RunFolder

ROWS_PER_BUCKET = 1 << 20
MAX_BUCKETS = 1024
_STOP = "stop"  # exists in the scratch folder if there is a doubt


class DoubtError(Exception):
    """The input must be read from start to end."""


_DOUBTS = (
    DoubtError,
    MiscountedError,
    TooLongError,
    DamagedStreamError,
    MultimodalEvalError,
    OSError,
    pa.ArrowException,
)


@dataclass(frozen=True)
class ReadTask:
    """A task, how to read it, and where to put the hashes of its ids."""

    task: Task
    reader: RangeReader
    part_size: int
    buckets: int


@dataclass(frozen=True)
class Checksums:
    """Files whose checksums are needed for run.json."""

    files: tuple[Path, ...]


@dataclass(frozen=True)
class UniqueTask:
    """A bucket of hashes, from all tasks."""

    bucket: int
    tasks: int


@dataclass(frozen=True)
class ReadNotes:
    """What a task has noted about its samples."""

    checker: CheckerNotes
    columns: ColumnsSeen


def count(splits: tuple[Range, ...]) -> list[Range] | None:
    """The ranges of some splits with their numbers of records. None if there is a doubt."""
    try:
        return list(chain.from_iterable(map(counted, splits)))
    except _DOUBTS:
        return None


def read(folder: RunFolder, config: RunConfig, item: ReadTask | Checksums) -> ReadNotes | list[InputFile] | None:
    """Store the parts of a task, or describe some files. None if there is a doubt."""
    if is_stopped(folder):
        return None
    try:
        if isinstance(item, Checksums):
            return list(map(describe_file, item.files))
        return _read(folder, config, item)
    except _DOUBTS:
        stop(folder)
        return None


def is_stopped(folder: RunFolder) -> bool:
    """Whether another task has a doubt, so that nothing needs to be read."""
    return folder.read_piece(_STOP, 0) is not None


def stop(folder: RunFolder) -> None:
    """Let the tasks that have not started end immediately."""
    folder.write_pieces(_STOP, [b""])


def _read(folder: RunFolder, config: RunConfig, item: ReadTask) -> ReadNotes:
    task, problems = item.task, Problems()
    checker = item.reader.checker(task.ranges[0].file.path, problems)
    columns = ColumnsSeen(config)
    row, hashes = task.first_row, []
    for part in item.reader.parts(task, checker, problems, item.part_size):
        expected = min(item.part_size, task.first_row + task.rows - row)
        if problems.total or len(part) != expected:  # a part ends early if its media are large
            raise DoubtError
        if columns.fields:
            columns.see(part.samples(columns.fields))
        folder.write_part("samples", row // item.part_size, part.table(row))
        hashes.append(id_hashes(part))
        row += len(part)
    if problems.total or row != task.first_row + task.rows:
        raise DoubtError
    folder.write_pieces(ids_of(task.number), in_buckets(np.concatenate(hashes), item.buckets))
    return ReadNotes(checker.notes, columns)


def ids_of(task: int) -> str:
    """The scratch file with the hashes of a task's ids."""
    return f"ids.task-{task:05d}"


def in_buckets(hashes: NDArray[np.int64], buckets: int) -> list[bytes]:
    """The hashes in buckets of equal ranges, sorted. Equal hashes are a doubt."""
    ordered = np.sort(hashes.view(np.uint64))
    refuse_equal(ordered)
    return [piece.tobytes() for piece in np.split(ordered, bounds_of(ordered, buckets))]


def bounds_of(ordered: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    """The places at which the second and all further buckets start among sorted hashes."""
    limits = np.array([(number << 64) // buckets for number in range(1, buckets)], np.uint64)
    return np.searchsorted(ordered, limits)


def refuse_equal(ordered: NDArray[np.uint64]) -> None:
    """Raise a DoubtError if two hashes are equal."""
    if len(ordered) > 1 and bool((ordered[1:] == ordered[:-1]).any()):
        raise DoubtError


def bucket_count(rows: int) -> int:
    """The number of buckets for some rows."""
    return min(MAX_BUCKETS, -(-rows // ROWS_PER_BUCKET))


def unique(folder: RunFolder, item: UniqueTask) -> bool:
    """Whether all hashes of a bucket are different."""
    pieces = (folder.read_piece(ids_of(task), item.bucket) for task in range(item.tasks))
    ordered = np.sort(np.concatenate([np.frombuffer(piece or b"", np.uint64) for piece in pieces]))
    return not bool((ordered[1:] == ordered[:-1]).any())
