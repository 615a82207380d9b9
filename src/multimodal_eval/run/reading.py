"""The tasks of reading an input in parallel: count its splits, read them into parts, compare the hashes of their ids.

Whatever is unusual (a refused record, two ids with the same hash, columns of mixed types) only raises a doubt. The
input is then read in this process from start to end, which reports every problem with its file and line. So both ways
store the same parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.config import RunConfig
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.files import describe_file
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.ranges import RangeReader, id_hashes
from multimodal_eval.data.readers.records import CheckerNotes
from multimodal_eval.data.readers.splits import Range, Task, counted
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.doubts import DOUBTS, Done, DoubtError, bounds_of, is_stopped, refuse_equal, stop
from multimodal_eval.run.joining import CombineTask, JoinTask, PredictionTask, combine, divide, join, write_places


@dataclass(frozen=True)
class ReadTask:
    """A task, how to read it, and where to put the hashes of its ids."""

    task: Task
    reader: RangeReader
    part_size: int
    buckets: int
    is_joined: bool = False  # with predictions


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


ReadItem = tuple[Range, ...] | Checksums | ReadTask | PredictionTask | UniqueTask | JoinTask | CombineTask


def perform(folder: RunFolder, config: RunConfig, item: ReadItem) -> Any:
    """Do one task and return its result. None if it, or another one before it, has a doubt."""
    if is_stopped(folder):
        return None
    with limits.using(config.max_expansion, config.max_record_mb):
        return _performed(folder, config, item)


def _performed(folder: RunFolder, config: RunConfig, item: ReadItem) -> Any:
    try:
        match item:
            case ReadTask():
                return _read(folder, config, item)
            case PredictionTask():
                return divide(folder, item)
            case UniqueTask():
                return _refuse_duplicates(folder, item)
            case JoinTask():
                return join(folder, item)
            case CombineTask():
                return combine(folder, config, item)
            case Checksums():
                return list(map(describe_file, item.files))
            case _:
                return list(chain.from_iterable(map(counted, item)))
    except DOUBTS:
        stop(folder)
        return None


def _read(folder: RunFolder, config: RunConfig, item: ReadTask) -> ReadNotes:
    task, problems = item.task, Problems()
    checker = item.reader.checker(task.ranges[0].file.path, problems)
    columns = ColumnsSeen(config)
    row, hashes = task.first_row, []
    for part in item.reader.parts(task, checker, problems, item.part_size):
        expected = min(item.part_size, task.first_row + task.rows - row)
        if problems.total or len(part) != expected:  # a part ends early if its media are large
            raise DoubtError
        if columns.fields and not item.is_joined:
            columns.see(part.samples(columns.fields))
        folder.write_part("samples", row // item.part_size, part.table(row))
        hashes.append(id_hashes(part))
        row += len(part)
    if problems.total or row != task.first_row + task.rows:
        raise DoubtError
    if item.is_joined:
        write_places(folder, task, np.concatenate(hashes), item.buckets)
    else:
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


def _refuse_duplicates(folder: RunFolder, item: UniqueTask) -> Done:
    pieces = (folder.read_piece(ids_of(task), item.bucket) for task in range(item.tasks))
    refuse_equal(np.sort(np.concatenate([np.frombuffer(piece or b"", np.uint64) for piece in pieces])))
    return Done()
