"""The tasks of reading an input in parallel, each of which may be done in another process.

Count the splits of the files, read them into parts, and compare the hashes of their ids. Data and predictions are
joined by id: both are divided into buckets by the hashes of their ids, one task joins one bucket, and another puts the
predictions of some consecutive rows into their parts.

Whatever is unusual (a refused record, two ids with the same hash, ids without a partner, columns of mixed types) only
raises a doubt. The input is then read in this process from start to end, which reports every problem with its file and
line. So both ways store the same parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.arrow import integer_values, integers, null_rows
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers import limits, parts
from multimodal_eval.data.readers.blocks import DamagedStreamError
from multimodal_eval.data.readers.field_checks import taking_blank_references
from multimodal_eval.data.readers.files import describe_file
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import CheckerNotes, Fields
from multimodal_eval.data.readers.splits import (
    MiscountedError,
    Range,
    RangeReader,
    Task,
    TooLongError,
    counted,
    id_hashes,
)
from multimodal_eval.data.readers.summary import Join, JoinNotes, renamed_metadata
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import (
    columns_of,
    columns_of_fields,
    python_strings,
    strings,
    table_of_columns,
    to_samples,
    to_table,
)
from multimodal_eval.run.plan import takes_blank_references

ROWS_PER_BUCKET = 1 << 20
BYTES_PER_BUCKET = 1 << 26
MAX_BUCKETS = 1024
_STOP = "stop"  # exists in the scratch folder if there is a doubt


class DoubtError(Exception):
    """The input must be read from start to end."""


@dataclass(frozen=True)
class Done:
    """The result of a task that only checks or stores something."""


DOUBTS = (
    DoubtError,
    MiscountedError,
    TooLongError,
    DamagedStreamError,
    MultimodalEvalError,
    OSError,
    pa.ArrowException,
)


def is_stopped(folder: RunFolder) -> bool:
    """Whether another task has a doubt, so that nothing needs to be read."""
    return folder.read_piece(_STOP, 0) is not None


def stop(folder: RunFolder) -> None:
    """Let the tasks that have not started end immediately."""
    folder.write_pieces(_STOP, [b""])


def bucket_count(rows: int, size: int = 0) -> int:
    """The number of buckets for some rows with `size` bytes."""
    return min(MAX_BUCKETS, max(-(-rows // ROWS_PER_BUCKET), -(-size // BYTES_PER_BUCKET)))


def bounds_of(ordered: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    """The places at which the second and all further buckets start among sorted hashes."""
    limits = np.array([(number << 64) // buckets for number in range(1, buckets)], np.uint64)
    return np.searchsorted(ordered, limits)


def refuse_equal(ordered: NDArray[np.uint64]) -> None:
    """Raise a DoubtError if two of the sorted hashes are equal."""
    if bool((ordered[1:] == ordered[:-1]).any()):
        raise DoubtError


CHUNK = 32 << 20  # bytes of predictions that a task divides at a time
PARTS_PER_UNIT = 8
_ROWS = 10_000
_HASH = "hash"  # a column of hashes, besides the columns of samples
_MEDIA = ("image", "images", "audio", "video", "messages")
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])  # stored values stay as they are
_SORTED = msgspec.json.Encoder(order="deterministic")
PLACES = np.dtype([("hash", "<u8"), ("row", "<i8")])


@dataclass(frozen=True)
class PredictionTask:
    """Predictions to read and to divide into buckets."""

    task: Task
    reader: RangeReader
    buckets: int


@dataclass(frozen=True)
class PredictionNotes:
    """What a task has noted about its predictions, and the number of its scratch files."""

    checker: CheckerNotes
    chunks: int


@dataclass(frozen=True)
class JoinTask:
    """A bucket of data and predictions from all tasks."""

    bucket: int
    tasks: int  # of the data
    chunks: tuple[int, ...]  # of each task of the predictions
    rows: int  # of the whole input
    unit: int  # rows of a `CombineTask`


@dataclass(frozen=True)
class CombineTask:
    """Consecutive parts and their predictions from all buckets."""

    unit: int
    first_row: int
    rows: int
    part_size: int
    buckets: int
    is_json: bool  # stored values are equal if and only if the values in the files are
    fields: frozenset[str]  # that come from the predictions


@dataclass(frozen=True)
class Combined:
    """What a `CombineTask` has noted about its samples."""

    columns: ColumnsSeen
    join: JoinNotes


def places_of(task: int) -> str:
    """The scratch file with the hashes and rows of a task of the data."""
    return f"places.task-{task:05d}"


def _predictions_of(task: int, chunk: int) -> str:
    return f"predictions.task-{task:05d}.{chunk:05d}"


def _joined_of(bucket: int) -> str:
    return f"joined.bucket-{bucket:05d}"


def write_places(folder: RunFolder, task: Task, hashes: NDArray[np.int64], buckets: int) -> None:
    """Store the hashes and rows of a task of the data, in buckets."""
    places = np.empty(len(hashes), PLACES)
    places["hash"], places["row"] = hashes.view(np.uint64), np.arange(task.first_row, task.first_row + task.rows)
    places = places[np.argsort(places["hash"])]
    refuse_equal(places["hash"])
    pieces = np.split(places, bounds_of(places["hash"], buckets))
    folder.write_pieces(places_of(task.number), [piece.tobytes() for piece in pieces])


def divide(folder: RunFolder, item: PredictionTask) -> PredictionNotes:
    """Read some predictions and store them in buckets."""
    task, problems = item.task, Problems()
    checker = item.reader.checker(task.ranges[0].file.path, problems)
    chunks = rows = size = 0
    tables: list[pa.Table] = []
    for part in item.reader.parts(task, checker, problems, _ROWS):
        if problems.total:
            raise DoubtError
        table = pa.table(columns_of(part.table(0).drop_columns(["row"])))
        tables.append(table.append_column(_HASH, integers(id_hashes(part))))
        rows, size = rows + len(part), size + table.nbytes
        if size >= CHUNK:
            _write_chunk(folder, _predictions_of(task.number, chunks), tables, item.buckets)
            chunks, size, tables = chunks + 1, 0, []
    if problems.total or rows != task.rows:
        raise DoubtError
    if tables:
        _write_chunk(folder, _predictions_of(task.number, chunks), tables, item.buckets)
        chunks += 1
    return PredictionNotes(checker.notes, chunks)


def _write_chunk(folder: RunFolder, name: str, tables: Sequence[pa.Table], buckets: int) -> None:
    table = _concatenated(tables)
    hashes = integer_values(table.column(_HASH)).view(np.uint64)
    order = np.argsort(hashes)
    bounds = bounds_of(hashes[order], buckets)
    _write_slices(folder, name, table.take(integers(order)), [0, *bounds.tolist(), len(table)])


def _concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all tables; a column that a table lacks is null."""
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def _write_slices(folder: RunFolder, name: str, table: pa.Table, ends: Sequence[int]) -> None:
    folder.write_pieces(name, [_packed(table.slice(start, stop - start)) for start, stop in pairwise(ends)])


def _packed(table: pa.Table) -> bytes:
    if not len(table):
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(pieces: Iterable[bytes | None]) -> pa.Table | None:
    """The rows of all pieces; None if there are none."""
    tables = [pa.ipc.open_stream(piece).read_all() for piece in pieces if piece]
    return _concatenated(tables) if tables else None


def join(folder: RunFolder, item: JoinTask) -> Done:
    """Find the prediction of every row of a bucket, and store them by row."""
    pieces = (folder.read_piece(places_of(task), item.bucket) for task in range(item.tasks))
    places = np.concatenate([np.frombuffer(piece or b"", PLACES) for piece in pieces])
    names = (_predictions_of(task, chunk) for task, chunks in enumerate(item.chunks) for chunk in range(chunks))
    predictions = _unpacked(folder.read_piece(name, item.bucket) for name in names)
    if (0 if predictions is None else len(predictions)) != len(places):
        raise DoubtError
    if predictions is None:
        return Done()
    hashes = integer_values(predictions.column(_HASH)).view(np.uint64)
    order = np.argsort(hashes)
    places = places[np.argsort(places["hash"])]
    refuse_equal(places["hash"])
    if not bool((places["hash"] == hashes[order]).all()):
        raise DoubtError
    by_row = np.argsort(places["row"])
    rows = places["row"][by_row]
    table = predictions.drop_columns([_HASH]).take(integers(order[by_row])).append_column("row", integers(rows))
    ends = np.searchsorted(rows, np.arange(0, item.rows + item.unit, item.unit))
    _write_slices(folder, _joined_of(item.bucket), table, ends.tolist())
    return Done()


def combine(folder: RunFolder, config: RunConfig, item: CombineTask) -> Combined:
    """Put the predictions into some parts."""
    columns, notes = ColumnsSeen(config), JoinNotes()
    table = _unpacked(folder.read_piece(_joined_of(bucket), item.unit) for bucket in range(item.buckets))
    assert table is not None
    rows = integer_values(table.column("row"))
    table = table.take(integers(np.argsort(rows)))
    for row in range(item.first_row, item.first_row + item.rows, item.part_size):
        part = row // item.part_size
        predictions = table.slice(row - item.first_row, item.part_size)
        combined, noted = _combined(folder.read_part("samples", part), predictions, row, item)
        notes.add(noted)
        if columns.fields:
            columns.see(to_samples(combined.select(columns_of_fields({"id", *columns.fields}))))
        folder.write_part("samples", part, combined)
    return Combined(columns, notes)


def _combined(data: pa.Table, predictions: pa.Table, row: int, item: CombineTask) -> tuple[pa.Table, JoinNotes]:
    """The columns of both. Fields that both have are merged sample by sample."""
    if not data.column("id").equals(predictions.column("id")):
        raise DoubtError
    columns, notes = columns_of(data), JoinNotes()
    for field in FIELDS:
        names = columns_of_fields({field} - {"id"})
        predicted = {name: predictions.column(name) for name in names if _has_values(predictions, name)}
        if not predicted:
            continue
        if field in item.fields and field in _MEDIA and _size(data) + _size(predictions) >= parts.MEDIA_BYTES:
            raise DoubtError  # the part may end early
        if columns.keys() & names:
            return _merged(data, predictions, row, item)
        if field not in item.fields:
            notes.unused[field] += int((~np.logical_and.reduce(list(map(null_rows, predicted.values())))).sum())
        elif field == "metadata":
            columns[field] = _renamed(predicted[field], notes)
        else:
            columns |= predicted
    return table_of_columns(columns, len(data), row), notes


def _renamed(metadata: pa.ChunkedArray, notes: JoinNotes) -> pa.Array:
    """The metadata of predictions with the names that they have in samples; the data have none."""
    texts = (None if text is None else _KEYS.decode(text) for text in python_strings(metadata))
    renamed = (None if values is None else renamed_metadata(values, {}, notes) for values in texts)
    return strings([None if values is None else _SORTED.encode(values).decode() for values in renamed])


def _size(table: pa.Table) -> int:
    """The size of all media in bytes, which is at least `media_size`."""
    return sum(table.column(name).nbytes for name in columns_of_fields(_MEDIA) if name in table.column_names)


def _has_values(table: pa.Table, name: str) -> bool:
    return name in table.column_names and table.column(name).null_count < len(table)


def _merged(data: pa.Table, predictions: pa.Table, row: int, item: CombineTask) -> tuple[pa.Table, JoinNotes]:
    if not item.is_json:
        raise DoubtError
    problems, joined = Problems(), Join(item.fields)
    columns = {name: predictions.column(name) for name in predictions.column_names}
    complete = table_of_columns(columns, len(predictions), row)
    pairs = zip(to_samples(data), to_samples(complete), strict=True)
    samples = [Sample(**joined.merge(_fields(sample), prediction, problems, None, 0)) for sample, prediction in pairs]
    if problems.total:
        raise DoubtError
    return to_table(samples, row), joined.notes


def _fields(sample: Sample) -> Fields:
    values = {field: getattr(sample, field) for field in FIELDS}
    return {field: value for field, value in values.items() if value is not None and value != {}}


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
    with (
        limits.using(config.max_expansion, config.max_record_mb),
        taking_blank_references(takes_blank_references(config)),
    ):
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
