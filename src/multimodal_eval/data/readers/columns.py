"""Read JSONL as columns. Compiled code accepts the plain records; the others are checked one by one, in their order.

A record has a *shape*: its columns and the kinds of their values. The first record of every shape is always checked in
Python, which notes its columns. All that the checker would note about further records of that shape is their number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import JsonColumns, text_hash
from multimodal_eval.core.machine import cores
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers import parts
from multimodal_eval.data.readers.blocks import BLOCK, Block, DamagedStreamError, line_blocks, open_bytes
from multimodal_eval.data.readers.field_checks import checked_text
from multimodal_eval.data.readers.files import DataFile
from multimodal_eval.data.readers.ids import SeenIds
from multimodal_eval.data.readers.json_file import record_of_line
from multimodal_eval.data.readers.problems import Columns, Problems
from multimodal_eval.data.readers.records import CHECKS, RecordChecker

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_THREADS = 8
_ROLES = {
    **{field: "text" if CHECKS[field] is checked_text else "other" for field in FIELDS},
    **dict.fromkeys(("id", "group"), "name"),
    **dict.fromkeys(("expected_answer", "caption"), "reference"),
    **dict.fromkeys(("image", "audio", "video"), "media"),
    "choices": "choices",
    "generated_answer": "answer",
    "metadata": "metadata",
    "references": "references",
}
_BLANK = "b"  # the kind of a blank answer


_Bits = NDArray[np.uint8] | None
_Texts = tuple[_Bits, NDArray[np.int32], NDArray[np.uint8]]  # validity, offsets, bytes
_Lists = tuple[_Bits, NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]  # … and the offsets of the items


class Scanned(NamedTuple):
    """The accepted rows of a block, and its other lines. Line numbers count from 0 in the block."""

    lines: NDArray[np.int32]
    begins: NDArray[np.int32]
    shape_of: NDArray[np.int32]
    id_hashes: NDArray[np.int64]
    media: NDArray[np.int64] | None
    others: list[tuple[int, int, int]]  # line, begin, end
    shapes: list[tuple[int, tuple[str, ...], str]]  # first row, columns, kinds
    texts: dict[int, _Texts]
    lists: _Lists | None


@dataclass
class Piece:
    """The samples of one block: accepted rows, and samples that were checked in Python."""

    scanned: Scanned
    samples: list[Sample]
    order: NDArray[np.int64]  # accepted rows by number, then samples, as they follow each other
    media: NDArray[np.int64] | None  # the size of the media of each of them

    def __len__(self) -> int:
        return len(self.order)

    @property
    def id_hashes(self) -> NDArray[np.int64]:
        """The hashes of the ids, in order."""
        if not self.samples:
            return self.scanned.id_hashes[self.order]
        checked = np.fromiter((text_hash(sample.id) for sample in self.samples), np.int64, len(self.samples))
        return np.concatenate([self.scanned.id_hashes, checked])[self.order]

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """The columns of all samples, in order."""
        import pyarrow as pa

        from multimodal_eval.core.arrow import taken
        from multimodal_eval.data.runs.sample_table import columns_of, to_table

        accepted, rows = self._accepted(), len(self.scanned.lines)
        if not self.samples and len(self.order) == rows:
            return accepted
        table = to_table(self.samples, 0)
        checked = columns_of(table.drop_columns(["row"])) if self.samples else {}
        if len(self.samples) == len(self.order):
            return checked
        columns = {}
        for name in accepted.keys() | checked.keys():
            kind = table.schema.field(name).type
            pair = [
                accepted[name] if name in accepted else pa.nulls(rows, kind),
                checked[name] if name in checked else pa.nulls(len(self.samples), kind),
            ]
            columns[name] = taken(pa.concat_arrays(pair), self.order)
        return columns

    def _accepted(self) -> dict[str, pa.Array]:
        from multimodal_eval.data.runs.arrays import text_array, text_lists

        rows = len(self.scanned.lines)
        columns = {FIELDS[field]: text_array(rows, *buffers) for field, buffers in self.scanned.texts.items()}
        if self.scanned.lists is not None:
            validity, ends, offsets, data = self.scanned.lists
            columns["references"] = text_lists(rows, validity, ends, text_array(len(offsets) - 1, None, offsets, data))
        return columns


class ColumnPart:
    """A part that consists of ranges of pieces."""

    def __init__(self, ranges: Sequence[tuple[Piece, int, int]]) -> None:
        self._ranges = ranges

    def __len__(self) -> int:
        return sum(stop - start for _, start, stop in self._ranges)

    @property
    def id_hashes(self) -> NDArray[np.int64]:
        """The hashes of the ids."""
        return np.concatenate([piece.id_hashes[start:stop] for piece, start, stop in self._ranges])

    @cached_property
    def _columns(self) -> dict[str, pa.ChunkedArray]:
        import pyarrow as pa

        from multimodal_eval.data.runs.sample_table import SCHEMA

        names = {name for piece, _, _ in self._ranges for name in piece.columns}
        columns = {}
        for name in names:
            kind = SCHEMA.field(name).type
            pieces = [
                piece.columns[name].slice(start, stop - start)
                if name in piece.columns
                else pa.nulls(stop - start, kind)
                for piece, start, stop in self._ranges
            ]
            columns[name] = pa.chunked_array(pieces, kind)
        return columns

    def samples(self, fields: Collection[str]) -> list[Sample]:
        """The samples with their ids and the given fields."""
        from multimodal_eval.data.runs.sample_table import columns_of_fields, to_samples

        return to_samples(self.table(0).select(columns_of_fields({"id", *fields})))

    def table(self, first_row: int) -> pa.Table:
        """The table to store; `first_row` is the number of the first sample in the input."""
        from multimodal_eval.data.runs.sample_table import table_of_columns

        return table_of_columns(self._columns, len(self), first_row)


def column_parts(pieces: Iterable[Piece], most: int) -> Iterator[ColumnPart]:
    """Parts of at most `most` samples; a part ends early once it has 64 MB of media."""
    ranges: list[tuple[Piece, int, int]] = []
    rows = size = 0
    for piece in pieces:
        start = 0
        while start < len(piece):
            stop = min(len(piece), start + most - rows)
            is_full = stop - start == most - rows
            if piece.media is not None:
                sums = size + np.cumsum(piece.media[start:stop])
                enough = int(np.searchsorted(sums, parts.MEDIA_BYTES))
                if enough < len(sums):
                    stop, is_full = start + enough + 1, True
                size = int(sums[-1])
            ranges.append((piece, start, stop))
            rows += stop - start
            start = stop
            if is_full:
                yield ColumnPart(ranges)
                ranges, rows, size = [], 0, 0
    if ranges:
        yield ColumnPart(ranges)


class ColumnReader:
    """Reads JSONL files into pieces. The checker's notes are the same as if it had checked every record."""

    def __init__(
        self, files: Sequence[DataFile], checker: RecordChecker, problems: Problems, limit: int | None = None
    ) -> None:
        self._files, self._checker, self._problems = files, checker, problems
        self._left = limit  # records that may still be read
        self.seen = SeenIds(text_hash)
        self._shapes: dict[tuple[tuple[str, ...], str], tuple[str, ...]] = {}  # their fields
        route = [
            (column, FIELDS.index(field), "reference_item" if several else _ROLES[field])
            for column, field, several in checker.routes
        ]
        self._scanner = JsonColumns(route, len(FIELDS), FIELDS.index("id"), FIELDS.index("metadata"))

    def pieces(self) -> Iterator[Piece]:
        """The samples, block by block."""
        return self._pieces(self._scans())

    def pieces_of(self, blocks: Iterable[tuple[str, Block | Exception]]) -> Iterator[Piece]:
        """The samples of some (file, block)."""
        return self._pieces((name, block, partial(self._scan, block)) for name, block in blocks)

    def _pieces(self, scans: Iterable[tuple[str, Block | Exception, Scan]]) -> Iterator[Piece]:
        file, last_good = "", 0
        for name, block, scan in scans if self._left != 0 else ():
            if name != file:
                file, last_good = name, 0
            if isinstance(block, DamagedStreamError):
                message = f"{block}; the last good record is line {last_good}"
                self._problems.add(block.code, message, file=file)
                continue
            if isinstance(block, Exception):
                raise block
            self._checker.file = file
            checked = _CheckedLines(file, block, Scanned(*scan()), last_good)
            yield self._piece(checked)
            last_good = checked.last_good
            if self._left == 0:
                return

    def _scans(self) -> Iterator[tuple[str, Block | Exception, Scan]]:
        """(file, block, its scan) of all files. Large inputs are scanned ahead, in threads."""
        threads = min(cores(), _MOST_THREADS)
        if threads == 1 or sum(file.path.stat().st_size for file in self._files) <= 2 * BLOCK:
            for name, block in _blocks(self._files):
                yield name, block, partial(self._scan, block)
            return
        ahead: deque[tuple[str, Block | Exception, Scan]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for name, block in _blocks(self._files):
                ahead.append((name, block, pool.submit(self._scan, block).result))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft()
            yield from ahead

    def _scan(self, block: Block | Exception) -> tuple[Any, ...]:
        return self._scanner.scan(block.data) if isinstance(block, Block) else ()

    def _piece(self, checked: _CheckedLines) -> Piece:
        scanned, left = checked.scanned, self._left
        todo: list[_Line] = [(line, -1, begin, end) for line, begin, end in scanned.others]
        todo += [checked.line_of(row) for row, columns, kinds in scanned.shapes if (columns, kinds) not in self._shapes]
        heapify(todo)
        while todo:
            line = heappop(todo)
            if left is not None and checked.records_before(line) >= left:
                break
            self._check(checked, line, todo)
        piece = checked.piece(left)
        self._count(checked)
        if left is not None:
            self._left = left - checked.records
        return piece

    def _check(self, checked: _CheckedLines, line: _Line, todo: list[_Line]) -> None:
        """Check one line in Python. The next row of the same shape must follow if its shape is not accepted."""
        record = checked.decode(line, self._problems)
        if record is None:
            return
        fields = self._checker.fields(checked.block.first_line + line[0], record)
        if fields is not None:
            checked.samples.append(Sample(**fields))
            checked.sample_lines.append(line[0])
        row = line[1]
        if row < 0:
            return
        shape_of = checked.scanned.shape_of
        if fields is not None:
            _, columns, kinds = checked.scanned.shapes[shape_of[row]]
            self._shapes[columns, kinds] = tuple(fields)
        else:
            following = np.flatnonzero(shape_of[row + 1 :] == shape_of[row])
            if len(following):
                heappush(todo, checked.line_of(row + 1 + int(following[0])))

    def _count(self, checked: _CheckedLines) -> None:
        """Count the accepted rows."""
        scanned, rows = checked.scanned, checked.rows
        counts = np.bincount(scanned.shape_of[rows], minlength=len(scanned.shapes)).tolist()
        for (_, columns, kinds), records in zip(scanned.shapes, counts, strict=True):
            if records:
                self._checker.count(self._shapes[columns, kinds], records, records * kinds.count(_BLANK))
        self.seen.add_hashes(scanned.id_hashes[rows])
        for sample in checked.samples:
            self.seen.add(sample.id)


Scan = Callable[[], tuple[Any, ...]]
_Line = tuple[int, int, int, int]  # line in the block, accepted row or -1, begin, end


def _blocks(files: Iterable[DataFile]) -> Iterator[tuple[str, Block | Exception]]:
    """(file, block) of all files. An error takes the place of a block, so that it is raised after earlier blocks."""
    for file in files:
        name = str(file.path)
        try:
            with open_bytes(file.path) as stream:
                for block in line_blocks(stream, name):
                    yield name, block
        except Exception as error:  # noqa: BLE001 - raised by the caller
            yield name, error


class _CheckedLines:
    """The lines of a block that are checked in Python, and their places among the accepted rows."""

    def __init__(self, file: str, block: Block, scanned: Scanned, last_good: int) -> None:
        self.file, self.block, self.scanned, self.last_good = file, block, scanned, last_good
        self.samples: list[Sample] = []
        self.sample_lines: list[int] = []
        self.rows = np.empty(0, np.int64)  # the accepted rows that stay
        self.records = 0  # of other lines; in the end, of all lines
        self._replaced: list[int] = []  # accepted rows that were checked in Python

    def line_of(self, row: int) -> _Line:
        """The line of an accepted row."""
        begin = int(self.scanned.begins[row])
        end = self.block.data.find(b"\n", begin)
        return int(self.scanned.lines[row]), row, begin, len(self.block.data) if end < 0 else end

    def records_before(self, line: _Line) -> int:
        """The number of records before a line, if all other lines before it are checked."""
        return self.records + int(np.searchsorted(self.scanned.lines, line[0]))

    def decode(self, line: _Line, problems: Problems) -> Columns | None:
        """The record of a line; None if there is none."""
        place, row, begin, end = line
        block, number = self.block, self.block.first_line + place
        before = int(np.searchsorted(self.scanned.lines, place)) if len(self.scanned.lines) else 0
        if before:
            self.last_good = max(self.last_good, block.first_line + int(self.scanned.lines[before - 1]))
        record = record_of_line(
            block.data[begin:end],
            self.file,
            problems,
            line=number,
            start=block.offset + begin,
            cut_off=not block.ends_in_newline and end == len(block.data),
            last_good=self.last_good,
        )
        if record is not None:
            self.last_good = number
            if row < 0:
                self.records += 1
            else:
                self._replaced.append(row)
        return record

    def piece(self, limit: int | None) -> Piece:
        """All samples of the block, of at most `limit` records."""
        lines = self.scanned.lines
        accepted = len(lines) if limit is None else min(len(lines), limit - self.records)
        self.records += accepted
        if accepted:
            self.last_good = max(self.last_good, self.block.first_line + int(lines[accepted - 1]))
        self.rows = np.delete(np.arange(accepted), self._replaced)
        order, media = self.rows, self.scanned.media
        if self.samples:
            order = np.concatenate([self.rows, np.arange(len(self.samples)) + len(lines)])
            places = np.concatenate([lines[self.rows], np.array(self.sample_lines)])
            order = order[np.argsort(places)]
        if media is not None or self.samples:
            accepted_media = np.zeros(len(lines), np.int64) if media is None else media
            sizes = np.fromiter(map(parts.media_size, self.samples), np.int64, len(self.samples))
            media = np.concatenate([accepted_media, sizes])[order]
        return Piece(self.scanned, self.samples, order, media)
