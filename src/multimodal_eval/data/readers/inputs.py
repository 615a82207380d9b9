"""An input: files or samples in memory, as a stream of checked samples."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec

from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.records import InputFile, Source
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers.files import DataFile, FileSet, file_set
from multimodal_eval.data.readers.formats import check_file, is_textual, reader_of
from multimodal_eval.data.readers.ids import PredictionIndex, SeenIds, merge
from multimodal_eval.data.readers.json_file import read_coco_annotations
from multimodal_eval.data.readers.problems import Columns, Problems, Record
from multimodal_eval.data.readers.records import ColumnMap, Fields, RecordChecker

_COCO_RESULTS: ColumnMap = {"id": ("image_id",), "generated_answer": ("caption",)}
_SHOWN_UNMATCHED = 10


@dataclass
class Summary:
    """What was read: counts that a person wants to see before trusting the rest."""

    samples: int = 0
    fields: Counter[str] = field(default_factory=Counter)
    metadata: set[str] = field(default_factory=set)
    blank_answers: int = 0
    unmatched_data: int = 0
    unmatched_predictions: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, checker: RecordChecker) -> None:
        """Take over what a checker has counted."""
        self.fields.update(checker.present)
        self.metadata.update(checker.metadata_columns)
        self.blank_answers += checker.blank_answers
        self.notes.extend(checker.suspicions())


def refuse_empty(summary: Summary, name: str | None) -> None:
    """An input without a single sample is a mistake."""
    if not summary.samples:
        raise InputError([Problem(code="EMPTY", message="the input has no samples", file=name)])


class MemoryInput:
    """Samples, records or columns that are in memory."""

    def __init__(
        self,
        data: Iterable[Sample | Mapping[str, object]] | Mapping[str, Sequence[object]],
        annotators: tuple[str, ...] = (),
    ) -> None:
        self.rows = _rows_of_columns(data) if isinstance(data, Mapping) else list(data)
        self.annotators = annotators

    def describe(self) -> list[InputFile]:
        """What run.json says of the input."""
        return [InputFile(path=None, samples=len(self.rows))]

    def recipe(self) -> None:
        """How to open the input again: there is no way."""

    def samples(self, problems: Problems, summary: Summary, limit: int | None = None) -> Iterator[Sample]:
        """The checked samples; what is wrong is noted in `problems`."""
        checker, seen = RecordChecker(None, problems, {}, annotators=self.annotators), SeenIds()
        rows = self.rows[:limit]
        for number, row in enumerate(rows, 1):
            fields = checker.fields(number, _as_record(row))
            if fields is not None:
                seen.add(fields["id"])
                summary.samples += 1
                yield Sample(**fields)
        ids = ((None, number, checker.id_of(_as_record(row))) for number, row in enumerate(rows, 1))
        seen.note_duplicates(problems, lambda: ids)
        summary.add(checker)
        _note_unused("annotators", checker.unused_annotators, checker, problems, summary)


class JoinedInput(MemoryInput):
    """Samples made of several files, such as gold and predictions, that were checked as those were read.

    run.json names the files.
    """

    def __init__(self, samples: list[Sample], files: Sequence[Path], notes: Sequence[str] = ()) -> None:
        super().__init__(samples)
        self._joined, self._files, self._notes = samples, files, notes

    def describe(self) -> list[InputFile]:
        """What run.json says of the input."""
        return [describe_file(path) for path in self._files]

    def samples(self, problems: Problems, summary: Summary, limit: int | None = None) -> Iterator[Sample]:
        """The samples as they are, and what was noted of the files."""
        for sample in self._joined[:limit]:
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
    """Rows of parallel lists. Lists of unequal length are refused: zip would drop the end in silence."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError([Problem(code="LENGTH", message=f"the columns differ in length: {told}")])
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@dataclass
class FileInput:
    """Files with everything, or data and predictions in two places, joined by id.

    Each is a file, a folder or a pattern. The files that it stands for are those that are there now.
    """

    data: Path
    predictions: Path | None = None
    columns: ColumnMap = field(default_factory=dict)
    allow_partial: bool = False
    annotators: tuple[str, ...] = ()  # columns with one annotator's labels each

    def __post_init__(self) -> None:
        self.data_files = file_set(self.data)
        self.prediction_files = None if self.predictions is None else file_set(self.predictions)

    @property
    def files(self) -> list[DataFile]:
        """Every file that is read."""
        predicted = () if self.prediction_files is None else self.prediction_files.files
        return [*self.data_files.files, *predicted]

    @property
    def is_coco(self) -> bool:
        """Whether this is the pair that pycocoevalcap takes: annotations and results."""
        return self.predictions is not None and reader_of(self.data_files.files[0].path) is read_coco_annotations

    def describe(self) -> list[InputFile]:
        """What run.json says of the input: paths, sizes and checksums of the files as they are stored."""
        return [describe_file(file.path) for file in self.files]

    def recipe(self) -> Source:
        """How to open the input again, from any working directory."""
        second = None if self.prediction_files is None else self.prediction_files.recipe()
        return Source(self.data_files.recipe(), second)

    def samples(self, problems: Problems, summary: Summary, limit: int | None = None) -> Iterator[Sample]:
        """The checked samples, in the order of the data; what is wrong is noted in `problems`."""
        checker = self._checker(self.data_files, problems, self.columns)
        checkers = [checker]
        if self.predictions is None:
            yield from self._checked(checker, problems, summary, limit)
        else:
            index = PredictionIndex()
            try:
                checkers.append(self._fill(index, problems, summary))
                yield from self._joined(index, checker, problems, summary, limit)
            finally:
                index.close()
        summary.add(checker)
        unused_map = set.intersection(*(one.unused_map for one in checkers))
        unused_annotators = set.intersection(*(one.unused_annotators for one in checkers))
        _note_unused("map", unused_map, checker, problems, summary)
        _note_unused("annotators", unused_annotators, checker, problems, summary)

    def _checked(
        self, checker: RecordChecker, problems: Problems, summary: Summary, limit: int | None
    ) -> Iterator[Sample]:
        for _, fields in checked_files(self.data_files.files, checker, problems, limit):
            summary.samples += 1
            yield Sample(**fields)

    def _checker(self, files: FileSet, problems: Problems, columns: ColumnMap) -> RecordChecker:
        return checker_of(files.files[0].path, problems, columns, self.annotators)

    def _fill(self, index: PredictionIndex, problems: Problems, summary: Summary) -> RecordChecker:
        assert self.prediction_files is not None
        columns = dict(self.columns)
        if self.is_coco:
            columns = {**_COCO_RESULTS, **columns}
        checker = self._checker(self.prediction_files, problems, columns)
        for _, fields in checked_files(self.prediction_files.files, checker, problems):
            index.add(fields)
        index.seal()
        summary.add(checker)
        return checker

    def _joined(
        self,
        index: PredictionIndex,
        checker: RecordChecker,
        problems: Problems,
        summary: Summary,
        limit: int | None,
    ) -> Iterator[Sample]:
        without: list[str] = []
        for line, fields in checked_files(self.data_files.files, checker, problems, limit):
            prediction = index.take(fields["id"])
            if prediction is None:
                summary.unmatched_data += 1
                without.append(fields["id"]) if len(without) < _SHOWN_UNMATCHED else None
            else:
                fields = merge(fields, prediction, problems, checker.file, line)
            summary.samples += 1
            yield Sample(**fields)
        extra: list[str] = []
        if limit is None:
            for sample in index.unused():
                summary.unmatched_predictions += 1
                extra.append(sample.id) if len(extra) < _SHOWN_UNMATCHED else None
                if self.allow_partial:
                    summary.samples += 1
                    yield sample
        # A row refused for another reason would turn up here once more, as one without its partner.
        if (without or extra) and not self.allow_partial and not problems.total:
            self._note_unmatched(problems, summary, without, extra)

    def _note_unmatched(self, problems: Problems, summary: Summary, without: list[str], extra: list[str]) -> None:
        parts = []
        if without:
            shown = ", ".join(map(repr, without))
            parts.append(f"{summary.unmatched_data} ids of {self.data} have no prediction (first: {shown})")
        if extra:
            shown = ", ".join(map(repr, extra))
            parts.append(
                f"{summary.unmatched_predictions} ids of {self.predictions} are not in the data (first: {shown})"
            )
        hint = "Use --allow-partial to score what matches and count the rest as unscored."
        problems.add("UNMATCHED", "; ".join(parts) + ".", hint=hint, field="id")


def _note_unused(option: str, columns: set[str], checker: RecordChecker, problems: Problems, summary: Summary) -> None:
    """Columns that the user named and no record has."""
    hint = f"The records have {', '.join(map(repr, [*checker.present, *checker.metadata_columns]))}."
    for column in sorted(columns) if summary.samples else ():
        problems.add("UNKNOWN_COLUMN", f"--{option} names the column {column!r}, which no record has.", hint=hint)


def checker_of(path: Path, problems: Problems, columns: ColumnMap, annotators: tuple[str, ...] = ()) -> RecordChecker:
    """What checks the records of a file; `columns` says which column holds a field, where it has another name."""
    return RecordChecker(str(path), problems, columns, textual=is_textual(path), annotators=annotators)


def checked_records(
    path: Path, checker: RecordChecker, problems: Problems, limit: int | None = None
) -> Iterator[tuple[int, Fields]]:
    """(line, checked fields) of one file, then its duplicate ids."""
    return checked_files([DataFile(path)], checker, problems, limit)


def checked_files(
    files: Sequence[DataFile], checker: RecordChecker, problems: Problems, limit: int | None = None
) -> Iterator[tuple[int, Fields]]:
    """(line, checked fields) of one file after the other, `checker.file` being the current one; then duplicate ids."""
    seen = SeenIds()
    for file, line, record in islice(_chained(files, problems), limit):
        checker.file = file
        fields = checker.fields(line, record)
        if fields is not None:
            seen.add(fields["id"])
            yield line, fields

    def ids() -> Iterator[tuple[str, int, str | None]]:
        again = islice(_chained(files, Problems()), limit)
        return ((file, line, checker.id_of(record)) for file, line, record in again)

    seen.note_duplicates(problems, ids)


def _chained(files: Iterable[DataFile], problems: Problems) -> Iterator[tuple[str, int, Columns]]:
    """(file, line, columns) of every record of every file."""
    for file in files:
        name, keys = str(file.path), file.keys
        for line, record in reader_of(file.path)(file.path, problems):
            if keys:
                _take_keys(record, keys, problems, name, line)
            yield name, line, record


def _take_keys(record: Columns, keys: Mapping[str, str], problems: Problems, file: str, line: int) -> None:
    """Add the columns that the folders' names give, as text; a record that says something else of one is a problem."""
    for column, value in keys.items():
        own = record.get(column)
        if own not in (None, "") and str(own) != value:
            message = f"the column {column!r} holds {shorten(own)}, and the folder is named '{column}={value}'"
            problems.add("CONFLICT", message, file=file, line=line, field=column, value=shorten(own))
        record[column] = value


def read_records(path: Path, problems: Problems) -> Iterator[Record]:
    """(line, columns) of every record of a file of any format that is read here, unchecked."""
    check_file(path)
    return reader_of(path)(path, problems)


def describe_file(path: Path) -> InputFile:
    """What run.json says of a file: its path, its size and its checksum as it is stored."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return InputFile(path=str(path), bytes=path.stat().st_size, sha256=digest)


Input = FileInput | MemoryInput
