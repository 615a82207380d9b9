"""Build an ONNX graph over the weights of a safetensors file.

The weights are not converted: the graph refers to the file and the offset of each tensor, and onnxruntime maps them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.runtime import onnxruntime

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ELEMENT_TYPES", "Attribute", "external_tensor", "graph", "model", "node", "tensor", "value_info"]


# Write ONNX models as bytes, in the wire format of Protocol Buffers.
#
# The numbers of the fields and types are those of onnx.proto (ONNX 1.16 and later). The result equals what the package
# `onnx` serialises, byte for byte, so that a model needs onnxruntime only.

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


OPSET, IR_VERSION = 20, 10
CONTRIB = "com.microsoft"  # the operators that onnxruntime adds
_TYPES = {"F32": "FLOAT", "F16": "FLOAT16", "BF16": "BFLOAT16"}


class Graph:
    """A graph under construction. Methods that add an operator return the name of its output."""

    def __init__(self, weights: SafetensorsFile, *, int8: bool = False) -> None:
        self.weights, self.int8 = weights, int8
        self._nodes: list[bytes] = []
        self._initializers: dict[str, bytes] = {}
        self._cast: dict[str, str] = {}
        self._names = 0

    def _name(self) -> str:
        self._names += 1
        return f"t{self._names}"

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output. An empty input name omits an optional input."""
        return self.ops(kind, 1, *inputs, domain=domain, **attributes)[0]

    def ops(self, kind: str, outputs: int, *inputs: str, domain: str = "", **attributes: Any) -> list[str]:
        """Add an operator with several outputs."""
        names = [self._name() for _ in range(outputs)]
        self._nodes.append(node(kind, inputs, names, domain, attributes))
        return names

    def constant(self, values: NDArray[Any]) -> str:
        """Add a small constant, stored in the graph itself."""
        name = self._name()
        self._initializers[name] = tensor(name, values)
        return name

    def integers(self, *values: int) -> str:
        """Add a constant vector of integers, such as a shape or axes."""
        return self.constant(np.array(values, np.int64))

    def weight(self, name: str) -> str:
        """A tensor of the file as float32."""
        if name in self._cast:
            return self._cast[name]
        tensor = self.weights[name]
        if tensor.dtype not in _TYPES:
            raise ModelError(
                f"{self.weights.path}: the tensor {name!r} must hold {' or '.join(_TYPES)}. Got {tensor.dtype} instead."
            )
        place = self.weights.path.name, tensor.offset, tensor.length
        self._initializers[name] = external_tensor(name, _TYPES[tensor.dtype], tensor.shape, *place)
        is_float = tensor.dtype == "F32"
        self._cast[name] = name if is_float else self.op("Cast", name, to=ELEMENT_TYPES["FLOAT"])
        return self._cast[name]

    def linear(self, x: str, prefix: str, *, bias: bool = True) -> str:
        """x W^T + b, for x of two dimensions and W as torch stores it, (out, in)."""
        shift = [self.weight(f"{prefix}.bias")] if bias else []
        if self.int8:
            return self._linear_int8(x, self.weights.read(f"{prefix}.weight"), shift)
        return self.op("Gemm", x, self.weight(f"{prefix}.weight"), *shift, transB=1)

    def _linear_int8(self, x: str, matrix: NDArray[np.float32], shift: list[str]) -> str:
        """`linear` with the matrix rounded to int8, with one scale per output. The input is rounded while running."""
        scales = np.maximum(np.abs(matrix).max(axis=1), np.finfo(np.float32).tiny) / np.float32(127)
        rounded = np.rint(matrix / scales[:, None]).astype(np.int8)
        terms = (self.constant(np.ascontiguousarray(rounded.T)), self.constant(scales), "")
        return self.op("DynamicQuantizeMatMul", x, *terms, *shift, domain=CONTRIB)

    def layer_norm(self, x: str, prefix: str, epsilon: float) -> str:
        """Layer normalisation over the last axis."""
        terms = (x, self.weight(f"{prefix}.weight"), self.weight(f"{prefix}.bias"))
        return self.op("LayerNormalization", *terms, axis=-1, epsilon=epsilon)

    def with_first_again(self, x: str) -> str:
        """The rows of x, and the first one once more: operators compute a single row in another order of sums."""
        first = self.op("Slice", x, self.integers(0), self.integers(1), self.integers(0))
        return self.op("Concat", x, first, axis=0)

    def for_each_group(
        self, groups: str, tokens: Sequence[str], width: int, compute: Callable[[list[str]], str]
    ) -> str:
        """Compute groups of texts of one length, one after the other, and join the rows of the results.

        `groups` has the first token, the end, the number of texts and their length of each group. `tokens` are flat,
        (tokens, width); `compute` gets them as (texts, length, width) and returns rows of the same width.
        """
        outer, self._nodes = self._nodes, []
        number, going, joined = (self._name() for _ in range(3))
        bounds = self.op("Gather", groups, number, axis=0)
        start, end, shape = self.ops("Split", 3, bounds, self.integers(1, 1, 2), axis=0)
        shape = self.op("Concat", shape, self.integers(width), axis=0)
        parts = [self.op("Reshape", self.op("Slice", each, start, end, self.integers(0)), shape) for each in tokens]
        together = self.op("Concat", joined, compute(parts), axis=0)
        still = self.op("Identity", going)
        scalars = [value_info(number, "INT64", []), value_info(going, "BOOL", [])]
        rows = [value_info(name, "FLOAT", ["rows", width]) for name in (joined, together)]
        outputs = [value_info(still, "BOOL", []), rows[1]]
        body = graph("group", self._nodes, [], [*scalars, rows[0]], outputs)
        self._nodes = outer
        count = self.op("Gather", self.op("Shape", groups), self.constant(np.array(0, np.int64)))
        return self.op("Loop", count, "", self.constant(np.empty((0, width), np.float32)), body=body)

    def attention(self, q: str, k: str, v: str, shape: str, heads: int, **attributes: Any) -> str:
        """Multi-head attention of flat (rows * length, width) inputs, reshaped by `shape` to (rows, length, width)."""
        folded = [self.op("Reshape", x, shape) for x in (q, k, v)]
        return self.op("MultiHeadAttention", *folded, domain=CONTRIB, num_heads=heads, **attributes)

    def model(self, inputs: dict[str, tuple[str, list[int | str]]], outputs: dict[str, str]) -> bytes:
        """The finished model. `inputs` maps names to (element type, shape), `outputs` maps names to inner names."""
        for name, inner in outputs.items():
            self._nodes.append(node("Identity", [inner], [name], "", {}))
        return model(
            "multimodal_eval",
            self._nodes,
            list(self._initializers.values()),
            [value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [value_info(name, "FLOAT", None) for name in outputs],
            opsets={"": OPSET, CONTRIB: 1},
            ir_version=IR_VERSION,
        )


def open_session(
    model: bytes, folder: Path, threads: int | None = None, *, prepack: bool = True, spin: bool = True
) -> Any:
    """Open an onnxruntime session for a model whose weights are in `folder`.

    `prepack` copies the weights into the order that multiplies fastest. Without it a session opens immediately, and the
    weights stay in the mapped file, which processes share. `spin` lets threads wait for work without sleeping, which
    wastes the time of other processes.
    """
    options = _options(threads)
    if not spin:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not prepack:
        options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    return _session(model, options, folder)


def open_exported(path: Path, threads: int | None = None) -> Any:
    """Open an onnxruntime session for an ONNX file."""
    return _session(str(path), _options(threads), path)


def _options(threads: int | None) -> Any:
    from multimodal_eval.core.machine import cores

    options = onnxruntime().SessionOptions()
    options.intra_op_num_threads = threads or cores()
    options.log_severity_level = 3
    return options


def _session(model: bytes | str, options: Any, path: Path) -> Any:
    runtime = onnxruntime()
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as fault:  # noqa: BLE001 - onnxruntime's exceptions share no other base class
        raise ModelError(f"onnxruntime cannot open the model in {path}: {str(fault).splitlines()[0]}") from None
