"""Read a large input in parallel: hand out the tasks, and put their notes together in the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any

from msgspec.structs import replace

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.metric import Placement
from multimodal_eval.core.records import InputFile
from multimodal_eval.data.readers.files import DataFile
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import CheckerNotes, RecordChecker
from multimodal_eval.data.readers.splits import (
    Range,
    RangeReader,
    Task,
    grouped,
    is_divisible,
    is_parquet,
    split_size,
    splits_of,
    tasks_of,
)
from multimodal_eval.data.readers.summary import JoinNotes, Summary
from multimodal_eval.run.engine.base import Crashed, Phase, refuse_crashed
from multimodal_eval.run.steps.read import Read, ReadInput, bytes_of
from multimodal_eval.run.steps.reading_tasks import (
    PARTS_PER_UNIT,
    Checksums,
    Combined,
    CombineTask,
    DoubtError,
    JoinTask,
    PredictionTask,
    ReadItem,
    ReadTask,
    UniqueTask,
    bucket_count,
    stop,
)

COMPRESSION = 5  # at most, usually
AHEAD = 16  # splits per worker: their results are small, and a checksum of a large file delays no others
MANY_SPLITS = 256  # for processes that only read: about 4 GB, of which a thread reads 100 MB in a second


def read_in_parallel(step: Read, source: FileInput) -> ReadInput | None:
    """Store the samples of an input. None if it must be read from start to end; then nothing is stored."""
    try:
        read = _Reading(step, source).read()
    except DoubtError:
        step.run.folder.clear_samples()
        return None
    step.run.folder.clear_scratch()
    return read


class _Reading:
    """One attempt to read an input in parallel. A doubt raises DoubtError after all tasks have ended."""

    def __init__(self, step: Read, source: FileInput) -> None:
        self._step, self._source, self._progress = step, source, step.run.progress
        self._part_size = step.run.plan.part_size
        self._split = split_size(bytes_of(source.files), step.run.engine.workers)
        predictions = source.prediction_files
        self._data = source.data_files.files
        self._predictions = () if predictions is None else predictions.files
        self._data_reader = RangeReader.of(source, source.data_files)
        self._prediction_reader = self._data_reader if predictions is None else RangeReader.of(source, predictions)
        in_columns = self._data_reader.in_columns and self._prediction_reader.in_columns
        self._placement: Placement = "thread" if in_columns else "process"

    def read(self) -> ReadInput:
        """Count, read, and compare the ids."""
        self._progress("reading", 0, None)
        data, predictions = self._counted()
        tasks = tasks_of(data, self._part_size)
        rows = sum(task.rows for task in tasks)
        if not rows:
            raise DoubtError
        summary = Summary(rows)
        if self._predictions:
            columns, files = self._joined(tasks, tasks_of(predictions, 1), rows, summary)
        else:
            columns, files = self._unique(tasks, rows, summary)
        sizes = [min(self._part_size, rows - row) for row in range(0, rows, self._part_size)]
        return ReadInput(summary, sizes, columns, files)

    def _unique(self, tasks: Sequence[Task], rows: int, summary: Summary) -> tuple[ColumnsSeen, list[InputFile]]:
        """Store samples that have all their fields, with different ids."""
        buckets = bucket_count(rows)
        items = [ReadTask(task, self._data_reader, self._part_size, buckets) for task in tasks]
        files, notes = self._read(items, rows)
        self._results([UniqueTask(bucket, len(tasks)) for bucket in range(buckets)])
        checker = self._checked(self._data_reader, self._data, [note.checker for note in notes])
        if checker.unused_map or checker.unused_annotators:
            raise DoubtError
        summary.add(checker)
        return self._summed(note.columns for note in notes), files

    def _joined(
        self, tasks: Sequence[Task], predictions: Sequence[Task], rows: int, summary: Summary
    ) -> tuple[ColumnsSeen, list[InputFile]]:
        """Store samples whose predictions are in other files."""
        if sum(task.rows for task in predictions) != rows:
            raise DoubtError
        size = sum(part.size for task in predictions for part in task.ranges)
        is_compressed = not all(is_divisible(file.path) for file in self._predictions)
        buckets = bucket_count(rows, size * (COMPRESSION if is_compressed else 1))
        data_items = [ReadTask(task, self._data_reader, self._part_size, buckets, is_joined=True) for task in tasks]
        items = [PredictionTask(task, self._prediction_reader, buckets) for task in predictions]
        files, notes = self._read([*items, *data_items], rows)
        predicted, stored = notes[: len(items)], notes[len(items) :]
        unit = PARTS_PER_UNIT * self._part_size
        chunks = tuple(note.chunks for note in predicted)
        self._results([JoinTask(bucket, len(tasks), chunks, rows, unit) for bucket in range(buckets)])
        is_json = not any(is_parquet(file.path) for file in self._source.files)
        fields = self._source.predicted_fields
        units = [
            CombineTask(number, row, min(unit, rows - row), self._part_size, buckets, is_json, fields)
            for number, row in enumerate(range(0, rows, unit))
        ]
        combined: list[Combined] = self._results(units)
        columns = self._summed(each.columns for each in combined)
        first = self._checked(self._prediction_reader, self._predictions, [note.checker for note in predicted])
        second = self._checked(self._data_reader, self._data, [note.checker for note in stored])
        if first.unused_map & second.unused_map or first.unused_annotators & second.unused_annotators:
            raise DoubtError
        summary.add(first, fields)
        summary.add(second)
        joined = JoinNotes()
        for each in combined:
            joined.add(each.join)
        summary.add_join(joined, str(self._source.predictions))
        return columns, files

    def _counted(self) -> list[list[tuple[Range, ...]]]:
        """Groups of ranges with their numbers of records, of the data and of the predictions."""
        sides = [splits_of(files, self._split) for files in (self._data, self._predictions)]
        splits = [split for side in sides for split in side]
        results = iter(self._results(splits, self._placement))
        return [list(grouped((each for _ in side for each in next(results)), self._split)) for side in sides]

    def _results(self, items: Sequence[ReadItem], placement: Placement = "thread") -> list[Any]:
        return [result for _, result in self._performed(items, placement)]

    def _performed(
        self, items: Sequence[ReadItem], placement: Placement, bundles_from: float = inf
    ) -> Iterator[tuple[ReadItem, Any]]:
        """All items and their results. A crash or a doubt is raised in the end, when no task can store a part again."""
        crash: Crashed | None = None
        has_doubt = False
        phase = Phase("task", items, placement, AHEAD, bundles_from, apart="never")
        for item, result in zip(items, self._step.run.engine.map(self._step, phase), strict=True):
            if isinstance(result, Crashed):
                crash = crash or result
                stop(self._step.run.folder)
            elif result is None:
                has_doubt = True
            else:
                yield item, result
        refuse_crashed(crash, "reading the input")
        if has_doubt:
            raise DoubtError

    def _read(self, tasks: Sequence[ReadTask | PredictionTask], rows: int) -> tuple[list[InputFile], list[Any]]:
        """The description of the files, and the notes of the tasks."""
        files: list[InputFile] = []
        notes: list[Any] = []
        done = 0
        for item, result in self._performed([*self._checksums(), *tasks], self._placement, MANY_SPLITS):
            if isinstance(item, Checksums):
                files += result
                continue
            notes.append(result)
            if isinstance(item, ReadTask):
                done += item.task.rows
                self._progress("reading", done, rows)
        names = (str(file.path) for file in self._source.files)
        return [replace(file, path=name) for name, file in zip(names, files, strict=True)], notes

    def _checksums(self) -> list[Checksums]:
        """All files, small ones together."""
        sizes = [Range(file, 0, 0, file.path.stat().st_size) for file in self._source.files]
        groups = grouped(sizes, self._split)
        return [Checksums(tuple(each.file.path.absolute() for each in group)) for group in groups]

    def _checked(self, reader: RangeReader, files: Sequence[DataFile], notes: Iterable[CheckerNotes]) -> RecordChecker:
        """A checker with the notes of all tasks, as if it had seen all records."""
        checker = reader.checker(files[0].path, Problems())
        for note in notes:
            if not checker.add_notes(note):
                raise DoubtError
        return checker

    def _summed(self, columns: Iterable[ColumnsSeen]) -> ColumnsSeen:
        total = ColumnsSeen(self._step.run.plan.config)
        for each in columns:
            if not total.add(each):
                raise DoubtError
        return total
