"""Plan the parallel reading of an input, hand out its tasks, and put their notes together in the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import InputFile
from multimodal_eval.data.readers.files import DataFile
from multimodal_eval.data.readers.inputs import FileInput, Input, Summary
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.ranges import RangeReader
from multimodal_eval.data.readers.splits import (
    Range,
    grouped,
    has_splits,
    is_divisible,
    is_parquet,
    split_size,
    splits_of,
    tasks_of,
)
from multimodal_eval.run.engine.base import Executor, Work, refuse_crashed
from multimodal_eval.run.part import Worker
from multimodal_eval.run.reading import (
    Checksums,
    DoubtError,
    ReadNotes,
    ReadTask,
    UniqueTask,
    bucket_count,
)


@dataclass
class ReadInput:
    """An input whose samples are stored."""

    summary: Summary
    parts: list[int]  # their sizes
    columns: ColumnsSeen
    files: list[InputFile]


def read_in_parallel(worker: Worker, source: Input, executor: Executor, progress: Progress) -> ReadInput | None:
    """Store the samples of an input in parallel. None if it must be read from start to end; then nothing is stored."""
    if not _is_worthwhile(worker, source, executor):
        return None
    assert isinstance(source, FileInput)
    try:
        read = _Reading(worker, source, executor, progress).read()
    except DoubtError:
        worker.folder.clear_samples()
        return None
    worker.folder.clear_scratch()
    return read


def _is_worthwhile(worker: Worker, source: Input, executor: Executor) -> bool:
    """Whether the input is large, and can be read from several places."""
    workers = executor.workers
    if not isinstance(source, FileInput) or worker.plan.config.limit is not None or workers == 1:
        return False
    if source.predictions is not None or not has_splits(source.files):
        return False
    # Other files are read twice: first to count their records.
    counted_fast = all(is_divisible(file.path) or is_parquet(file.path) for file in source.files)
    if workers == 2 and not counted_fast:
        return False
    files = source.data_files.files
    total = _bytes_of(files)
    return total > split_size(total, workers) and (counted_fast or len(files) > 1)


def _bytes_of(files: Iterable[DataFile]) -> int:
    return sum(file.path.stat().st_size for file in files)


class _Reading:
    """One attempt to read an input in parallel. A doubt raises DoubtError after all tasks have ended."""

    def __init__(self, worker: Worker, source: FileInput, executor: Executor, progress: Progress) -> None:
        self._worker, self._source, self._executor, self._progress = worker, source, executor, progress
        self._reader = RangeReader.of(source)
        self._part_size = worker.plan.part_size
        worker.reads_records = not self._reader.in_columns

    def read(self) -> ReadInput:
        """Count, read, and compare the ids."""
        self._progress("reading", 0, None)
        tasks = tasks_of(self._counted(self._source.data_files.files), self._part_size)
        rows = sum(task.rows for task in tasks)
        if not rows:
            raise DoubtError
        buckets = bucket_count(rows)
        items = [ReadTask(task, self._reader, self._part_size, buckets) for task in tasks]
        files, notes = self._read(items, rows)
        self._results("unique", [UniqueTask(bucket, len(tasks)) for bucket in range(buckets)])
        summary, columns = self._summed(notes)
        summary.samples = rows
        sizes = [min(self._part_size, rows - row) for row in range(0, rows, self._part_size)]
        return ReadInput(summary, sizes, columns, files)

    def _counted(self, files: Sequence[DataFile]) -> list[tuple[Range, ...]]:
        """Groups of ranges with their numbers of records."""
        size = split_size(_bytes_of(files), self._executor.workers)
        ranges: Iterable[Range] = chain.from_iterable(self._results("count", splits_of(files, size)))
        return list(grouped(ranges, size))

    def _results(self, work: Work, items: Sequence[Any]) -> list[Any]:
        """The results of all items; a doubt (None or False) in one of them is raised in the end."""
        results = []
        for result in self._executor.map(self._worker, work, items):
            refuse_crashed(result, "reading the input")
            results.append(result)
        if any(result is None or result is False for result in results):
            raise DoubtError
        return results

    def _read(self, tasks: Sequence[ReadTask], rows: int) -> tuple[list[InputFile], list[ReadNotes]]:
        """The description of the files, and the notes of the tasks."""
        checksums = self._checksums()
        files: list[InputFile] = []
        notes: list[ReadNotes] = []
        done, is_doubtful = 0, False
        items: list[ReadTask | Checksums] = [*checksums, *tasks]
        for item, result in zip(items, self._executor.map(self._worker, "read", items), strict=True):
            refuse_crashed(result, "reading the input")
            if result is None:
                is_doubtful = True
            elif isinstance(item, Checksums):
                files += result
            else:
                notes.append(result)
                done += item.task.rows
                self._progress("reading", done, rows)
        if is_doubtful:
            raise DoubtError
        names = (str(file.path) for file in self._source.files)
        return [msgspec.structs.replace(file, path=name) for name, file in zip(names, files, strict=True)], notes

    def _checksums(self) -> list[Checksums]:
        """All files, small ones together."""
        sizes = [Range(file, 0, 0, file.path.stat().st_size) for file in self._source.files]
        groups = grouped(sizes, split_size(0, None))
        return [Checksums(tuple(each.file.path.absolute() for each in group)) for group in groups]

    def _summed(self, notes: Sequence[ReadNotes]) -> tuple[Summary, ColumnsSeen]:
        """The notes of all tasks, as if one checker had seen all records."""
        summary, columns = Summary(), ColumnsSeen(self._worker.plan.config)
        source = self._source
        checker = self._reader.checker(source.data_files.files[0].path, Problems())
        for note in notes:
            if not checker.add_notes(note.checker) or not columns.add(note.columns):
                raise DoubtError
        if checker.unused_map or checker.unused_annotators:
            raise DoubtError
        summary.add(checker)
        return summary, columns
