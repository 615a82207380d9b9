"""Rows of Parquet as Python values, with the errors that a damaged file causes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import Problem, shorten
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.problems import Columns

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["parquet_errors", "python_rows"]

_TOGETHER = 64  # rows that are converted at once
_VALUE = 100  # bytes of a Python object


def parquet_errors() -> tuple[type[Exception], ...]:
    """What pyarrow raises if a file cannot be read."""
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)


def python_rows(batch: pa.RecordBatch, file: str, first_row: int, budget: limits.Budget) -> Iterator[Columns | Problem]:
    """The rows as Python values, a few at a time; a problem for each row that cannot be converted.

    A row that would take too much memory is refused.
    """
    for start in range(0, len(batch), _TOGETHER):
        together = batch.slice(start, _TOGETHER)
        budget.spend(sum(map(_leaves, together.columns)), len(together))
        if _memory(together) <= limits.current().record_bytes:
            try:
                rows = together.to_pylist()
            except parquet_errors():
                rows = None
            if rows is not None:
                yield from rows
                continue
        for place in range(len(together)):
            yield _one_row(together.slice(place, 1), file, first_row + start + place)


def _one_row(row: pa.RecordBatch, file: str, number: int) -> Columns | Problem:
    memory = _memory(row)
    if memory > limits.current().record_bytes:
        limits.refuse_record(file, number, memory)
    columns: Columns = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            columns[name] = column[0].as_py()
        except UnicodeDecodeError as fault:
            message = f"the column {shorten(name)} has text that is not valid UTF-8, at byte {fault.start} of the text"
            return Problem(code="ENCODING", message=message, file=file, line=number, field=name)
        except parquet_errors() as fault:
            message = f"the column {shorten(name)} has a value that cannot be read: {fault}"
            return Problem(code="TYPE", message=message, file=file, line=number, field=name)
    return columns


def _memory(batch: pa.RecordBatch) -> int:
    """About how many bytes the rows take as Python objects."""
    return 2 * int(batch.nbytes) + sum(_VALUE * _leaves(column) for column in batch.columns)


def _leaves(array: Any) -> int:
    """The number of values at the lowest level."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_struct(kind):
        return sum(map(_leaves, array.flatten()))
    if pa.types.is_map(kind):
        keys, items = array.keys, array.items
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        return _leaves(keys.slice(first, last - first)) + _leaves(items.slice(first, last - first))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return len(array) + _leaves(array.flatten())
    return len(array)
