"""Where each tensor lies in a safetensors file. The format is a JSON header and raw little-endian numbers: no code."""

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

_LONGEST_HEADER = 100_000_000  # bytes; the format's own limit
WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Type, shape and place of one tensor."""

    dtype: str
    shape: tuple[int, ...]
    offset: int  # from the start of the file
    length: int


class _Entry(msgspec.Struct, frozen=True):
    """A tensor as the header describes it; offsets count from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]

    def tensor(self, start: int) -> Tensor:
        """Its place in the file."""
        first, last = self.data_offsets
        if last - first != prod(self.shape) * WIDTHS[self.dtype] or first < 0:
            raise ValueError("a tensor whose length does not fit its shape")
        return Tensor(self.dtype, self.shape, start + first, last - first)


class SafetensorsFile:
    """A safetensors file; nothing of its numbers is read until they are asked for."""

    def __init__(self, path: Path) -> None:
        path = path.resolve()  # caches are full of links, and onnxruntime follows none that leave their folder
        self.path = path
        try:
            with path.open("rb") as stream:
                (size,) = struct.unpack("<Q", stream.read(8))
                if size > _LONGEST_HEADER:
                    raise ValueError(f"a header of {size} bytes")
                packed = stream.read(size)
            if len(packed) < size:
                raise ValueError("its header is cut off")
            header = json.loads(packed)
            header.pop("__metadata__", None)
            entries = msgspec.convert(header, dict[str, _Entry])
            self.tensors = {name: entry.tensor(8 + size) for name, entry in entries.items()}
        except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError) as fault:
            raise ModelError(f"{path} is no safetensors file: {fault}") from None
        end = max((tensor.offset + tensor.length for tensor in self.tensors.values()), default=0)
        if end > path.stat().st_size:
            raise ModelError(f"{path} is cut off: its header promises {end:,} bytes")

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self.tensors[name]
        except KeyError:
            raise ModelError(f"{self.path} has no tensor {name!r}") from None

    def read(self, name: str) -> NDArray[np.float32]:
        """The numbers of a tensor as float32."""
        import numpy as np

        tensor = self[name]
        raw = np.memmap(self.path, np.uint8, "r", tensor.offset, (tensor.length,))
        if tensor.dtype == "BF16":  # the upper half of a float32
            return (raw.view("<u2").astype("<u4") << 16).view("<f4").reshape(tensor.shape)
        kind = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}.get(tensor.dtype)
        if kind is None:
            raise ModelError(f"{self.path}: the tensor {name!r} holds {tensor.dtype}, no floating-point numbers")
        return np.asarray(raw.view(kind), np.float32).reshape(tensor.shape)


def write_float32(path: Path, shapes: Mapping[str, tuple[int, ...]], tensors: Iterable[NDArray[np.float32]]) -> None:
    """Write a safetensors file of float32 numbers, one tensor after the other: `tensors` come in the order of `shapes`.

    The same content gives the same bytes.
    """
    import numpy as np

    header, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * prod(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 64)  # numbers that begin at a multiple of their width can be mapped
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(encoded)) + encoded)
        for shape, tensor in zip(shapes.values(), tensors, strict=True):
            if tensor.shape != shape:
                raise ValueError(f"a tensor of shape {tensor.shape} in the place of {shape}")
            out.write(np.ascontiguousarray(tensor, "<f4").tobytes())
