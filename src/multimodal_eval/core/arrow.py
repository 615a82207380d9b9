"""Arrow arrays and NumPy arrays, through their buffers.

`pyarrow.array` and `to_numpy` import pandas if it is installed, which takes longer than scoring thousands of captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def chunks_of(column: pa.Array | pa.ChunkedArray) -> Sequence[pa.Array]:
    """The arrays of a column."""
    chunks: Sequence[Any] = column.chunks if hasattr(column, "chunks") else [column]
    return chunks


def offsets_of(array: pa.Array) -> NDArray[np.int32]:
    """The offsets of a string or list array into its data."""
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)


def bytes_of(array: pa.Array) -> NDArray[np.uint8]:
    """The data of a string array."""
    data = array.buffers()[2]
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def null_rows(column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """True in rows that are null."""
    pieces = [np.empty(0, np.bool_)]
    for array in chunks_of(column):
        bits = array.buffers()[0]
        if array.null_count and bits is not None:
            pieces.append(~_bits(bits, array))
        else:  # all rows or none: a column of type null has no bits
            pieces.append(np.full(len(array), bool(array.null_count)))
    return np.concatenate(pieces)


def _bits(buffer: pa.Buffer, array: pa.Array) -> NDArray[np.bool_]:
    stop = array.offset + len(array)
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8, -(-stop // 8)), bitorder="little")
    return bits[array.offset : stop].view(np.bool_)


def float_values(column: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    """The values of a column of numbers, NaN if null."""
    if str(column.type) != "double":  # written by another program
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    pieces = [np.empty(0, np.float64)]
    for array in chunks_of(column):
        values = np.array(np.frombuffer(array.buffers()[1], np.float64, len(array), array.offset * 8))
        values[null_rows(array)] = np.nan
        pieces.append(values)
    return np.concatenate(pieces)


def integer_values(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """The values of an int32 or int64 column without nulls."""
    pieces = [np.empty(0, np.int64)]
    for array in chunks_of(column):
        kind = np.dtype(str(array.type))
        pieces.append(np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize))
    return np.concatenate(pieces).astype(np.int64, copy=False)


def booleans(values: NDArray[np.bool_]) -> pa.Array:
    """A boolean array without nulls."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


_FEW_RUNS = 64


def taken(array: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """The rows of an array. Few runs of consecutive rows are copied without `take`, which loads pyarrow.compute."""
    import pyarrow as pa

    starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    if len(starts) > _FEW_RUNS or not len(rows):
        return array.take(integers(rows))
    ends = [*starts[1:].tolist(), len(rows)]
    pieces = [array.slice(rows[start], end - start) for start, end in zip(starts.tolist(), ends, strict=True)]
    return pa.concat_arrays(pieces)


def integers(values: NDArray[np.int64]) -> pa.Array:
    """An int64 array without nulls."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values, np.int64))])
