"""Build an ONNX graph over the weights of a safetensors file.

The weights are not converted: the graph refers to the file and the offset of each tensor, and onnxruntime maps them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.formats import onnx_bytes
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.runtime import onnxruntime

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        self._nodes.append(onnx_bytes.node(kind, inputs, names, domain, attributes))
        return names

    def constant(self, values: NDArray[Any]) -> str:
        """Add a small constant, stored in the graph itself."""
        name = self._name()
        self._initializers[name] = onnx_bytes.tensor(name, values)
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
        self._initializers[name] = onnx_bytes.external_tensor(name, _TYPES[tensor.dtype], tensor.shape, *place)
        is_float = tensor.dtype == "F32"
        self._cast[name] = name if is_float else self.op("Cast", name, to=onnx_bytes.ELEMENT_TYPES["FLOAT"])
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
        scalars = [onnx_bytes.value_info(number, "INT64", []), onnx_bytes.value_info(going, "BOOL", [])]
        rows = [onnx_bytes.value_info(name, "FLOAT", ["rows", width]) for name in (joined, together)]
        outputs = [onnx_bytes.value_info(still, "BOOL", []), rows[1]]
        body = onnx_bytes.graph("group", self._nodes, [], [*scalars, rows[0]], outputs)
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
            self._nodes.append(onnx_bytes.node("Identity", [inner], [name], "", {}))
        return onnx_bytes.model(
            "multimodal_eval",
            self._nodes,
            list(self._initializers.values()),
            [onnx_bytes.value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [onnx_bytes.value_info(name, "FLOAT", None) for name in outputs],
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
