"""Read files as columns. Compiled code accepts the plain records; the others are checked one by one, in their order.

A record has a *shape*: its columns and the kinds of their values. The first record of every shape is always checked in
Python, which notes its columns. All that the checker would note about further records of that shape is their number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import text_hash
from multimodal_eval.core.machine import cores
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers import parts
from multimodal_eval.data.readers.blocks import BLOCK, DamagedStreamError, bare_suffix
from multimodal_eval.data.readers.files import DataFile
from multimodal_eval.data.readers.formats import DELIMITERS
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import RecordChecker
from multimodal_eval.data.readers.scanned_blocks import (
    NOTHING,
    CheckedLines,
    Line,
    RecordBlock,
    Rest,
    Scanned,
    Scanners,
    csv_blocks,
    json_blocks,
    media_sizes,
    parquet_blocks,
)

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_THREADS = 8
_TOGETHER = 256  # samples of the rest of a file in one piece
_BLANK = "b"  # the kind of a blank answer


class Piece(msgspec.Struct, dict=True):
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
        from multimodal_eval.data.runs.sample_table import array_of, columns_of, columns_of_samples

        rows, text = len(self.scanned.lines), pa.string()
        accepted = {FIELDS[field]: array_of(text, rows, *buffers) for field, buffers in self.scanned.texts.items()}
        if self.scanned.lists is not None:
            validity, ends, offsets, data = self.scanned.lists
            items = array_of(text, len(offsets) - 1, None, offsets, data)
            accepted["references"] = array_of(pa.list_(text), rows, validity, ends, items=items)
        if not self.samples and len(self.order) == rows:
            return accepted
        both = [pa.table(accepted), pa.table(columns_of_samples(self.samples))]
        columns = columns_of(pa.concat_tables(both, promote_options="default"))
        return {name: taken(column, self.order) for name, column in columns.items()}


class ColumnPart(msgspec.Struct, frozen=True):
    """A part that consists of ranges of pieces."""

    ranges: Sequence[tuple[Piece, int, int]]  # piece, start, stop

    def __len__(self) -> int:
        return sum(stop - start for _, start, stop in self.ranges)

    @property
    def id_hashes(self) -> NDArray[np.int64]:
        """The hashes of the ids."""
        return np.concatenate([piece.id_hashes[start:stop] for piece, start, stop in self.ranges])

    def samples(self, fields: Collection[str]) -> list[Sample]:
        """The samples with their ids and the given fields."""
        from multimodal_eval.data.runs.sample_table import columns_of_fields, to_samples

        return to_samples(self.table(0).select(columns_of_fields({"id", *fields})))

    def table(self, first_row: int) -> pa.Table:
        """The table to store; `first_row` is the number of the first sample in the input."""
        import pyarrow as pa

        from multimodal_eval.data.runs.sample_table import table_of_columns

        tables = [pa.table(piece.columns).slice(start, stop - start) for piece, start, stop in self.ranges]
        whole = pa.concat_tables(tables, promote_options="default")
        return table_of_columns(dict(zip(whole.column_names, whole.columns, strict=True)), len(self), first_row)


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
    """Reads files into pieces. The checker's notes are the same as if it had checked every record."""

    def __init__(
        self, files: Sequence[DataFile], checker: RecordChecker, problems: Problems, limit: int | None = None
    ) -> None:
        self._files, self._checker, self._problems = files, checker, problems
        self._left = limit  # records that may still be read
        self._shapes: dict[tuple[tuple[str, ...], str], tuple[str, ...]] = {}  # their fields
        self._scanners = Scanners(checker)

    def pieces(self, blocks: Iterable[tuple[str, _Item]] | None = None) -> Iterator[Piece]:
        """The samples, block by block: of all files, or of some (file, block)."""
        file, last_good = "", 0
        for name, block, scan in self._scans(blocks) if self._left != 0 else ():
            if name != file:
                file, last_good = name, 0
            if isinstance(block, DamagedStreamError):
                message = f"{block}; the last good record is line {last_good}"
                self._problems.add(block.code, message, file=file)
                continue
            if isinstance(block, Exception):
                raise block
            self._checker.file = file
            if isinstance(block, Rest):
                yield from self._rest(block)
            else:
                checked = CheckedLines(block, Scanned(*scan()), last_good)
                yield self._piece(checked)
                last_good = checked.last_good
            if self._left == 0:
                return

    def _scans(self, blocks: Iterable[tuple[str, _Item]] | None) -> Iterator[tuple[str, _Item, Scan]]:
        """(file, block, its scan) of all files, or of these blocks. Large files are scanned ahead, in threads."""
        threads = 1 if blocks is not None else min(cores(), _MOST_THREADS)
        if threads == 1 or sum(file.path.stat().st_size for file in self._files) <= 2 * BLOCK:
            for name, block in _blocks(self._files) if blocks is None else blocks:
                yield name, block, partial(self._scan, block)
            return
        ahead: deque[tuple[str, _Item, Scan]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for name, block in _blocks(self._files):
                ahead.append((name, block, pool.submit(self._scan, block).result))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft()
            yield from ahead

    def _scan(self, block: _Item) -> tuple[Any, ...]:
        return () if isinstance(block, Exception | Rest) else block.scan(self._scanners)

    def _rest(self, rest: Rest) -> Iterator[Piece]:
        """Check the rest of a file, record by record."""
        samples: list[Sample] = []
        for line, record in islice(rest.records(self._problems), self._left):
            if self._left is not None:
                self._left -= 1
            fields = self._checker.fields(line, record)
            if fields is not None:
                samples.append(Sample(**fields))
            if len(samples) == _TOGETHER:
                yield _piece_of(samples)
                samples = []
        yield _piece_of(samples)

    def _piece(self, checked: CheckedLines) -> Piece:
        scanned, left = checked.scanned, self._left
        todo: list[Line] = [(line, -1, begin, end) for line, begin, end in scanned.others]
        todo += [checked.line_of(row) for row, columns, kinds in scanned.shapes if (columns, kinds) not in self._shapes]
        heapify(todo)
        while todo:
            line = heappop(todo)
            if left is not None and checked.records_before(line) >= left:
                break
            self._check(checked, line, todo)
        order, media = checked.finish(left)
        counts = np.bincount(scanned.shape_of[checked.rows], minlength=len(scanned.shapes)).tolist()
        for (_, columns, kinds), records in zip(scanned.shapes, counts, strict=True):
            if records:
                self._checker.count(self._shapes[columns, kinds], records, records * kinds.count(_BLANK))
        if left is not None:
            self._left = left - checked.records
        return Piece(checked.scanned, checked.samples, order, media)

    def _check(self, checked: CheckedLines, line: Line, todo: list[Line]) -> None:
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


Scan = Callable[[], tuple[Any, ...]]
_Item = RecordBlock | Rest | Exception


def _piece_of(samples: list[Sample]) -> Piece:
    return Piece(NOTHING, samples, np.arange(len(samples)), media_sizes(samples))


def _blocks(files: Iterable[DataFile]) -> Iterator[tuple[str, _Item]]:
    """(file, block) of all files. An error takes the place of a block, so that it is raised after earlier blocks."""
    for file in files:
        name, suffix = str(file.path), bare_suffix(file.path)
        try:
            if suffix == ".parquet":
                blocks: Iterator[RecordBlock | Rest] = parquet_blocks(file.path)
            elif suffix in DELIMITERS:
                blocks = csv_blocks(file.path, DELIMITERS[suffix])
            else:
                blocks = json_blocks(file.path)
            for block in blocks:
                yield name, block
        except Exception as error:  # noqa: BLE001 - raised by the caller
            yield name, error
