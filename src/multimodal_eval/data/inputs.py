"""An input: files or samples in memory, as a stream of checked samples."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.blocks import DamagedStreamError, bare_suffix
from multimodal_eval.data.ids import SeenIds
from multimodal_eval.data.join import PredictionIndex, merge
from multimodal_eval.data.json_file import first_character, read_coco_annotations, read_json_array
from multimodal_eval.data.jsonl import Record, read_jsonl
from multimodal_eval.data.problems import Problems
from multimodal_eval.data.records import ColumnMap, RecordChecker
from multimodal_eval.data.tables import read_delimited, read_parquet

Reader = Callable[[Path, Problems], Iterator[Record]]

_READERS: dict[str, Reader] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_json_array,
    ".csv": partial(read_delimited, delimiter=","),
    ".tsv": partial(read_delimited, delimiter="\t"),
    ".parquet": read_parquet,
}
SUFFIXES = tuple(_READERS)  # of the formats that are read here, also with .gz or .zst behind
_TEXTUAL = (".csv", ".tsv")
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
        data: Iterable[Sample | Mapping[str, Any]] | Mapping[str, Sequence[Any]],
        annotators: tuple[str, ...] = (),
    ) -> None:
        self.rows = _rows_of_columns(data) if isinstance(data, Mapping) else list(data)
        self.annotators = annotators

    def describe(self) -> list[dict[str, Any]]:
        """What run.json says of the input."""
        return [{"path": None, "samples": len(self.rows)}]

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
        ids = ((number, checker.id_of(_as_record(row))) for number, row in enumerate(rows, 1))
        seen.note_duplicates(problems, None, lambda: ids)
        summary.add(checker)
        _note_unused("annotators", checker.unused_annotators, checker, problems, summary)


class JoinedInput(MemoryInput):
    """Samples made of several files, such as gold and predictions; run.json names the files."""

    def __init__(self, samples: list[Sample], files: Sequence[Path], notes: Sequence[str] = ()) -> None:
        super().__init__(samples)
        self._files, self._notes = files, notes

    def describe(self) -> list[dict[str, Any]]:
        """What run.json says of the input."""
        return [describe_file(path) for path in self._files]

    def samples(self, problems: Problems, summary: Summary, limit: int | None = None) -> Iterator[Sample]:
        """The samples; what was noted of the files stands with what is noted of them."""
        yield from super().samples(problems, summary, limit)
        summary.notes.extend(self._notes)


def _as_record(row: Sample | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(row, Sample):
        return msgspec.structs.asdict(row)
    if isinstance(row, Mapping):
        return row
    raise ConfigError(f"a sample must be a Sample or a mapping. Got {shorten(row)} instead.")


def _rows_of_columns(columns: Mapping[str, Sequence[Any]]) -> list[Mapping[str, Any]]:
    """Rows of parallel lists. Lists of unequal length are refused: zip would drop the end in silence."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError([Problem(code="LENGTH", message=f"the columns differ in length: {told}")])
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@dataclass
class FileInput:
    """One file with everything, or data and predictions in two, joined by id."""

    data: Path
    predictions: Path | None = None
    columns: ColumnMap = field(default_factory=dict)
    allow_partial: bool = False
    annotators: tuple[str, ...] = ()  # columns with one annotator's labels each

    def __post_init__(self) -> None:
        for path in self._paths():
            _check_file(path)

    def _paths(self) -> list[Path]:
        return [self.data] if self.predictions is None else [self.data, self.predictions]

    @property
    def is_coco(self) -> bool:
        """Whether this is the pair that pycocoevalcap takes: annotations and results."""
        return self.predictions is not None and _reader(self.data) is read_coco_annotations

    def describe(self) -> list[dict[str, Any]]:
        """What run.json says of the input: paths, sizes and checksums of the files as they are stored."""
        return [describe_file(path) for path in self._paths()]

    def recipe(self) -> dict[str, Any]:
        """How to open the input again, from any working directory."""
        second = None if self.predictions is None else str(self.predictions.resolve())
        return {"data": str(self.data.resolve()), "predictions": second}

    def samples(self, problems: Problems, summary: Summary, limit: int | None = None) -> Iterator[Sample]:
        """The checked samples, in the order of the data file; what is wrong is noted in `problems`."""
        checker = self._checker(self.data, problems, self.columns)
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
        for _, fields in checked_records(self.data, checker, problems, limit):
            summary.samples += 1
            yield Sample(**fields)

    def _checker(self, path: Path, problems: Problems, columns: ColumnMap) -> RecordChecker:
        return checker_of(path, problems, columns, self.annotators)

    def _fill(self, index: PredictionIndex, problems: Problems, summary: Summary) -> RecordChecker:
        assert self.predictions is not None
        columns = dict(self.columns)
        if self.is_coco:
            columns = {**_COCO_RESULTS, **columns}
        checker = self._checker(self.predictions, problems, columns)
        for line, fields in checked_records(self.predictions, checker, problems):
            index.add(line, fields)
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
        for line, fields in checked_records(self.data, checker, problems, limit):
            prediction = index.take(fields["id"])
            if prediction is None:
                summary.unmatched_data += 1
                without.append(fields["id"]) if len(without) < _SHOWN_UNMATCHED else None
            else:
                fields = merge(fields, prediction, problems, str(self.data), line)
            summary.samples += 1
            yield Sample(**fields)
        extra: list[str] = []
        if limit is None:
            for _, fields in index.unused():
                summary.unmatched_predictions += 1
                extra.append(fields["id"]) if len(extra) < _SHOWN_UNMATCHED else None
                if self.allow_partial:
                    summary.samples += 1
                    yield Sample(**fields)
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
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, checked fields) of one file, then its duplicate ids."""
    seen = SeenIds()
    for line, record in islice(_reader(path)(path, problems), limit):
        fields = checker.fields(line, record)
        if fields is not None:
            seen.add(fields["id"])
            yield line, fields

    def ids() -> Iterator[tuple[int, str | None]]:
        again = islice(_reader(path)(path, Problems()), limit)
        return ((line, checker.id_of(record)) for line, record in again)

    seen.note_duplicates(problems, str(path), ids)


def read_records(path: Path, problems: Problems) -> Iterator[Record]:
    """(line, columns) of every record of a file of any format that is read here, unchecked."""
    _check_file(path)
    return _reader(path)(path, problems)


def is_textual(path: Path) -> bool:
    """Whether the file's format knows texts only."""
    return bare_suffix(path) in _TEXTUAL


def _check_file(path: Path) -> None:
    """A file that is not there, or whose format is not known, is refused before anything is read."""
    if path.is_dir():
        raise InputError([Problem(code="FORMAT", message="a folder, where a file is needed", file=str(path))])
    if not path.is_file():
        raise InputError([Problem(code="NOT_FOUND", message="no such file", file=str(path))])
    _reader(path)


def _reader(path: Path) -> Reader:
    suffix = bare_suffix(path)
    if suffix not in _READERS:
        known = ", ".join(SUFFIXES)
        message = f"the suffix tells the format, and {suffix!r} is not known. Known: {known}, also with .gz or .zst"
        raise InputError([Problem(code="FORMAT", message=message, file=str(path))])
    if suffix == ".json":
        try:
            return read_coco_annotations if first_character(path) == "{" else read_json_array
        except DamagedStreamError:
            return read_json_array  # which says so
    return _READERS[suffix]


def describe_file(path: Path) -> dict[str, Any]:
    """What run.json says of a file: its path, its size and its checksum as it is stored."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"path": str(path), "bytes": path.stat().st_size, "sha256": digest}


Input = FileInput | MemoryInput
