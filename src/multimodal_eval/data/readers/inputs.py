"""Inputs that consist of files, read as a stream of checked samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval._native import text_hash
from multimodal_eval.core.display import counted
from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.records import LOG, InputFile, Source
from multimodal_eval.core.sample import PREDICTED_FIELDS, Sample
from multimodal_eval.data.logs.recognised import log_format
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.coco_and_vqa import (
    CocoPair,
    questions_beside,
    read_vqa,
    regular_pair,
    result_columns,
    with_questions,
)
from multimodal_eval.data.readers.column_names import Role, TakenColumns, numbering, peeked, taken_columns
from multimodal_eval.data.readers.files import DataFile, FileSet, describe_file, file_set, further_files
from multimodal_eval.data.readers.formats import COLUMNAR, SUFFIXES, check_file, is_textual, reader_of
from multimodal_eval.data.readers.json_file import read_coco_annotations
from multimodal_eval.data.readers.parts import Input, Part, SamplePart, parts_of
from multimodal_eval.data.readers.problems import Columns, Problems, Record
from multimodal_eval.data.readers.records import ColumnMap, Fields, RecordChecker
from multimodal_eval.data.readers.summary import Join, PredictionIndex, SeenIds, Summary, note_unused

if TYPE_CHECKING:
    from multimodal_eval.data.readers.columns import Piece

_NUMBERED = "rows"  # the format of files without ids
_PREDICTED_BOXES: ColumnMap = {"boxes": ()}  # the field has the gold boxes
_COCO_RESULTS: ColumnMap = {"id": ("image_id",), "generated_answer": ("caption",), **_PREDICTED_BOXES}
_SHOWN_UNMATCHED = 10
_CHECKED_TOGETHER = 1000


@dataclass
class FileInput(Input):
    """Data files, optionally with separate prediction files, which are joined by id.

    Each is a file, a folder or a pattern, resolved to files when the object is created.
    """

    data: Path
    predictions: Path | None = None
    columns: ColumnMap = field(default_factory=dict)
    allow_partial: bool = False
    annotators: tuple[str, ...] = ()  # columns, each with the labels of one annotator
    questions: Path | None = None  # of VQA annotations; None: the file beside them, if there is one
    log: str | None = None  # the format of a log of another harness; None: by its content
    ids: frozenset[str] | None = None  # of the samples that are read; None: all
    only_answered: bool = False  # samples without a prediction are not read

    def __post_init__(self) -> None:
        if self.only_answered and self.predictions is None:
            raise ConfigError(
                "`only_answered` leaves out samples of DATA without a prediction, and there are no PREDICTIONS. A "
                "sample whose answer failed is not left out: it is unscored"
            )
        files, self.numbering = file_set(self.data, self.log), ""
        if self.predictions is None and self.log is None and "id" not in self.columns:
            first = files.files[0]
            is_plain = first.log is None and not first.keys and bare_suffix(first.path) in SUFFIXES
            self.numbering = numbering(peeked(first.path)) if is_plain else ""  # a note, if the samples have no ids
        if self.numbering:
            files = file_set(self.data, _NUMBERED)
        self.data_files = _with_questions(files, self.questions)
        self.prediction_files = None if self.predictions is None else file_set(self.predictions)

    @property
    def files(self) -> list[DataFile]:
        """Every file that is read."""
        predicted = () if self.prediction_files is None else self.prediction_files.files
        asked = [DataFile(file.questions) for file in self.data_files.files if file.questions is not None]
        return [*self.data_files.files, *asked, *predicted]

    @property
    def is_coco(self) -> bool:
        """Whether this is a pair of COCO files as used by pycocoevalcap: annotations and results."""
        return self.predictions is not None and self.has_captions

    @property
    def has_captions(self) -> bool:
        """Whether the data are COCO caption annotations."""
        first = self.data_files.files[0]
        return first.log is None and reader_of(first.path) is read_coco_annotations

    @property
    def is_vqa(self) -> bool:
        """Whether the data are annotations or questions of a VQA dataset."""
        first = self.data_files.files[0]
        return first.log is None and reader_of(first.path) is read_vqa

    def describe(self) -> list[InputFile]:
        """The input files for run.json: path, size and checksum of each."""
        return [describe_file(path) for path in self.paths]

    @property
    def paths(self) -> list[Path]:
        """The files that are read, with those that they name."""
        further = [path for file in self.data_files.files for path in further_files(file)]
        return [*(file.path for file in self.files), *further]

    def recipe(self) -> Source:
        """How to open the input again, from any working directory."""
        second = None if self.prediction_files is None else self.prediction_files.recipe()
        return Source(self.data_files.recipe(), second)

    @property
    def has_columns(self) -> bool:
        """Whether compiled code reads the input as columns: not with predictions, annotators or folder keys."""
        return not (self.predictions is not None or self.annotators or self.ids is not None) and all(
            not file.keys and file.log is None and bare_suffix(file.path) in COLUMNAR for file in self.data_files.files
        )

    def parts(self, problems: Problems, summary: Summary, most: int, limit: int | None = None) -> Iterator[Part]:
        """The checked samples in parts of at most `most`, in the order of the data."""
        if not self.has_columns:
            yield from map(SamplePart, parts_of(self.samples(problems, summary, limit), most))
            return
        from multimodal_eval.data.readers.columns import column_parts

        yield from column_parts(self._pieces(problems, summary, limit), most)

    def check(self, problems: Problems, summary: Summary, limit: int | None = None) -> Iterator[None]:
        """Check all samples and keep none; `summary.samples` counts those read so far."""
        samples = self._pieces(problems, summary, limit) if self.has_columns else self.samples(problems, summary, limit)
        for number, _ in enumerate(samples):
            if self.has_columns or number % _CHECKED_TOGETHER == 0:
                yield

    def _pieces(self, problems: Problems, summary: Summary, limit: int | None) -> Iterator[Piece]:
        """The samples as columns, then the problems that need all of them."""
        from multimodal_eval.data.readers.columns import ColumnReader

        checker, files = self._checker(self.data_files, problems), self.data_files.files
        seen = SeenIds(text_hash)
        for piece in ColumnReader(files, checker, problems, limit).pieces():
            summary.samples += len(piece)
            seen.add_hashes(piece.id_hashes)
            yield piece
        seen.note_duplicates(problems, lambda: _ids_again(files, checker, limit))
        summary.add(checker)
        if checker.unused_map:
            note_unused("map", checker.unused_map, checker, problems, summary)

    def samples(self, problems: Problems, summary: Summary, limit: int | None = None) -> Iterator[Sample]:
        """The checked samples, in the order of the data; problems are added to `problems`."""
        pair = self._regular_pair(limit)
        if pair is not None:
            summary.samples, summary.blank_answers = len(pair.samples), pair.blank_answers
            summary.fields.update(pair.fields)
            yield from pair.samples
            return
        checker = self._checker(self.data_files, problems)
        checkers = [checker]
        join = None if self.predictions is None else Join(self.predicted_fields)
        if join is None:
            yield from self._checked(checker, problems, summary, limit)
        else:
            index = PredictionIndex()
            try:
                checkers.append(self._fill(index, join, problems, summary))
                yield from self._joined(index, join, checker, problems, summary, limit)
            finally:
                index.close()
        summary.add(checker)
        if join is not None:
            summary.add_join(join.notes, str(self.predictions))
        if unused := set.intersection(*(each.unused_map for each in checkers)):
            note_unused("map", unused, checker, problems, summary)
        if unused := set.intersection(*(each.unused_annotators for each in checkers)):
            note_unused("annotators", unused, checker, problems, summary)

    def data_samples(
        self, problems: Problems, summary: Summary, elsewhere: Collection[str], limit: int | None = None
    ) -> list[Sample]:
        """The samples of the data alone, read as beside predictions. `elsewhere` are the columns of these."""
        checker = self._checker(self.data_files, problems)
        samples = list(self._checked(checker, problems, summary, limit))
        summary.add(checker)
        note_unused("map", checker.unused_map - {*elsewhere}, checker, problems, summary)
        note_unused("annotators", checker.unused_annotators, checker, problems, summary)
        return samples

    def places(self) -> Iterator[tuple[str | None, int, str | None]]:
        """(file, line, id) of every record of the data, for messages about samples that were read before."""
        return _ids_again(self.data_files.files, self._checker(self.data_files, Problems()), None)

    def _regular_pair(self, limit: int | None) -> CocoPair | None:
        """A COCO pair without anything unusual, read at once."""
        if not self.is_coco or self.columns or self.annotators or limit is not None or len(self.files) != 2:
            return None
        if self.ids is not None:
            return None
        annotations, results = self.files
        return None if annotations.keys or results.keys else regular_pair(annotations.path, results.path)

    def _checked(
        self, checker: RecordChecker, problems: Problems, summary: Summary, limit: int | None
    ) -> Iterator[Sample]:
        for _, fields in self._chosen(checker, problems, summary, limit):
            summary.samples += 1
            yield Sample(**fields)

    def _chosen(
        self, checker: RecordChecker, problems: Problems, summary: Summary, limit: int | None
    ) -> Iterator[tuple[int, Fields]]:
        """(line, checked fields) of the records of the data; with `ids`, only those, all of which must be there."""
        records = checked_files(self.data_files.files, checker, problems, limit)
        if self.ids is None:
            yield from records
            return
        left, others = set(self.ids), 0
        for line, fields in records:
            if fields["id"] in self.ids:
                left.discard(fields["id"])
                yield line, fields
            else:
                others += 1
        if left and limit is None:
            message = f"{len(left):,} of the {len(self.ids):,} ids that were chosen are not in {self.data}"
            problems.add("UNMATCHED", f"{message} (first: {_shown(sorted(left))}).", field="id")
        summary.notes.append(f"only the {counted(len(self.ids), 'sample')} chosen by id are read; {others:,} are not")

    def _checker(self, files: FileSet, problems: Problems) -> RecordChecker:
        columns = self.columns_in(files)
        first, taken = files.files[0], self.taken_in(files, columns)
        return checker_of(first.path, problems, columns, self.annotators, taken, first.log)

    def columns_in(self, files: FileSet) -> ColumnMap:
        """The columns of the fields in the data or in the predictions: results of COCO and VQA have their own."""
        if files is not self.prediction_files:
            return self.columns
        if self.is_coco:
            return {**_COCO_RESULTS, **self.columns}
        first = next(_chained(files.files, Problems()), None)
        if first is None:
            return self.columns
        record = first[2]
        # Predictions may have the names of the fields themselves, although the data have others.
        renamed = {
            name
            for name, columns in self.columns.items()
            if columns and name in record and not record.keys() & set(columns)
        }
        mapped = {name: columns for name, columns in self.columns.items() if name not in renamed}
        return {**_PREDICTED_BOXES, **result_columns(record), **mapped}

    @property
    def predicted_fields(self) -> frozenset[str]:
        """The fields that come from the predictions: those of answers, and what the user names and the data lack."""
        assert self.prediction_files is not None
        fields = {"id", "metadata", *PREDICTED_FIELDS}
        if self.columns or self.annotators:
            first, mapped = self.data_files.files[0], self.columns_in(self.prediction_files)
            known = {*peeked(first.path, first.log), *first.keys}
            named = {name for name, columns in self.columns.items() if columns and mapped.get(name) == columns}
            fields |= {name for name in named if not known.intersection(self.columns[name])}
            if self.annotators and not any(fnmatchcase(each, name) for name in self.annotators for each in known):
                fields.add("annotations")
        return frozenset(fields)

    def taken_in(self, files: FileSet, columns: ColumnMap) -> TakenColumns:
        """The columns of the data or of the predictions that are read as a field, by the first records.

        `columns` is the result of `columns_in`: these columns and fields are left alone.
        """
        role: Role = "predictions" if files is self.prediction_files else "data"
        pair: tuple[Role, str] | None = None if self.predictions is None else (role, str(files.name))
        taken = taken_columns(peeked(files.files[0].path, files.files[0].log), columns, self.annotators, pair)
        return msgspec.structs.replace(taken, notes=(*taken.notes, self.numbering)) if self.numbering else taken

    def _fill(self, index: PredictionIndex, join: Join, problems: Problems, summary: Summary) -> RecordChecker:
        assert self.prediction_files is not None
        checker = self._checker(self.prediction_files, problems)
        for _, fields in checked_files(self.prediction_files.files, checker, problems):
            index.add(fields)
        index.seal()
        summary.add(checker, join.fields)
        return checker

    def _joined(
        self,
        index: PredictionIndex,
        join: Join,
        checker: RecordChecker,
        problems: Problems,
        summary: Summary,
        limit: int | None,
    ) -> Iterator[Sample]:
        without: list[str] = []
        unanswered = 0
        for line, fields in self._chosen(checker, problems, summary, limit):
            prediction = index.take(fields["id"])
            if prediction is None and self.only_answered:
                unanswered += 1
                continue
            if prediction is None:
                summary.unmatched_data += 1
                without.append(fields["id"]) if len(without) < _SHOWN_UNMATCHED else None
            else:
                fields = join.merge(fields, prediction, problems, checker.file, line)
            summary.samples += 1
            yield Sample(**fields)
        extra: list[str] = []
        if limit is None:
            for sample in index.unused():
                if self.ids is not None and sample.id not in self.ids:
                    continue
                summary.unmatched_predictions += 1
                extra.append(sample.id) if len(extra) < _SHOWN_UNMATCHED else None
                if self.allow_partial:
                    summary.samples += 1
                    yield Sample(**join.merge({"id": sample.id}, sample, problems, None, 0))
        if unanswered:
            are = "has no prediction and is" if unanswered == 1 else "have no prediction and are"
            summary.notes.append(f"{counted(unanswered, 'sample')} of {self.data} {are} left out")
        # A row refused for another reason would be reported again here, as unmatched.
        if (without or extra) and not self.allow_partial and not problems.total:
            self._note_unmatched(problems, summary, without, extra)

    def _note_unmatched(self, problems: Problems, summary: Summary, without: list[str], extra: list[str]) -> None:
        parts = []
        if without:
            parts.append(f"{summary.unmatched_data} ids of {self.data} have no prediction (first: {_shown(without)})")
        if extra:
            parts.append(
                f"{summary.unmatched_predictions} ids of {self.predictions} are not in the data "
                f"(first: {_shown(extra)})"
            )
        hint = "Use --allow-partial to score the matching ids and count the rest as unscored"
        hint += ", or --only-answered to leave ids without a prediction out." if without else "."
        problems.add("UNMATCHED", "; ".join(parts) + ".", hint=hint, field="id")


def _shown(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, ids[:_SHOWN_UNMATCHED]))


def _with_questions(data: FileSet, questions: Path | None) -> FileSet:
    """The data with the questions that belong to VQA annotations: in the file named, or in the one beside them."""
    is_vqa = len(data.files) == 1 and data.files[0].log is None and reader_of(data.files[0].path) is read_vqa
    if questions is not None:
        check_file(questions)
        if not is_vqa:
            raise ConfigError(f"`questions` belong to one file of VQA annotations, but {data.name} is other data")
        if reader_of(questions) is not read_vqa:
            raise ConfigError(f"{questions} is not a file of VQA questions: an object with a list `questions`")
    elif is_vqa:
        questions = questions_beside(data.files[0].path)
    return (
        data
        if questions is None
        else msgspec.structs.replace(data, files=(msgspec.structs.replace(data.files[0], questions=questions),))
    )


def checker_of(
    path: Path,
    problems: Problems,
    columns: ColumnMap,
    annotators: tuple[str, ...] = (),
    taken: TakenColumns | None = None,
    log: str | None = None,
) -> RecordChecker:
    """The checker for the records of a file; `columns` maps fields to columns with other names."""
    textual = is_textual(path, log)
    is_log = log is not None and bool(log_format(log).harness)
    return RecordChecker(
        str(path), problems, columns, textual=textual, annotators=annotators, taken=taken, is_log=is_log
    )


def checked_records(
    path: Path, checker: RecordChecker, problems: Problems, limit: int | None = None
) -> Iterator[tuple[int, Fields]]:
    """(line, checked fields) of one file, then its duplicate ids."""
    return checked_files([DataFile(path)], checker, problems, limit)


def checked_files(
    files: Sequence[DataFile], checker: RecordChecker, problems: Problems, limit: int | None = None
) -> Iterator[tuple[int, Fields]]:
    """(line, checked fields) of several files, then their duplicate ids. `checker.file` is the current file."""
    seen = SeenIds()
    for file, line, record in islice(_chained(files, problems), limit):
        checker.file = file
        fields = checker.fields(line, record)
        if fields is not None:
            seen.add(fields["id"])
            yield line, fields
    seen.note_duplicates(problems, lambda: _ids_again(files, checker, limit))


def _ids_again(
    files: Sequence[DataFile], checker: RecordChecker, limit: int | None
) -> Iterator[tuple[str, int, str | None]]:
    """(file, line, id) of every record, for a second pass over the files."""
    again = islice(_chained(files, Problems()), limit)
    return ((file, line, checker.id_of(record)) for file, line, record in again)


def _chained(files: Iterable[DataFile], problems: Problems) -> Iterator[tuple[str, int, Columns]]:
    """(file, line, columns) of every record of every file."""
    for file in files:
        name, keys = str(file.path), file.keys
        records = reader_of(file.path, file.log)(file.path, problems)
        if file.questions is not None:
            records = with_questions(records, file.questions, problems)
        for line, record in records:
            if keys:
                take_keys(record, keys, problems, name, line)
            if file.prefix:
                record["id"] = f"{file.prefix}{record.get('id')}"
                record.setdefault(LOG, file.prefix.removesuffix("/"))
            yield name, line, record


def take_keys(record: Columns, keys: Mapping[str, str], problems: Problems, file: str, line: int) -> None:
    """Add the columns from the folder names, as text; a different value in the record is a problem."""
    for column, value in keys.items():
        stored = record.get(column)
        if stored not in (None, "") and str(stored) != value:
            message = f"the column {column!r} is {shorten(stored)}, but the folder is named '{column}={value}'"
            problems.add("CONFLICT", message, file=file, line=line, field=column, value=shorten(stored))
        record[column] = value


def read_records(path: Path, problems: Problems) -> Iterator[Record]:
    """(line, columns) of every record of a file in any supported format, unchecked."""
    check_file(path)
    return reader_of(path)(path, problems)
