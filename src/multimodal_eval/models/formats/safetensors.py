"""Read and write safetensors files. The format is a JSON header and raw little-endian values, and contains no code."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval.core.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_HEADER = 100_000_000  # bytes; the limit of the format
WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Type, shape and offset of one tensor."""

    dtype: str
    shape: tuple[int, ...]
    offset: int  # from the start of the file
    length: int


class _Entry(msgspec.Struct, frozen=True):
    """A tensor's entry in the header. Offsets count from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]

    def tensor(self, start: int) -> Tensor:
        """The tensor with its offset in the file."""
        first, last = self.data_offsets
        if min(self.shape, default=0) < 0 or first < 0 or last - first != prod(self.shape) * WIDTHS[self.dtype]:
            raise ValueError("the length of a tensor does not match its shape")
        return Tensor(self.dtype, self.shape, start + first, last - first)


class SafetensorsFile:
    """A safetensors file. Values are read on request."""

    def __init__(self, path: Path) -> None:
        path = path.resolve()  # onnxruntime follows no link out of its folder, and model caches use such links
        self.path = path
        try:
            with path.open("rb") as stream:
                (size,) = struct.unpack("<Q", stream.read(8))
                if size > _MAX_HEADER:
                    raise ValueError(f"its header of {size} bytes exceeds the limit of {_MAX_HEADER}")
                packed = stream.read(size)
            if len(packed) < size:
                raise ValueError("the header is cut off")
            header = json.loads(packed)
            header.pop("__metadata__", None)
            entries = msgspec.convert(header, dict[str, _Entry])
            self.tensors = {name: entry.tensor(8 + size) for name, entry in entries.items()}
        except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
            raise ModelError(f"{path} is not a safetensors file: {fault}") from None
        end = max((tensor.offset + tensor.length for tensor in self.tensors.values()), default=0)
        if end > path.stat().st_size:
            raise ModelError(f"{path} is cut off: according to its header it has {end:,} bytes")

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self.tensors[name]
        except KeyError:
            raise ModelError(f"{self.path} has no tensor {name!r}") from None

    def read(self, name: str) -> NDArray[np.float32]:
        """The values of a tensor as float32."""
        import numpy as np

        tensor = self[name]
        # Copy on write: torch warns about memory that cannot be written.
        raw = np.memmap(self.path, np.uint8, "c", tensor.offset, (tensor.length,))
        if tensor.dtype == "BF16":  # the upper half of a float32
            return (raw.view("<u2").astype("<u4") << 16).view("<f4").reshape(tensor.shape)
        kind = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}.get(tensor.dtype)
        if kind is None:
            raise ModelError(
                f"{self.path}: the tensor {name!r} must hold floating-point values. Got {tensor.dtype} instead."
            )
        return np.asarray(raw.view(kind), np.float32).reshape(tensor.shape)


def write_float32(path: Path, shapes: Mapping[str, tuple[int, ...]], tensors: Iterable[NDArray[np.float32]]) -> None:
    """Write a safetensors file of float32 values. `tensors` come in the order of `shapes`.

    The same content gives the same bytes.
    """
    import numpy as np

    header, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * prod(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 64)  # values can be mapped if they start at a multiple of their width
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(encoded)) + encoded)
        for shape, tensor in zip(shapes.values(), tensors, strict=True):
            if tensor.shape != shape:
                raise ValueError(f"a tensor must have the shape {shape}. Got {tensor.shape} instead.")
            out.write(np.ascontiguousarray(tensor, "<f4").tobytes())
