"""Inputs in memory: samples, records, columns or tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.records import InputFile
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers.column_names import PEEKED, kinds_of, taken_columns
from multimodal_eval.data.readers.files import describe_file
from multimodal_eval.data.readers.frames import Table, with_ids, without_frames
from multimodal_eval.data.readers.ids import SeenIds
from multimodal_eval.data.readers.parts import Part, SamplePart, parts_of
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import ColumnMap, RecordChecker
from multimodal_eval.data.readers.summary import Summary, note_unused


class MemoryInput:
    """Samples, records, columns or a table in memory. Rows are numbered if none of them has an id."""

    def __init__(
        self,
        data: Iterable[Sample | Mapping[str, object]] | Mapping[str, Sequence[object]] | Table,
        annotators: tuple[str, ...] = (),
        columns: ColumnMap | None = None,
    ) -> None:
        records = without_frames(data)
        self.columns, self.annotators = columns or {}, annotators
        rows = _rows_of_columns(records) if isinstance(records, Mapping) else list(records)
        self.rows, self._numbering = with_ids(rows, self.columns)

    def describe(self) -> list[InputFile]:
        """The input files for run.json."""
        return [InputFile(path=None, samples=len(self.rows))]

    def recipe(self) -> None:
        """None: an input in memory cannot be opened again."""

    def parts(self, problems: Problems, summary: Summary, most: int, limit: int | None = None) -> Iterator[Part]:
        """The checked samples in parts of at most `most`; problems are added to `problems`."""
        from multimodal_eval.data.readers.memory import memory_parts

        kinds = kinds_of(row for row in self.rows[:PEEKED] if isinstance(row, Mapping))
        taken = taken_columns(kinds, self.columns, self.annotators)
        checker = RecordChecker(None, problems, self.columns, annotators=self.annotators, taken=taken)
        rows, seen = self.rows[:limit], SeenIds()
        for part in memory_parts(rows, checker, seen, most, _as_record):
            summary.samples += len(part)
            yield part
        ids = ((None, number, checker.id_of(_as_record(row))) for number, row in enumerate(rows, 1))
        seen.note_duplicates(problems, lambda: ids)
        summary.add(checker)
        summary.notes.extend(self._numbering)
        note_unused("map", checker.unused_map, checker, problems, summary)
        note_unused("annotators", checker.unused_annotators, checker, problems, summary)

    def places(self) -> Iterator[tuple[str | None, int, str | None]]:
        """(None, number, id) of every row, for messages about samples that were read before."""
        checker = RecordChecker(None, Problems(), self.columns, annotators=self.annotators)
        return ((None, number, checker.id_of(_as_record(row))) for number, row in enumerate(self.rows, 1))


class JoinedInput(MemoryInput):
    """Samples joined from several files, such as gold and predictions, and already checked.

    run.json lists the files.
    """

    def __init__(self, samples: list[Sample], files: Sequence[Path], notes: Sequence[str] = ()) -> None:
        super().__init__(samples)
        self._joined, self._files, self._notes = samples, files, notes

    def describe(self) -> list[InputFile]:
        """The input files for run.json."""
        return [describe_file(path) for path in self._files]

    def parts(self, problems: Problems, summary: Summary, most: int, limit: int | None = None) -> Iterator[Part]:
        """The samples unchanged; the notes about the files go into `summary`."""
        return map(SamplePart, parts_of(self._samples(summary, limit), most))

    def joined(self) -> Iterator[Sample]:
        """All samples."""
        return iter(self._joined)

    def _samples(self, summary: Summary, limit: int | None) -> Iterator[Sample]:
        for sample in islice(self.joined(), limit):
            summary.samples += 1
            summary.blank_answers += sample.generated_answer is not None and not sample.generated_answer.strip()
            summary.fields.update(name for name in FIELDS if getattr(sample, name) is not None)
            summary.metadata.update(sample.metadata)
            yield sample
        summary.notes.extend(self._notes)


def _as_record(row: Sample | Mapping[str, object]) -> Mapping[str, object]:
    if isinstance(row, Sample):
        return msgspec.structs.asdict(row)
    if isinstance(row, Mapping):
        return row
    raise ConfigError(f"a sample must be a Sample or a mapping. Got {shorten(row)} instead.")


def _rows_of_columns(columns: Mapping[str, Sequence[object]]) -> list[Mapping[str, object]]:
    """Rows from parallel lists. Lists of different lengths are refused."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError([Problem(code="LENGTH", message=f"the columns differ in length: {shown}")])
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
