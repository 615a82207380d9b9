"""Build an ONNX graph over the weights of a safetensors file.

The weights are not converted: the graph refers to the file and the offset of each tensor, and onnxruntime maps them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.formats.safetensors import SafetensorsFile

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import NodeProto, TensorProto

OPSET = 20
CONTRIB = "com.microsoft"  # the operators that onnxruntime adds
_TYPES = {"F32": "FLOAT", "F16": "FLOAT16", "BF16": "BFLOAT16"}


class Graph:
    """A graph under construction. Methods that add an operator return the name of its output."""

    def __init__(self, weights: SafetensorsFile, *, int8: bool = False) -> None:
        self.weights, self.int8 = weights, int8
        self._nodes: list[NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}
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
        from onnx import helper

        names = [self._name() for _ in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names

    def constant(self, values: NDArray[Any]) -> str:
        """Add a small constant, stored in the graph itself."""
        from onnx import numpy_helper

        name = self._name()
        self._initializers[name] = numpy_helper.from_array(values, name)
        return name

    def integers(self, *values: int) -> str:
        """Add a constant vector of integers, such as a shape or axes."""
        return self.constant(np.array(values, np.int64))

    def weight(self, name: str) -> str:
        """A tensor of the file as float32."""
        from onnx import TensorProto

        if name in self._cast:
            return self._cast[name]
        tensor = self.weights[name]
        if tensor.dtype not in _TYPES:
            raise ModelError(
                f"{self.weights.path}: the tensor {name!r} must hold {' or '.join(_TYPES)}. Got {tensor.dtype} instead."
            )
        kind = getattr(TensorProto, _TYPES[tensor.dtype])
        proto = TensorProto(name=name, data_type=kind, dims=tensor.shape, data_location=TensorProto.EXTERNAL)
        source = {"location": self.weights.path.name, "offset": tensor.offset, "length": tensor.length}
        for key, value in source.items():
            proto.external_data.add(key=key, value=str(value))
        self._initializers[name] = proto
        self._cast[name] = name if tensor.dtype == "F32" else self.op("Cast", name, to=TensorProto.FLOAT)
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

    def attention(self, q: str, k: str, v: str, shape: str, heads: int, **attributes: Any) -> str:
        """Multi-head attention of flat (rows * length, width) inputs, reshaped by `shape` to (rows, length, width)."""
        folded = [self.op("Reshape", x, shape) for x in (q, k, v)]
        mixed = self.op("MultiHeadAttention", *folded, domain=CONTRIB, num_heads=heads, **attributes)
        return mixed

    def model(self, inputs: dict[str, tuple[str, list[int | str]]], outputs: dict[str, str]) -> bytes:
        """The finished model. `inputs` maps names to (element type, shape), `outputs` maps names to inner names."""
        from onnx import TensorProto, helper

        for name, inner in outputs.items():
            self._nodes.append(helper.make_node("Identity", [inner], [name]))
        graph = helper.make_graph(
            self._nodes,
            "multimodal_eval",
            [helper.make_tensor_value_info(n, getattr(TensorProto, kind), dims) for n, (kind, dims) in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
            list(self._initializers.values()),
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


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
    import onnxruntime as ort

    from multimodal_eval.core.machine import cores

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads or cores()
    options.log_severity_level = 3
    return options


def _session(model: bytes | str, options: Any, path: Path) -> Any:
    import onnxruntime as ort

    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as fault:  # noqa: BLE001 - onnxruntime's exceptions share no other base class
        raise ModelError(f"onnxruntime cannot open the model in {path}: {str(fault).splitlines()[0]}") from None
