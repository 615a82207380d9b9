"""Write ONNX models as bytes, in the wire format of Protocol Buffers.

The numbers of the fields and types are those of onnx.proto (ONNX 1.16 and later). The result equals what the package
`onnx` serialises, byte for byte, so that a model needs onnxruntime only.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ELEMENT_TYPES", "Attribute", "external_tensor", "graph", "model", "node", "tensor", "value_info"]

Attribute = int | float | str | bytes | Sequence[int]  # bytes: a graph, such as the body of a loop

# TensorProto.DataType, by its name.
ELEMENT_TYPES = {
    "FLOAT": 1,
    "UINT8": 2,
    "INT8": 3,
    "INT32": 6,
    "INT64": 7,
    "BOOL": 9,
    "FLOAT16": 10,
    "DOUBLE": 11,
    "BFLOAT16": 16,
}
_OF_NUMPY = {
    "float32": "FLOAT",
    "uint8": "UINT8",
    "int8": "INT8",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "float16": "FLOAT16",
    "float64": "DOUBLE",
}
_VARINT, _BYTES, _FIXED32 = 0, 2, 5  # wire types
_FLOAT, _INT, _STRING, _GRAPH, _INTS = 1, 2, 3, 5, 7  # AttributeProto.AttributeType
_EXTERNAL = 1  # TensorProto.DataLocation


def node(
    kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str, attributes: Mapping[str, Attribute]
) -> bytes:
    """An operator (NodeProto). The domain of ONNX itself is the empty one."""
    named = (_bytes(5, _attribute(name, attributes[name])) for name in sorted(attributes))
    return b"".join(
        [*_texts(1, inputs), *_texts(2, outputs), _text(4, kind), *named, *_texts(7, [domain] if domain else [])]
    )


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _integer(3, value) + _integer(20, _INT)
    if isinstance(value, float):
        return _text(1, name) + _key(2, _FIXED32) + struct.pack("<f", value) + _integer(20, _FLOAT)
    if isinstance(value, str):
        return _text(1, name) + _text(4, value) + _integer(20, _STRING)
    if isinstance(value, bytes):
        return _text(1, name) + _bytes(6, value) + _integer(20, _GRAPH)
    return b"".join([_text(1, name), *_integers(8, value), _integer(20, _INTS)])


def tensor(name: str, values: NDArray[Any]) -> bytes:
    """A tensor with its values (TensorProto)."""
    kind = ELEMENT_TYPES[_OF_NUMPY[values.dtype.name]]
    content = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
    return b"".join([*_integers(1, values.shape), _integer(2, kind), _text(8, name), _bytes(9, content)])


def external_tensor(name: str, kind: str, shape: Sequence[int], location: str, offset: int, length: int) -> bytes:
    """A tensor whose values are in a part of another file (TensorProto)."""
    source = {"location": location, "offset": str(offset), "length": str(length)}
    entries = (_bytes(13, _text(1, key) + _text(2, value)) for key, value in source.items())
    head = [*_integers(1, shape), _integer(2, ELEMENT_TYPES[kind]), _text(8, name)]
    return b"".join([*head, *entries, _integer(14, _EXTERNAL)])


def value_info(name: str, kind: str, shape: Sequence[int | str] | None) -> bytes:
    """The type of an input or output (ValueInfoProto). A dimension is a number or a name; None: any shape."""
    array_type = _integer(1, ELEMENT_TYPES[kind])
    if shape is not None:
        sizes = (_text(2, size) if isinstance(size, str) else _integer(1, size) for size in shape)
        array_type += _bytes(2, b"".join(_bytes(1, size) for size in sizes))
    return _text(1, name) + _bytes(2, _bytes(1, array_type))


def graph(
    name: str, nodes: Sequence[bytes], initializers: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[bytes]
) -> bytes:
    """A graph (GraphProto). That of a loop's body may use every name of the graph around it."""
    parts = ((1, nodes), (2, [name.encode()]), (5, initializers), (11, inputs), (12, outputs))
    return b"".join(_bytes(field, part) for field, group in parts for part in group)


def model(
    name: str,
    nodes: Sequence[bytes],
    initializers: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    *,
    opsets: Mapping[str, int],
    ir_version: int,
) -> bytes:
    """A whole model (ModelProto) of one graph. `opsets` maps domains to versions."""
    whole = graph(name, nodes, initializers, inputs, outputs)
    imported = (_bytes(8, _text(1, domain) + _integer(2, version)) for domain, version in opsets.items())
    return b"".join([_integer(1, ir_version), _bytes(7, whole), *imported])


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # a negative number is written as its two's complement
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    content.append(value)
    return bytes(content)


def _integer(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _varint(value)


def _integers(field: int, values: Sequence[int]) -> list[bytes]:
    return [_integer(field, value) for value in values]


def _bytes(field: int, content: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _texts(field: int, texts: Sequence[str]) -> list[bytes]:
    return [_text(field, text) for text in texts]
