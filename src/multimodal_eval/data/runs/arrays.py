"""Arrow arrays from Python and NumPy values.

`pyarrow.array` imports pandas if it is installed, which takes longer than scoring thousands of captions. These
functions build the same arrays from their buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval._native import python_string_lists as lists_of_array
from multimodal_eval._native import python_strings as strings_of_array
from multimodal_eval.core.arrow import chunks_of

Bits = NDArray[np.uint8] | None  # validity, one bit per row; None if no row is null
_LONGEST = 2**31 - 1  # bytes of text in one array


def _bitmap(is_valid: NDArray[np.bool_]) -> pa.Buffer | None:
    return None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))


def floats(values: NDArray[np.float64], is_valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """A float64 array; null where `is_valid` is false, or where the value is NaN."""
    data = np.array(values, np.float64)
    valid = ~np.isnan(data) if is_valid is None else is_valid
    data[~valid] = 0.0
    return pa.Array.from_buffers(pa.float64(), len(data), [_bitmap(valid), pa.py_buffer(data)])


def strings(values: Sequence[str | None]) -> pa.Array:
    """A string array."""
    has_nulls = None in values
    texts: Sequence[str] = [value or "" for value in values] if has_nulls else values  # type: ignore[assignment]
    joined = "".join(texts)
    if joined.isascii():
        data, sizes = joined.encode(), map(len, texts)
    else:
        encoded = [text.encode() for text in texts]
        data, sizes = b"".join(encoded), map(len, encoded)
    if len(data) > _LONGEST:
        return pa.array(values, pa.string())  # which refuses it in its own words
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(sizes, np.int64, len(texts)), out=offsets[1:])
    valid = np.ones(len(values), np.bool_)
    if has_nulls:
        valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return _strings(data, offsets, valid)


def few_strings(length: int, values: Mapping[int, str]) -> pa.Array:
    """A string array with values in a few rows, by row number."""
    valid = np.zeros(length, np.bool_)
    sizes = np.zeros(length + 1, np.int64)
    pieces = []
    for row in sorted(values):
        pieces.append(values[row].encode())
        valid[row], sizes[row + 1] = True, len(pieces[-1])
    return _strings(b"".join(pieces), np.cumsum(sizes), valid)


def _strings(data: bytes, offsets: NDArray[np.int64], valid: NDArray[np.bool_]) -> pa.Array:
    buffers = [_bitmap(valid), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(valid), buffers)


def text_array(length: int, validity: Bits, offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> pa.Array:
    """A string array from its buffers, which are not copied."""
    return pa.Array.from_buffers(pa.string(), length, [_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(data)])


def text_lists(length: int, validity: Bits, offsets: NDArray[np.int32], items: pa.Array) -> pa.Array:
    """An array of lists of the given items."""
    buffers = [_buffer(validity), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(pa.list_(pa.string()), length, buffers, children=[items])


def _buffer(validity: Bits) -> pa.Buffer | None:
    return None if validity is None else pa.py_buffer(validity)


def string_lists(values: Sequence[Sequence[str] | None]) -> pa.Array:
    """An array of lists of strings."""
    inner = strings(list(chain.from_iterable(value or () for value in values)))
    return _lists(inner, [len(value or ()) for value in values], [value is not None for value in values])


def float_rows(table: NDArray[np.float64], is_valid: NDArray[np.bool_]) -> pa.Array:
    """An array of lists of equal length: the rows of a table, null where `is_valid` is false."""
    kept = table[is_valid]
    inner = floats(kept.reshape(-1), np.ones(kept.size, np.bool_))
    return _lists(inner, np.where(is_valid, table.shape[1], 0), is_valid)


def _lists(
    inner: pa.Array, sizes: Sequence[int] | NDArray[np.int64], is_valid: Sequence[bool] | NDArray[np.bool_]
) -> pa.Array:
    valid = np.asarray(is_valid, np.bool_)
    offsets = np.zeros(len(valid) + 1, np.int32)
    np.cumsum(np.asarray(sizes, np.int32), out=offsets[1:])
    kind = pa.list_(inner.type)
    return pa.Array.from_buffers(kind, len(valid), [_bitmap(valid), pa.py_buffer(offsets)], children=[inner])


def categories(codes: NDArray[np.uint8], names: Sequence[str]) -> pa.Array:
    """A dictionary array of names by code; the dictionary has the names in use, in order of appearance."""
    used, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(used), np.int8)
    rank[order] = np.arange(len(used))
    indices = pa.Array.from_buffers(pa.int8(), len(codes), [None, pa.py_buffer(rank[inverse.reshape(-1)])])
    return pa.DictionaryArray.from_arrays(indices, strings([names[code] for code in used[order].tolist()]))


def python_strings(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """The values of a string column; several times as fast as `to_pylist`."""
    return list(chain.from_iterable(map(strings_of_array, chunks_of(column))))


def python_string_lists(column: pa.Array | pa.ChunkedArray) -> list[list[str] | None]:
    """The values of a column of lists of strings."""
    values: list[Any] = list(chain.from_iterable(map(lists_of_array, chunks_of(column))))
    return values
