"""Counts and notes about the samples of an input."""

from __future__ import annotations

import tempfile
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.core.sample import FIELDS, PREDICTED_METADATA, Sample
from multimodal_eval.data.readers.column_names import map_flag
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import Fields, RecordChecker

NOT_USED = "are not used"  # in a note about columns that belong to the other file
_SHOWN_COLUMNS = 10


class Summary(msgspec.Struct):
    """Counts and notes about the samples that were read."""

    samples: int = 0
    fields: Counter[str] = msgspec.field(default_factory=Counter)
    metadata: set[str] = msgspec.field(default_factory=set)
    blank_answers: int = 0
    unmatched_data: int = 0
    unmatched_predictions: int = 0
    notes: list[str] = msgspec.field(default_factory=list)

    def add(self, checker: RecordChecker, predicted: Collection[str] | None = None) -> None:
        """Add the counts of a checker. Of the predictions, only the fields in `predicted` are read."""
        fields = FIELDS if predicted is None else predicted
        self.fields.update({name: count for name, count in checker.present.items() if name in fields})
        if predicted is None:
            self.metadata.update(checker.metadata_columns)
        self.blank_answers += checker.blank_answers
        self.notes.extend([*checker.taken.notes, *checker.likely_typos(fields)])

    def add_join(self, join: JoinNotes, predictions: str) -> None:
        """Add what became of columns of the predictions that are not about answers; all other counts are known."""
        self.metadata.update(join.metadata)
        if unused := [name for name in FIELDS if name in join.unused]:
            absent = next((name for name in unused if name not in self.fields), None)
            hint = "" if absent is None else f". To use it anyway: {map_flag(absent, absent)}"
            counts = self._counts(unused, join.unused)
            self.notes.append(f"columns of {predictions} {NOT_USED}, because they belong to DATA: {counts}{hint}")
        if kept := sorted(name for name in join.metadata if name.startswith(PREFIX)):
            self.notes.append(f"columns of {predictions} are kept as metadata: {self._counts(kept, join.metadata)}")

    def _counts(self, names: Sequence[str], counts: Mapping[str, int]) -> str:
        more = f", … ({len(names):,} in total)" if len(names) > _SHOWN_COLUMNS else ""
        shown = (f"{name} ({counts[name]:,} of {self.samples:,} samples)" for name in names[:_SHOWN_COLUMNS])
        return ", ".join(shown) + more


def refuse_empty(summary: Summary, name: str | None) -> None:
    """Refuse an input without samples."""
    if not summary.samples:
        raise InputError([Problem(code="EMPTY", message="the input has no samples", file=name)])


def note_unused(option: str, columns: set[str], checker: RecordChecker, problems: Problems, summary: Summary) -> None:
    """Add a problem for each column that the user named and no record has."""
    hint = f"The records have {', '.join(map(repr, [*checker.present, *checker.metadata_columns]))}."
    for column in sorted(columns) if summary.samples else ():
        problems.add("UNKNOWN_COLUMN", f"--{option} names the column {column!r}, which no record has.", hint=hint)


# Duplicate ids and the join of two files by id, in a few bytes per sample.

_values = attrgetter(*FIELDS)
PREFIX = "predictions."  # of metadata from a file of predictions


class SeenIds:
    """Hashes of the ids of an input. If two are equal, the input is read again to compare the ids themselves."""

    def __init__(self, hash_of: Callable[[str], int] = hash) -> None:
        self._hashes, self._hash_of = array("q"), hash_of

    def add(self, sample_id: str) -> None:
        """Add one id."""
        self._hashes.append(self._hash_of(sample_id))

    def add_hashes(self, hashes: NDArray[np.int64]) -> None:
        """Add the hashes of some ids."""
        self._hashes.frombytes(hashes.tobytes())

    def note_duplicates(
        self, problems: Problems, reread: Callable[[], Iterable[tuple[str | None, int, str | None]]]
    ) -> None:
        """Add a problem for every id that occurs twice, with both locations; `reread` yields (file, line, id) again."""
        hashes = np.sort(np.frombuffer(self._hashes, dtype=np.int64)) if self._hashes else np.array([], np.int64)
        suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        if not suspects:
            return
        first_place: dict[str, tuple[str | None, int]] = {}
        for file, line, sample_id in reread():
            if sample_id is None or self._hash_of(sample_id) not in suspects:
                continue
            if sample_id not in first_place:
                first_place[sample_id] = (file, line)
                continue
            where = _both(first_place[sample_id], (file, line))
            problems.add("DUPLICATE", f"the id occurs twice, {where}", file=file, line=line, id=sample_id, field="id")


def _both(first: tuple[str | None, int], second: tuple[str | None, int]) -> str:
    if first[0] != second[0]:
        return f"in {first[0]}:{first[1]} and {second[0]}:{second[1]}"
    return f"in lines {first[1]} and {second[1]}" if first != second else f"both times in line {first[1]}"


class PredictionIndex:
    """Checked prediction records, spooled to a temporary file and looked up by the hash of their id."""

    def __init__(self) -> None:
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._hashes, self._ends, self._end = array("q"), array("q"), 0
        self._order, self._sorted = array("q"), array("q")  # arrays are searched faster than those of NumPy
        self._used: NDArray[np.bool_] | None = None
        self._encode, self._decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Sample).decode

    def close(self) -> None:
        """Delete the temporary file."""
        self._spool.close()

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, fields: Fields) -> None:
        """Spool the checked fields of one record."""
        self._end += self._spool.write(self._encode(fields))
        self._hashes.append(hash(fields["id"]))
        self._ends.append(self._end)

    def seal(self) -> None:
        """Sort the index. No records may be added after this."""
        hashes = np.array(self._hashes, dtype=np.int64)
        order = np.argsort(hashes, kind="stable").astype(np.int64)
        self._order, self._sorted = array("q", order.tobytes()), array("q", hashes[order].tobytes())
        self._used = np.zeros(len(hashes), dtype=np.bool_)
        self._spool.flush()

    def take(self, sample_id: str) -> Sample | None:
        """The record with this id, or None; it then counts as used."""
        if self._used is None:
            raise RuntimeError("call `seal` before `take`")
        id_hash = hash(sample_id)
        position = bisect_left(self._sorted, id_hash)
        while position < len(self._sorted) and self._sorted[position] == id_hash:
            row = self._order[position]
            sample = self._read(row)
            if sample.id == sample_id:
                self._used[row] = True
                return sample
            position += 1  # another id with the same hash
        return None

    def unused(self) -> Iterator[Sample]:
        """The records that were not taken, in file order."""
        if self._used is None:
            raise RuntimeError("call `seal` before `unused`")
        for row in np.flatnonzero(~self._used):
            yield self._read(int(row))

    def _read(self, row: int) -> Sample:
        start = self._ends[row - 1] if row else 0
        self._spool.seek(start)
        return self._decode(self._spool.read(self._ends[row] - start))


class JoinNotes(msgspec.Struct):
    """How many samples have values of the predictions that no field gets: by field, and by the name in the metadata."""

    unused: Counter[str] = msgspec.field(default_factory=Counter)  # fields that belong to the data, which lack them
    metadata: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, other: JoinNotes) -> None:
        """Add the notes of other samples."""
        self.unused.update(other.unused)
        self.metadata.update(other.metadata)


class Join:
    """Adds predictions to data. Only some `fields` come from the predictions: nobody brings their own references."""

    def __init__(self, fields: Collection[str]) -> None:
        self.fields, self.notes = fields, JoinNotes()

    def merge(self, data: Fields, prediction: Sample, problems: Problems, file: str | None, line: int) -> Fields:
        """The fields of both. Different values of a field are a problem."""
        merged = dict(data)
        for name, predicted in zip(FIELDS, _values(prediction), strict=True):
            if predicted is None or predicted == (value := merged.get(name)):
                continue
            if name == "metadata":
                known = value or {}
                merged[name] = renamed_metadata(predicted, known, self.notes) | known
            elif value is not None:
                both = f"{shorten(value)} here and {shorten(predicted)} in the predictions"
                message = f"`{name}` differs between the two files: {both}"
                hint = None if name in self.fields else "It belongs to the data: the predictions need no such column."
                problems.add("CONFLICT", message, file=file, line=line, id=data["id"], field=name, hint=hint)
            elif name in self.fields:
                merged[name] = predicted
            elif predicted != {}:  # which is stored as null
                self.notes.unused[name] += 1
        return merged


def renamed_metadata(predicted: Mapping[str, Any], known: Mapping[str, Any], notes: JoinNotes) -> dict[str, Any]:
    """The metadata of a prediction as a sample has them: `predictions.NAME`, without those that the data have too.

    Metadata of answers, such as the number of tokens, keep their names.
    """
    metadata: dict[str, Any] = {}
    for key, item in predicted.items():
        if key in known and known[key] == item:
            continue
        name = key if key in PREDICTED_METADATA and key not in known else PREFIX + key
        metadata[name] = item
        notes.metadata[name] += 1
    return metadata
