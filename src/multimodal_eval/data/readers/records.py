"""Convert a record (column -> value) to the checked fields of a `Sample`."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import msgspec

from multimodal_eval.core.errors import ConfigError, did_you_mean, shorten
from multimodal_eval.core.metric import is_number
from multimodal_eval.core.sample import ANSWER_ALIASES, FIELDS, Sample
from multimodal_eval.data.readers.column_names import TakenColumns, kinds_of, map_flag, suggestion, taken_columns
from multimodal_eval.data.readers.field_checks import (
    Check,
    RefusedError,
    checked_annotations,
    checked_boolean,
    checked_boxes,
    checked_choices,
    checked_epoch,
    checked_expected,
    checked_images,
    checked_logprobs,
    checked_mapping,
    checked_media,
    checked_messages,
    checked_name,
    checked_perplexity,
    checked_reference,
    checked_references,
    checked_text,
    checked_value,
    checked_video,
    hint_to_keep,
    json_cell,
    written_choices,
)
from multimodal_eval.data.readers.problems import Columns, Problems

# field -> its columns: several only for `references`, none if the column with that name is not the field
ColumnMap = Mapping[str, tuple[str, ...]]
Fields = dict[str, Any]  # field -> checked value: the arguments of `Sample`

CHECKS: dict[str, Check] = {
    **dict.fromkeys(FIELDS, checked_text),
    **dict.fromkeys(("id", "group"), checked_name),
    "expected_answer": checked_expected,
    "caption": checked_reference,
    **dict.fromkeys(("image", "audio"), checked_media),
    "annotations": checked_annotations,
    "boxes": checked_boxes,
    "choices": checked_choices,
    "epoch": checked_epoch,
    "images": checked_images,
    "logprobs": checked_logprobs,
    "messages": checked_messages,
    "metadata": checked_mapping,
    "perplexity": checked_perplexity,
    "references": checked_references,
    "relevant": checked_boolean,
    "video": checked_video,
}
_JSON_CELLS = ("annotations", "boxes", "choices", "logprobs", "messages", "metadata")
_LATER_FIELDS = ("boxes", "choices", "messages")  # a file may use these names for something else
_NUMBER_CELLS: dict[str, tuple[Callable[[str], float], ...]] = {"epoch": (int, float), "perplexity": (float,)}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_MOST_COMPARED = 1000  # columns whose names are compared with those of the fields


def parsed_cell(field: str, cell: str, *, alone: bool) -> Any:
    """The value of a CSV cell for a field. An empty cell is null, except that an empty answer is blank."""
    if not cell and field != "generated_answer":
        return None
    if field in ("references", "images"):
        return json_cell(field, cell) if alone and cell.lstrip().startswith("[") else [cell]
    if field == "choices" and (choices := written_choices(cell)) is not None:
        return choices
    if field in _JSON_CELLS:
        return json_cell(field, cell, hint_to_keep(field) if field in _LATER_FIELDS else None)
    for number in _NUMBER_CELLS.get(field, ()):
        with suppress(ValueError):
            return number(cell)
    if field == "relevant":
        return _TRUTH.get(cell.strip().lower(), cell)
    return cell


def parse_map(pairs: Mapping[str, str] | None) -> dict[str, tuple[str, ...]]:
    """Parse a mapping field -> column (`a,b,c` for references, empty if no column is the field) and check the names."""
    columns: dict[str, tuple[str, ...]] = {}
    for field, column in (pairs or {}).items():
        name = "generated_answer" if field in ANSWER_ALIASES else field
        if name not in FIELDS:
            raise ConfigError(f"no sample field is named {field!r}.{did_you_mean(field, FIELDS)}")
        names = tuple(part.strip() for part in column.split(",")) if name == "references" else (column,)
        columns[name] = names if column else ()
    used = Counter(column for names in columns.values() for column in names)
    for column, fields in used.items():
        if fields > 1:
            raise ConfigError(f"the column {column!r} is mapped to {fields} fields; it can be only one")
    return columns


class CheckerNotes(msgspec.Struct, frozen=True):
    """What a checker has noted about its records, without the problems."""

    shapes: dict[tuple[str, ...], int]
    kinds: dict[str, str]  # by column, in order of first appearance
    annotators: dict[str, bool]  # by column: whether it has the labels of an annotator
    unused_map: set[str]
    unused_annotators: set[str]
    blank_answers: int


class RecordChecker:
    """Checks the records of one or several files (`file` is the current one) and collects problems."""

    def __init__(
        self,
        file: str | None,
        problems: Problems,
        columns: ColumnMap,
        *,
        textual: bool = False,
        annotators: tuple[str, ...] = (),
        taken: TakenColumns | None = None,
        is_log: bool = False,  # of another program: its reader chose the columns of fields, and others may mix types
    ) -> None:
        self.file, self.problems, self._is_log = file, problems, is_log
        self.taken = taken or TakenColumns()  # columns with other names that are fields too
        self.unused_annotators = set(annotators)
        self._annotators = annotators
        self._is_annotator: dict[str, bool] = {}
        self.blank_answers = 0
        self.unused_map = {column for names in columns.values() for column in names}
        self._textual = textual
        self._several = {column for names in columns.values() if len(names) > 1 for column in names}
        plain = {field: field for field in FIELDS} | dict.fromkeys(ANSWER_ALIASES, "generated_answer")
        free = {column: field for column, field in plain.items() if field not in columns}
        mapped = {column: field for field, names in columns.items() for column in names}
        self._route = {
            column: (field, self._check_for(field, column, textual))
            for column, field in {**free, **mapped, **self.taken.fields}.items()
        }
        self._kinds: dict[str, tuple[str, str | None, int, str]] = {}
        self._mixed: set[str] = set()
        self._line = 0
        self._shapes: dict[tuple[str, ...], int] = {}  # number of records by set of fields: faster than by field

    @property
    def present(self) -> Counter[str]:
        """The number of records that have each field."""
        counts: Counter[str] = Counter()
        for shape, records in self._shapes.items():
            counts.update(dict.fromkeys(shape, records))
        return counts

    @property
    def routes(self) -> list[tuple[str, str, bool]]:
        """(column, field, whether the field has several columns) of every column that is a field."""
        return [(column, field, column in self._several) for column, (field, _) in self._route.items()]

    def count(self, shape: tuple[str, ...], records: int, blank_answers: int) -> None:
        """Count records that were checked elsewhere and have the fields of an earlier record."""
        self._shapes[shape] += records
        self.blank_answers += blank_answers

    @property
    def notes(self) -> CheckerNotes:
        """What is noted about the records so far."""
        kinds = {column: first[0] for column, first in self._kinds.items()}
        return CheckerNotes(
            self._shapes, kinds, self._is_annotator, self.unused_map, self.unused_annotators, self.blank_answers
        )

    def add_notes(self, notes: CheckerNotes) -> bool:
        """Add the notes of a checker of the following records. False if a column then mixes types of values."""
        for shape, records in notes.shapes.items():
            self._shapes[shape] = self._shapes.get(shape, 0) + records
        for column, kind in notes.kinds.items():
            if self._kinds.setdefault(column, (kind, None, 0, ""))[0] != kind:
                return False
        self._is_annotator.update(notes.annotators)
        self.unused_map &= notes.unused_map
        self.unused_annotators &= notes.unused_annotators
        self.blank_answers += notes.blank_answers
        return True

    @property
    def has_annotators(self) -> bool:
        """Whether some columns have the labels of annotators."""
        return bool(self._annotators)

    def count_fields(self, records: Mapping[str, int], blank_answers: int) -> None:
        """Count records that were checked elsewhere, by field."""
        for field, count in records.items():
            self._shapes[(field,)] = self._shapes.get((field,), 0) + count
        self.blank_answers += blank_answers

    def is_kind(self, column: str, value: Any) -> bool:
        """Whether all values of the column so far have the type of this one."""
        return column not in self._kinds or self._kinds[column][0] == _kind_of(value)

    def note_kind(self, column: str, value: Any, line: int) -> None:
        """Note the type of a column that was checked elsewhere; `line` has its first value."""
        self._kinds.setdefault(column, (_kind_of(value), self.file, line, shorten(value)))

    def see_columns(self, names: Iterable[str]) -> None:
        """Note the columns of records that were checked elsewhere."""
        if self.unused_map:
            self.unused_map.difference_update(names)

    def id_of(self, record: Mapping[str, object]) -> str | None:
        """The record's id as text, unchecked, for a second pass over a file."""
        for column, value in record.items():
            if value is not None and self._route.get(column, ("",))[0] == "id":
                return unicodedata.normalize("NFC", str(value))
        return None

    def fields(self, line: int, record: Mapping[str, object]) -> Fields | None:
        """The fields of the sample, or None if it has problems."""
        before = self.problems.total
        self._line = line
        fields: Fields = {}
        metadata: Columns = {}
        labels: Columns = {}
        route, unused_map = self._route, self.unused_map
        for column, value in record.items():
            if unused_map:
                unused_map.discard(column)
            is_annotator = bool(self._annotators) and column not in route and self._annotates(column)
            if value is None:
                continue
            field, check = route.get(column) or (column, self._checked_metadatum)
            try:
                checked = check(field, value)
            except RefusedError as refusal:
                self._note(refusal, field, value, record)
                continue
            if is_annotator:
                if checked is not None:
                    labels[column] = checked
                continue
            if column not in route:
                if checked is not None:
                    metadata[column] = checked
                continue
            if field not in fields:
                if checked is not None:
                    fields[field] = checked
            elif column in self._several:
                fields[field] += checked or []
            else:
                self._note(RefusedError("DUPLICATE", f"two columns contain `{field}`"), field, value, record)
        if "id" not in fields and self.problems.total == before:
            columns = ", ".join(map(repr, list(record)[:8]))
            likely = None if self.problems.is_full else suggestion("id", dict.fromkeys(record, "text"))
            flag = "--map id=COLUMN" if likely is None else map_flag("id", likely.column)
            hint = f"Name its column with {flag}; the record has {columns}."
            if self.file is None:
                hint = f"Give every sample an id, or none: then they are numbered. The record has {columns}."
            self._note(RefusedError("MISSING_ID", "the sample has no `id`.", hint), "id", None, record)
        if self.problems.total > before:
            return None
        if labels:
            inner = fields.setdefault("annotations", {})
            for column in labels.keys() & inner.keys():
                twice = RefusedError("DUPLICATE", f"`annotations` and a column both contain the labels of {column!r}")
                self._note(twice, column, None, record)
                return None
            fields["annotations"] = inner | labels
        if metadata:
            inner = fields.setdefault("metadata", {})
            for column in metadata.keys() & inner.keys():
                self._note(
                    RefusedError("DUPLICATE", f"`metadata` and a column both contain {column!r}"), column, None, record
                )
                return None
            fields["metadata"] = metadata | inner
        shape = tuple(fields)
        self._shapes[shape] = self._shapes.get(shape, 0) + 1
        return fields

    def _annotates(self, column: str) -> bool:
        """Whether a column has the labels of an annotator."""
        known = self._is_annotator.get(column)
        if known is None:
            matching = [name for name in self._annotators if name == column or fnmatchcase(column, name)]
            self.unused_annotators.difference_update(matching)
            known = self._is_annotator[column] = bool(matching)
        return known

    def _check_for(self, field: str, column: str, textual: bool) -> Check:
        """The check of a field, adapted to its column and to the file format."""
        check = CHECKS[field]
        if field in ("id", "group"):
            check = partial(self._checked_name, column)
        elif field == "generated_answer":
            check = self._checked_answer
        elif field == "metadata":
            check = self._checked_metadata
        alone = column not in self._several

        def from_text(field: str, cell: str) -> Any:
            value = parsed_cell(field, cell, alone=alone)
            return None if value is None else check(field, value)

        def one_of_several(field: str, value: Any) -> Any:
            return check(field, [value])

        if textual:
            return from_text
        return check if alone else one_of_several

    def _checked_name(self, column: str, field: str, value: Any) -> str:
        name = checked_name(field, value)
        self._check_kind(column, value)
        return name

    def _checked_metadatum(self, column: str, value: Any) -> Any:
        """A value of a column that is not a field. An empty CSV cell is null."""
        if self._textual and value == "":
            return None
        self._check_kind(column, value)
        return checked_text(column, value) if type(value) is str else checked_value(column, value)

    def _checked_answer(self, field: str, value: Any) -> str:
        text = checked_text(field, value)
        if not text or text.isspace():
            self.blank_answers += 1
        return text

    def _checked_metadata(self, field: str, value: Any) -> Columns:
        """The keys of `metadata` are checked like columns that are not fields."""
        mapping = checked_mapping(field, value)
        return {key: self._checked_metadatum(key, item) for key, item in mapping.items() if item is not None}

    def _note(self, refusal: RefusedError, field: str, value: Any, record: Mapping[str, object]) -> None:
        self.problems.add(
            refusal.code,
            str(refusal),
            file=self.file,
            line=self._line,
            id=self.id_of(record) if field != "id" else None,
            field=field,
            value=shorten(value),
            hint=refusal.hint,
        )

    def _check_kind(self, column: str, value: Any) -> None:
        """Add a problem if a column mixes types of values."""
        first = self._kinds.get(column)
        if first is not None and first[0] == _KINDS.get(type(value)):
            return
        kind = _kind_of(value)
        if first is None:
            self._kinds[column] = (kind, self.file, self._line, shorten(value))
        elif first[0] != kind and column not in self._mixed and not self._is_log:
            self._mixed.add(column)
            _, file, line, shown = first
            where = f"line {line}" if file == self.file else f"{file}:{line}"
            message = (
                f"the column {column!r} mixes types: {shown} ({first[0]}, {where}) "
                f"and {shorten(value)} ({kind}, line {self._line})."
            )
            self.problems.add("TYPE", message, file=self.file, line=self._line, field=column, value=shorten(value))

    @property
    def metadata_columns(self) -> list[str]:
        """The columns that are not fields."""
        return [column for column in self._kinds if column not in self._route and not self._is_annotator.get(column)]

    def likely_typos(self, fields: Collection[str] = FIELDS) -> list[str]:
        """Columns kept as metadata whose names look like one of `fields`, misspelt, that no record has."""
        if self._is_log or not self.metadata_columns:
            return []
        from difflib import get_close_matches

        present, names = self.present, [name for name in FIELDS if name in fields]
        return [
            f"the column {column!r} is kept as metadata. Did you mean {near[0]!r}? Then use --map {near[0]}={column}"
            for column in self.metadata_columns[:_MOST_COMPARED]
            if (near := get_close_matches(column, names, n=1, cutoff=0.8)) and near[0] not in present
        ]


_KINDS: dict[type, str] = {bool: "boolean", int: "number", float: "number", str: "text", dict: "object"}


def _kind_of(value: Any) -> str:
    return _KINDS.get(type(value)) or ("number" if is_number(value) else type(value).__name__)


def sample_of(record: Mapping[str, object]) -> Sample:
    """Convert one record to a sample, with the same checks as a line of a file."""
    problems = Problems()
    fields = RecordChecker(None, problems, {}, taken=taken_columns(kinds_of([record]))).fields(1, record)
    problems.raise_if_any()
    return Sample(**fields or {})
