"""Parquet in batches of rows that are scanned at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.blocks import BLOCK
from multimodal_eval.data.readers.formats import BATCH, read_parquet
from multimodal_eval.data.readers.parquet_pages import check_nesting, check_weight, plan_reading
from multimodal_eval.data.readers.parquet_rows import parquet_errors, python_rows
from multimodal_eval.data.readers.problems import Columns, Problems
from multimodal_eval.data.readers.scanned import Line, Rest, Scanned, Scanners

if TYPE_CHECKING:
    import pyarrow as pa

_DECODED = 64  # rows that are converted to Python at once
_LARGE = 4 * BLOCK  # a batch with more bytes is cut, so that few large media are in memory at once


@dataclass(slots=True)
class ParquetBlock:
    """Some rows of a file."""

    file: str
    batch: pa.RecordBatch
    first_line: int
    budget: limits.Budget
    _first: int = 0  # the number of the first decoded row
    _records: list[Columns | Problem] = field(default_factory=list)

    def scan(self, scanners: Scanners) -> tuple[Any, ...]:
        """The items of `Scanned`."""
        return scanners.arrow.scan(self.batch.schema.names, self.batch.columns)

    def end_of(self, scanned: Scanned, row: int) -> int:
        """A row has no bytes of its own."""
        return 0

    def record(self, line: Line, problems: Problems, last_good: int) -> Columns | None:
        """The record of a row; None if it cannot be converted."""
        first = line[0] - line[0] % _DECODED
        if not self._records or first != self._first:
            decoded = self.batch.slice(first, _DECODED)
            self._first, self._records = (
                first,
                list(python_rows(decoded, self.file, self.first_line + first, self.budget)),
            )
        record = self._records[line[0] - first]
        if isinstance(record, Problem):
            problems.note(record)
            return None
        return record


def parquet_blocks(path: Path, row_groups: Sequence[int] | None = None, skip: int = 0) -> Iterator[ParquetBlock | Rest]:
    """The rows of a file, or of some row groups, after the first `skip`. Row numbers count from the first row group."""
    import pyarrow.parquet as pq

    size = path.stat().st_size
    row, weight, budget = 1, 0, limits.Budget(str(path), size)
    try:
        check_nesting(path)
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=BLOCK) as parquet:
            names = parquet.schema_arrow.names
            if names and len(set(names)) == len(names):
                plan = plan_reading(parquet, path, row_groups, BATCH)
                for batch in parquet.iter_batches(batch_size=plan.rows, row_groups=plan.groups):
                    weight += batch.nbytes
                    check_weight(path, size, weight)
                    start = min(max(0, skip + 1 - row), len(batch))
                    step = max(1, BATCH * _LARGE // max(_LARGE, batch.nbytes))
                    for place in range(start, len(batch), step):
                        yield ParquetBlock(str(path), batch.slice(place, step), row + place, budget)
                    row += len(batch)
                if plan.fault is None:
                    return
    except InputError:
        raise
    except parquet_errors():
        pass
    yield Rest(partial(read_parquet, path, row_groups=row_groups, first_row=max(row, skip + 1)))
