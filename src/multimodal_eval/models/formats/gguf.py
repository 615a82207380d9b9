"""Read GGUF files: the settings, the offset of each tensor, and its values as float32.

The format is a header of typed values and raw blocks of quantised values. It contains no code. Every read is first
checked against the size of the file, so that a broken or hostile file raises a `ModelError`. Layout: the GGUF
specification of ggml, versions 2 and 3, little-endian.

| type  | values in block | block                                    | value                                      |
|-------|-----------------|------------------------------------------|--------------------------------------------|
| Q4_0  | 32              | d (f16), 16 bytes                        | d (q - 8), q of 4 bits                     |
| Q4_1  | 32              | d, m (f16), 16 bytes                     | d q + m                                    |
| Q5_0  | 32              | d (f16), 4 bytes of fifth bits, 16 bytes | d (q - 16), q of 5 bits                    |
| Q5_1  | 32              | d, m (f16), 4 bytes, 16 bytes            | d q + m                                    |
| Q8_0  | 32              | d (f16), 32 signed bytes                 | d q                                        |
| Q6_K  | 256             | 128 + 64 bytes, 16 signed scales, d (f16)| d s (q - 32), q of 6 bits, s per 16 values |

F32, F16 and BF16 are stored unchanged. Other types are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from multimodal_eval.core.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Floats = NDArray[np.float32]

T = TypeVar("T")
Setting: TypeAlias = "bool | int | float | str | list[Setting]"

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = 32  # of the tensors, unless the file says otherwise
_MAX_DEPTH = 4  # of nested arrays
_MAX_DIMENSIONS = 4
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class Kind:
    """A number format: the values and bytes per block, and how a block is decoded."""

    name: str
    values: int
    bytes: int
    decode: Callable[[Bytes], Floats]  # from blocks (n, bytes) to values (n, values)


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Type, shape (rows before columns) and offset of one tensor."""

    kind: Kind
    shape: tuple[int, ...]
    offset: int  # from the start of the file
    length: int


class GgufFile:
    """A GGUF file: `settings` by key, `tensors` by name. Values are read on request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            content = path.read_bytes() if path.stat().st_size < _SMALL else _mapped(path)
            reader = _Reader(content)
            tensor_count, setting_count = reader.start()
            self.settings: dict[str, Setting] = {}
            for _ in range(setting_count):
                key = reader.text()
                self.settings[key] = reader.value(reader.number("I"))
            infos = [reader.tensor_info() for _ in range(tensor_count)]
        except (OSError, ValueError, OverflowError) as fault:
            raise ModelError(f"{path} is not a readable GGUF file: {fault}") from None
        self._content = content
        self.tensors = self._placed(infos, reader.position)

    def _placed(self, infos: list[_Info], end_of_header: int) -> dict[str, GgufTensor]:
        alignment = self.settings.get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise ModelError(f"{self.path}: the alignment must be a positive integer. Got {alignment!r} instead.")
        start = -(-end_of_header // alignment) * alignment
        placed = {}
        for name, shape, number, offset in infos:
            kind = KINDS.get(number)
            if kind is None:
                known = ", ".join(known_kind.name for known_kind in KINDS.values())
                raise ModelError(f"{self.path}: the tensor {name!r} has the unknown type {number}. Known: {known}")
            if not shape or shape[-1] % kind.values:
                raise ModelError(f"{self.path}: the tensor {name!r} of shape {shape} does not fit {kind.name}")
            length = prod(shape) // kind.values * kind.bytes
            if start + offset + length > len(self._content):
                raise ModelError(f"{self.path} is cut off: the tensor {name!r} extends beyond the end of the file")
            placed[name] = GgufTensor(kind, shape, start + offset, length)
        return placed

    def __getitem__(self, name: str) -> GgufTensor:
        try:
            return self.tensors[name]
        except KeyError:
            raise ModelError(f"{self.path} has no tensor {name!r}") from None

    def setting(self, key: str, kind: type[T]) -> T:
        """The value of a setting, which must exist and have the given type."""
        value = self.settings.get(key)
        if not isinstance(value, kind):
            raise ModelError(f"{self.path}: the setting {key!r} must be {kind.__name__}. Got {value!r} instead.")
        return value

    def read(self, name: str) -> Floats:
        """The values of a tensor as float32."""
        import numpy as np

        tensor = self[name]
        raw = np.frombuffer(self._content, np.uint8, tensor.length, tensor.offset)
        return tensor.kind.decode(raw.reshape(-1, tensor.kind.bytes)).reshape(tensor.shape)


_SMALL = 1 << 20
_Info = tuple[str, tuple[int, ...], int, int]


def _mapped(path: Path) -> Any:
    from mmap import ACCESS_READ, mmap

    with path.open("rb") as stream:
        return mmap(stream.fileno(), 0, access=ACCESS_READ)


class _Reader:
    """Reads the header step by step. A read beyond the end of the file raises a ValueError."""

    def __init__(self, content: Any) -> None:
        self.content, self.position = content, 0

    def take(self, length: int) -> bytes:
        if length > len(self.content) - self.position:
            raise ValueError("the header is cut off")
        self.position += length
        return bytes(self.content[self.position - length : self.position])

    def number(self, code: str) -> Any:
        size = struct.calcsize("<" + code)
        return struct.unpack("<" + code, self.take(size))[0]

    def text(self) -> str:
        return self.take(self.number("Q")).decode("utf-8")

    def start(self) -> tuple[int, int]:
        if self.take(4) != _MAGIC:
            raise ValueError("it does not start with GGUF")
        version = self.number("I")
        if version not in _VERSIONS:
            raise ValueError(f"unknown format version {version}. Known: {', '.join(map(str, _VERSIONS))}")
        return self.number("Q"), self.number("Q")

    def value(self, kind: int, depth: int = 0) -> Setting:
        if kind in _SCALARS:
            scalar: Setting = self.number(_SCALARS[kind])
            return scalar
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY or depth == _MAX_DEPTH:
            raise ValueError(f"a setting has the unknown type {kind}")
        inner, count = self.number("I"), self.number("Q")
        if inner in _SCALARS:
            code = f"{count}{_SCALARS[inner]}"
            return list(struct.unpack("<" + code, self.take(count * struct.calcsize("<" + _SCALARS[inner]))))
        if count > len(self.content) - self.position:  # each element takes at least one byte
            raise ValueError("the header is cut off")
        return [self.value(inner, depth + 1) for _ in range(count)]

    def tensor_info(self) -> _Info:
        name, dimensions = self.text(), self.number("I")
        if dimensions > _MAX_DIMENSIONS:
            raise ValueError(f"the tensor {name!r} has {dimensions} dimensions, more than {_MAX_DIMENSIONS}")
        sizes = [self.number("Q") for _ in range(dimensions)]
        return name, tuple(reversed(sizes)), self.number("I"), self.number("Q")


def _halves(blocks: Bytes, column: int) -> Floats:
    """The f16 values at one byte offset of each block, as a column."""
    import numpy as np

    return np.ascontiguousarray(blocks[:, column : column + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Bytes) -> Bytes:
    """The low halves of all bytes, then the high halves."""
    import numpy as np

    return np.concatenate([packed & 15, packed >> 4], axis=1)


def _fifth_bits(packed: Bytes) -> Bytes:
    """32 bits, lowest first, each as 0 or 16."""
    import numpy as np

    return np.unpackbits(packed, axis=1, bitorder="little") * np.uint8(16)


def _f32(blocks: Bytes) -> Floats:
    import numpy as np

    return blocks.view("<f4").astype(np.float32)


def _f16(blocks: Bytes) -> Floats:
    import numpy as np

    return blocks.view("<f2").astype(np.float32)


def _bf16(blocks: Bytes) -> Floats:
    import numpy as np

    return (blocks.view("<u2").astype("<u4") << 16).view("<f4").astype(np.float32)


def _q4_0(blocks: Bytes) -> Floats:
    import numpy as np

    return _halves(blocks, 0) * (_nibbles(blocks[:, 2:]).astype(np.float32) - 8)


def _q4_1(blocks: Bytes) -> Floats:
    return _halves(blocks, 0) * _nibbles(blocks[:, 4:]) + _halves(blocks, 2)


def _q5_0(blocks: Bytes) -> Floats:
    import numpy as np

    quants = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks[:, 2:6])
    return _halves(blocks, 0) * (quants.astype(np.float32) - 16)


def _q5_1(blocks: Bytes) -> Floats:
    quants = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks[:, 4:8])
    return _halves(blocks, 0) * quants + _halves(blocks, 2)


def _q8_0(blocks: Bytes) -> Floats:
    import numpy as np

    return _halves(blocks, 0) * blocks[:, 2:].view(np.int8)


def _q6_k(blocks: Bytes) -> Floats:
    """Two halves of 128 values. In each, 64 bytes hold 4 low bits twice, and 32 bytes hold 2 high bits four times."""
    import numpy as np

    low = blocks[:, :128].reshape(-1, 2, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    quants = (low | (high.reshape(-1, 2, 128) & 3) << 4).reshape(-1, 16, 16).astype(np.float32) - 32
    scales = _halves(blocks, 208) * blocks[:, 192:208].view(np.int8)
    return (scales[:, :, None] * quants).reshape(-1, 256)


KINDS = {
    0: Kind("F32", 1, 4, _f32),
    1: Kind("F16", 1, 2, _f16),
    2: Kind("Q4_0", 32, 18, _q4_0),
    3: Kind("Q4_1", 32, 20, _q4_1),
    6: Kind("Q5_0", 32, 22, _q5_0),
    7: Kind("Q5_1", 32, 24, _q5_1),
    8: Kind("Q8_0", 32, 34, _q8_0),
    14: Kind("Q6_K", 256, 210, _q6_k),
    30: Kind("BF16", 1, 2, _bf16),
}
