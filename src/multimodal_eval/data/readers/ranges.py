"""Read the samples of some ranges of files: one function per format, as columns or record by record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import count_records, text_hash
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import (
    BLOCK,
    BOM,
    Block,
    bare_suffix,
    line_blocks,
    open_bytes,
)
from multimodal_eval.data.readers.column_names import TakenColumns
from multimodal_eval.data.readers.columns import ColumnPart, ColumnReader, column_parts
from multimodal_eval.data.readers.csv_columns import csv_blocks
from multimodal_eval.data.readers.files import FileSet
from multimodal_eval.data.readers.formats import COLUMNAR, DELIMITERS, read_parquet, reader_of
from multimodal_eval.data.readers.inputs import FileInput, checker_of, take_keys
from multimodal_eval.data.readers.json_columns import JsonBlock
from multimodal_eval.data.readers.json_file import records_of_block
from multimodal_eval.data.readers.parquet_columns import parquet_blocks
from multimodal_eval.data.readers.parts import Part, SamplePart, parts_of
from multimodal_eval.data.readers.problems import Columns, Problems, Record
from multimodal_eval.data.readers.records import ColumnMap, RecordChecker
from multimodal_eval.data.readers.scanned import RecordBlock, Rest
from multimodal_eval.data.readers.splits import Range, Task, byte_blocks, is_divisible, is_parquet


class TooLongError(Exception):
    """A line is so long that it may have to be refused."""


@dataclass(frozen=True)
class RangeReader:
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
            return column_parts(reader.pieces_of(_blocks(task)), most)
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
            rest = replace(block, data=data)
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
