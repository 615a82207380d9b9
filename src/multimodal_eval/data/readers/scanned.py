"""Blocks of records that compiled code scans at once, and the records among them that are checked in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import ArrowColumns, CsvColumns, JsonColumns
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers import parts
from multimodal_eval.data.readers.field_checks import checked_text
from multimodal_eval.data.readers.problems import Columns, Problems, Record
from multimodal_eval.data.readers.records import CHECKS, RecordChecker

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

_Bits = NDArray[np.uint8] | None
_Texts = tuple[_Bits, NDArray[np.int32], NDArray[np.uint8]]  # validity, offsets, bytes
_Lists = tuple[_Bits, NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]  # … and the offsets of the items
Line = tuple[int, int, int, int]  # line in the block, accepted row or -1, begin, end


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


_NONE = np.empty(0, np.int32)
NOTHING = Scanned(_NONE, _NONE, _NONE, np.empty(0, np.int64), None, [], [], {}, None)


class Scanners:
    """The compiled scanners, which know the field of every column."""

    def __init__(self, checker: RecordChecker) -> None:
        route = [
            (column, FIELDS.index(field), "reference_item" if several else _ROLES[field])
            for column, field, several in checker.routes
        ]
        fields = len(FIELDS), FIELDS.index("id"), FIELDS.index("metadata")
        self.json = JsonColumns(route, *fields)
        self.csv = CsvColumns(route, *fields)
        self.arrow = ArrowColumns(route, *fields)


class RecordBlock(Protocol):
    """Consecutive records of a file."""

    @property
    def first_line(self) -> int:
        """The number of the first line, or of the first row."""

    def scan(self, scanners: Scanners) -> tuple[Any, ...]:
        """The items of `Scanned`. Called in any thread."""

    def end_of(self, scanned: Scanned, row: int) -> int:
        """The end of the record of an accepted row."""

    def record(self, line: Line, problems: Problems, last_good: int) -> Columns | None:
        """The record of a line, or None; `last_good` is the number of the last line that is a record."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The end of a file that is read record by record, because something in it is unusual."""

    records: Callable[[Problems], Iterator[Record]]


class CheckedLines:
    """The lines of a block that are checked in Python, and their places among the accepted rows."""

    def __init__(self, block: RecordBlock, scanned: Scanned, last_good: int) -> None:
        self.block, self.scanned, self.last_good = block, scanned, last_good
        self.samples: list[Sample] = []
        self.sample_lines: list[int] = []
        self.rows = np.empty(0, np.int64)  # the accepted rows that stay
        self.records = 0  # of other lines; in the end, of all lines
        self._replaced: list[int] = []  # accepted rows that were checked in Python

    def line_of(self, row: int) -> Line:
        """The line of an accepted row."""
        begin, end = int(self.scanned.begins[row]), self.block.end_of(self.scanned, row)
        return int(self.scanned.lines[row]), row, begin, end

    def records_before(self, line: Line) -> int:
        """The number of records before a line, if all other lines before it are checked."""
        return self.records + int(np.searchsorted(self.scanned.lines, line[0]))

    def decode(self, line: Line, problems: Problems) -> Columns | None:
        """The record of a line; None if there is none."""
        place, row, *_ = line
        before = int(np.searchsorted(self.scanned.lines, place)) if len(self.scanned.lines) else 0
        if before:
            self.last_good = max(self.last_good, self.block.first_line + int(self.scanned.lines[before - 1]))
        record = self.block.record(line, problems, self.last_good)
        if record is not None:
            self.last_good = self.block.first_line + place
            if row < 0:
                self.records += 1
            else:
                self._replaced.append(row)
        return record

    def finish(self, limit: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """The order of all samples of the block, of at most `limit` records, and the sizes of their media."""
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
            media = np.concatenate([accepted_media, media_sizes(self.samples)])[order]
        return order, media


def media_sizes(samples: list[Sample]) -> NDArray[np.int64]:
    """The size of the media of each sample."""
    return np.fromiter(map(parts.media_size, samples), np.int64, len(samples))
