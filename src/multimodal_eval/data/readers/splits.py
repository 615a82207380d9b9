"""Cut the files of an input into splits that any process can read, and the parts of a run into tasks.

A split is counted first. From the counts follow the rows of every split, and so which part starts in which split.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import count_records, text_hash
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import (
    BLOCK,
    BOM,
    COMPRESSED,
    Block,
    bare_suffix,
    line_blocks,
    open_bytes,
    refuse_utf16,
)
from multimodal_eval.data.readers.column_names import TakenColumns
from multimodal_eval.data.readers.columns import ColumnPart, ColumnReader, column_parts
from multimodal_eval.data.readers.files import DataFile, FileSet
from multimodal_eval.data.readers.formats import COLUMNAR, DELIMITERS, read_parquet, reader_of
from multimodal_eval.data.readers.inputs import FileInput, checker_of, take_keys
from multimodal_eval.data.readers.json_file import records_of_block
from multimodal_eval.data.readers.parquet_file import parquet_errors
from multimodal_eval.data.readers.parts import Part, SamplePart, parts_of
from multimodal_eval.data.readers.problems import Columns, Problems, Record
from multimodal_eval.data.readers.records import ColumnMap, RecordChecker
from multimodal_eval.data.readers.scanned_blocks import (
    JsonBlock,
    RecordBlock,
    Rest,
    csv_blocks,
    csv_records,
    parquet_blocks,
)

SPLIT = 16 << 20  # bytes
SMALLEST_SPLIT = SPLIT >> 2
SPLITS_PER_WORKER = 4  # so that all workers finish at about the same time
JSON_LINES = (".jsonl", ".ndjson")
_FORMATS = (*JSON_LINES, ".csv", ".tsv", ".parquet", ".json")
_NO_LIMIT = 1 << 62


class Range(msgspec.Struct, frozen=True):
    """Consecutive records of a file.

    `start` and `stop` are bytes of plain JSONL, row groups of Parquet, and the whole file in other formats. Before a
    split is counted, a line belongs to the range that contains its first byte.
    """

    file: DataFile
    start: int
    stop: int
    size: int  # bytes to read
    records: int = 0


class Task(msgspec.Struct, frozen=True):
    """Consecutive parts of a run: `rows` records of some ranges, after the first `skip`."""

    number: int
    first_row: int
    rows: int
    skip: int
    ranges: tuple[Range, ...]


def has_splits(files: Iterable[DataFile]) -> bool:
    """Whether records of these files can be read from a range: not those of COCO annotations and of logs."""
    return all(
        bare_suffix(file.path) in _FORMATS
        and file.log is None
        and not (bare_suffix(file.path) == ".json" and reader_of(file.path).__name__ == "read_coco_annotations")
        for file in files
    )


def is_divisible(path: Path) -> bool:
    """Whether the file is plain JSONL, which can be read from any line."""
    return bare_suffix(path) in JSON_LINES and path.suffix.lower() not in COMPRESSED


def is_parquet(path: Path) -> bool:
    """Whether the file is Parquet, which can be read from any row group."""
    return path.suffix.lower() == ".parquet"


def split_size(total: int, workers: int | None) -> int:
    """The size of a split, in bytes, of an input of `total` bytes."""
    if workers is None:
        return SPLIT
    return min(SPLIT, max(SMALLEST_SPLIT, total // (SPLITS_PER_WORKER * workers)))


def splits_of(files: Iterable[DataFile], size: int) -> list[tuple[Range, ...]]:
    """The splits of some files, of about `size` bytes: pieces of large files, or several small files."""
    ranges = (_cut(DataFile(file.path.absolute(), file.keys), size) for file in files)
    return list(grouped((piece for pieces in ranges for piece in pieces), size))


def _cut(file: DataFile, size: int) -> Iterator[Range]:
    total = file.path.stat().st_size
    if not is_divisible(file.path):
        yield Range(file, 0, total, total)
        return
    for start in range(0, total, size):
        stop = min(total, start + size)
        yield Range(file, start, stop, stop - start)


def grouped(ranges: Iterable[Range], size: int) -> Iterator[tuple[Range, ...]]:
    """Consecutive ranges together, until they have about `size` bytes."""
    group: list[Range] = []
    total = 0
    for each in ranges:
        if group and total + each.size > size:
            yield tuple(group)
            group, total = [], 0
        group.append(each)
        total += each.size
    if group:
        yield tuple(group)


class MiscountedError(Exception):
    """The records of a file cannot be counted; reading it says why."""


def counted(split: Range) -> list[Range]:
    """The split with its number of records; the row groups of a Parquet file."""
    path = split.file.path
    if is_divisible(path):
        return [_counted_lines(split)]
    if is_parquet(path):
        return _row_groups(split.file)
    if bare_suffix(path) in JSON_LINES:
        with open_bytes(path) as stream:
            blocks = line_blocks(stream, str(path))
            return [msgspec.structs.replace(split, records=_records_in(block.data for block in blocks))]
    if (suffix := bare_suffix(path)) in DELIMITERS:
        rows = csv_records(path, DELIMITERS[suffix])
        if rows is None:
            raise MiscountedError
        return [msgspec.structs.replace(split, records=rows)]
    problems = Problems()
    records = sum(1 for _ in reader_of(path)(path, problems))
    if problems.total:
        raise MiscountedError
    return [msgspec.structs.replace(split, records=records)]


def _records_in(blocks: Iterable[bytes]) -> int:
    """The number of lines that are not blank."""
    records, inside = 0, False
    for block in blocks:
        more, _, inside = count_records(block, _NO_LIMIT, inside)
        records += more
    return records


def _counted_lines(split: Range) -> Range:
    """The lines that start in the split, by their bytes, and the number of those that are not blank."""
    with split.file.path.open("rb") as stream:
        start = head = 0
        if split.start:
            start = _line_after(stream, split.start)
        else:
            beginning = stream.read(4)
            refuse_utf16(beginning, str(split.file.path))
            head = len(BOM) if beginning.startswith(BOM) else 0
        stop = max(start, _line_after(stream, split.stop))
        records = _records_in(byte_blocks(stream, start + head, stop))
    return Range(split.file, start, stop, stop - start, records)


def byte_blocks(stream: IO[bytes], start: int, stop: int) -> Iterator[bytes]:
    """The bytes of a stream from `start` to `stop`."""
    stream.seek(start)
    while start < stop and (block := stream.read(min(BLOCK, stop - start))):
        start += len(block)
        yield block


def _line_after(stream: IO[bytes], offset: int) -> int:
    """The start of the first line at the offset or after it."""
    stream.seek(offset - 1)
    while (line := stream.readline(BLOCK)) and not line.endswith(b"\n"):
        pass
    return stream.tell()


def _row_groups(file: DataFile) -> list[Range]:
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(file.path)
    except parquet_errors() as error:
        raise MiscountedError from error
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return [
        Range(file, number, number + 1, group.total_byte_size, group.num_rows) for number, group in enumerate(groups)
    ]


def tasks_of(groups: Sequence[tuple[Range, ...]], part_size: int) -> list[Task]:
    """The tasks for parts of `part_size` rows. A task has the parts whose first row is in its group of ranges."""
    ranges = [each for group in groups for each in group]
    ends = list(accumulate(each.records for each in ranges))
    total = ends[-1] if ends else 0
    tasks: list[Task] = []
    first = 0  # the number of the group's first range
    for group in groups:
        begin = ends[first - 1] if first else 0
        end = ends[first + len(group) - 1]
        row, stop = (-(-place // part_size) * part_size for place in (begin, end))
        stop = min(stop, total)
        if row < stop:
            start = bisect_right(ends, row)
            last = bisect_left(ends, stop)
            skip = row - (ends[start - 1] if start else 0)
            tasks.append(Task(len(tasks), row, stop - row, skip, _joined(ranges[start : last + 1])))
        first += len(group)
    return tasks


def _joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The ranges with records; adjacent ones of a file become one."""
    joined: list[Range] = []
    for each in ranges:
        last = joined[-1] if joined else None
        if last is not None and last.file == each.file and last.stop == each.start:
            joined[-1] = Range(each.file, last.start, each.stop, last.size + each.size, last.records + each.records)
        elif each.records:
            joined.append(each)
    return tuple(joined)


# Read the samples of some ranges of files: one function per format, as columns or record by record.


class TooLongError(Exception):
    """A line is so long that it may have to be refused."""


class RangeReader(msgspec.Struct, frozen=True):
    """Reads ranges of files in any process. It is pickled with every task."""

    columns: ColumnMap
    taken: TakenColumns
    annotators: tuple[str, ...]
    in_columns: bool  # by compiled code

    @classmethod
    def of(cls, source: FileInput, files: FileSet) -> RangeReader:
        """The reader of the data or of the predictions."""
        plain = not source.annotators and not any(file.keys or file.log for file in files.files)
        in_columns = plain and all(bare_suffix(file.path) in COLUMNAR for file in files.files)
        columns = source.columns_in(files)
        return cls(columns, source.taken_in(files, columns), source.annotators, in_columns)

    def checker(self, path: Path, problems: Problems) -> RecordChecker:
        """A checker for the records of a file."""
        return checker_of(path, problems, self.columns, self.annotators, self.taken)

    def parts(self, task: Task, checker: RecordChecker, problems: Problems, most: int) -> Iterator[Part]:
        """The checked samples of a task, in parts of at most `most`."""
        if self.in_columns:
            reader = ColumnReader((), checker, problems, task.rows)
            return column_parts(reader.pieces(_blocks(task)), most)
        return map(SamplePart, parts_of(_samples(task, checker, problems), most))


def id_hashes(part: Part) -> NDArray[np.int64]:
    """The hashes of the ids of a part."""
    if isinstance(part, ColumnPart):
        return part.id_hashes
    samples = part.samples(())
    return np.fromiter((text_hash(sample.id) for sample in samples), np.int64, len(samples))


def _blocks(task: Task) -> Iterator[tuple[str, RecordBlock | Rest]]:
    """(file, block) of a task, without the records that it skips, which are in its first range."""
    skip = task.skip
    for each in task.ranges:
        path = each.file.path
        if is_parquet(path):
            blocks: Iterator[RecordBlock | Rest] = parquet_blocks(path, range(each.start, each.stop), skip)
        elif (suffix := bare_suffix(path)) in DELIMITERS:
            blocks = csv_blocks(path, DELIMITERS[suffix], skip)
        else:
            blocks = _json_blocks(each, skip)
        yield from ((str(path), block) for block in blocks)
        skip = 0


def _json_blocks(part: Range, skip: int) -> Iterator[JsonBlock]:
    for block in blocks_of(part):
        data = block.data
        if skip:
            skipped, offset, _ = count_records(data, skip)
            skip -= skipped
            data = data[offset:]
        if data:
            rest = msgspec.structs.replace(block, data=data)
            yield JsonBlock(str(part.file.path), rest)


def blocks_of(part: Range) -> Iterator[Block]:
    """The lines of a range of a JSONL file, in blocks. Line numbers and offsets count from the start of the range."""
    path = part.file.path
    if not is_divisible(path):
        with open_bytes(path) as stream:
            yield from line_blocks(stream, str(path))
        return
    with path.open("rb") as stream:
        head = len(BOM) if part.start == 0 and stream.read(len(BOM)) == BOM else 0
        rest = b""
        for chunk in byte_blocks(stream, part.start + head, part.stop):
            cut = chunk.rfind(b"\n") + 1
            if cut == 0:
                rest += chunk
                if len(rest) > limits.current().text_bytes - 2 * BLOCK:
                    raise TooLongError
                continue
            yield Block(rest + chunk[:cut], 1, 0, True)
            rest = chunk[cut:]
        if rest:
            yield Block(rest, 1, 0, False)


def _samples(task: Task, checker: RecordChecker, problems: Problems) -> Iterator[Sample]:
    records = islice(_records(task.ranges, problems), task.skip, task.skip + task.rows)
    for line, record in records:
        fields = checker.fields(line, record)
        if fields is not None:
            yield Sample(**fields)


def _records(ranges: Iterable[Range], problems: Problems) -> Iterator[tuple[int, Columns]]:
    for each in ranges:
        keys = each.file.keys
        for line, record in records_of(each, problems):
            if keys:
                take_keys(record, keys, problems, str(each.file.path), line)
            yield line, record


def records_of(part: Range, problems: Problems) -> Iterator[Record]:
    """(line, columns) of every record of a range, unchecked."""
    path = part.file.path
    if is_parquet(path):
        return read_parquet(path, problems, range(part.start, part.stop))
    if not is_divisible(path):
        return reader_of(path)(path, problems)
    return (record for block in blocks_of(part) for record in records_of_block(block, path, problems, 0))
