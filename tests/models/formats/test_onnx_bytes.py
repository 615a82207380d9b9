"""The bytes of ONNX models equal those that the package `onnx` writes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from multimodal_eval.models.formats import onnx_graph
from multimodal_eval.models.formats.onnx_graph import CONTRIB, IR_VERSION, OPSET, Graph, open_session
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.source import find_model


@pytest.mark.parametrize(
    ("kind", "inputs", "domain", "attributes"),
    [
        ("Shape", ["ids"], "", {}),
        ("Gemm", ["x", "w", ""], "", {"transB": 1}),
        ("Concat", ["a", "b"], "", {"axis": -1}),
        ("LayerNormalization", ["x"], "", {"epsilon": 1e-5, "axis": -(2**63)}),
        ("Conv", ["x", "w"], "", {"strides": [32, 32], "kernel_shape": [300, 2**40]}),
        ("Gelu", ["größe"], "", {"approximate": "tanh"}),
        ("QuickGelu", ["x"], CONTRIB, {"alpha": 1.702, "beta": 0.0, "names": "", "flag": True}),
        ("Transpose", [f"t{i}" for i in range(200)], "", {"perm": [0, 2, 1]}),
    ],
)
def test_nodes(kind, inputs, domain, attributes):
    expected = helper.make_node(kind, inputs, ["out", "second"], domain=domain or None, **attributes)
    assert onnx_graph.node(kind, inputs, ["out", "second"], domain, attributes) == expected.SerializeToString()


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int8", "int32", "int64", "bool", "float16", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 1, 4)])
def test_tensors(dtype, shape):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    assert onnx_graph.tensor("weight", values) == numpy_helper.from_array(values, "weight").SerializeToString()


def test_a_tensor_of_big_endian_numbers_is_written_as_little_endian():
    values = np.array([1, -2], dtype=">i8")
    assert numpy_helper.to_array(onnx.TensorProto.FromString(onnx_graph.tensor("x", values))).tolist() == [1, -2]


@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16", "BFLOAT16"])
def test_tensors_in_other_files(kind):
    expected = TensorProto(
        name="w", data_type=getattr(TensorProto, kind), dims=(3, 5), data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": "model.safetensors", "offset": "4096", "length": "60"}.items():
        expected.external_data.add(key=key, value=value)
    ours = onnx_graph.external_tensor("w", kind, (3, 5), "model.safetensors", 4096, 60)
    assert ours == expected.SerializeToString()


@pytest.mark.parametrize("shape", [None, [], ["texts", "length"], [2, "n", 0]])
def test_inputs_and_outputs(shape):
    expected = helper.make_tensor_value_info("ids", TensorProto.INT64, shape)
    assert onnx_graph.value_info("ids", "INT64", shape) == expected.SerializeToString()


def test_a_whole_model():
    arguments = (
        [helper.make_node("Add", ["x", "one"], ["y"])],
        "multimodal_eval",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones(3, np.float32), "one")],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    expected = helper.make_model(helper.make_graph(*arguments), opset_imports=opsets, ir_version=IR_VERSION)
    ours = onnx_graph.model(
        "multimodal_eval",
        [onnx_graph.node("Add", ["x", "one"], ["y"], "", {})],
        [onnx_graph.tensor("one", np.ones(3, np.float32))],
        [onnx_graph.value_info("x", "FLOAT", ["n", 3])],
        [onnx_graph.value_info("y", "FLOAT", None)],
        opsets={"": OPSET, CONTRIB: 1},
        ir_version=IR_VERSION,
    )
    assert ours == expected.SerializeToString()


def test_a_loop_with_its_body():
    scalar = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    inner = helper.make_graph([helper.make_node("Add", ["x", "i"], ["y"])], "group", [scalar], [])
    expected = helper.make_node("Loop", ["n", "", "x"], ["out"], body=inner)
    nodes = [onnx_graph.node("Add", ["x", "i"], ["y"], "", {})]
    body = onnx_graph.graph("group", nodes, [], [onnx_graph.value_info("i", "INT64", [])], [])
    assert onnx_graph.node("Loop", ["n", "", "x"], ["out"], "", {"body": body}) == expected.SerializeToString()


def test_groups_of_texts_are_computed_one_after_the_other():
    """Two texts of one token and one of three: each token gets the sum of the first text of its group."""
    model = find_model("shapes-clip")
    graph = Graph(SafetensorsFile(model.folder / "model.safetensors"))

    def plus_sum_of_first(parts):
        first = graph.op("Slice", parts[0], graph.integers(0), graph.integers(1), graph.integers(0))
        total = graph.op("ReduceSum", first, graph.integers(0, 1), keepdims=1)
        return graph.op("Reshape", graph.op("Add", parts[0], total), graph.integers(-1, 1))

    out = graph.for_each_group("groups", ["x"], 1, plus_sum_of_first)
    inputs = {"x": ("FLOAT", ["tokens", 1]), "groups": ("INT64", ["groups", 4])}
    session = open_session(graph.model(inputs, {"y": out}), model.folder, 1)
    x, groups = np.float32([[1], [2], [3], [4], [5]]), np.array([[0, 2, 2, 1], [2, 5, 1, 3]])
    (y,) = session.run(None, {"x": x, "groups": groups})
    assert y.ravel().tolist() == [1 + 1, 2 + 1, 3 + 12, 4 + 12, 5 + 12]


def test_a_graph_over_the_weights_of_a_file_is_parsed_and_runs():
    model = find_model("shapes-clip")
    name = "text_model.final_layer_norm"
    graph = Graph(SafetensorsFile(model.folder / "model.safetensors"))
    width = graph.weights[f"{name}.weight"].shape[0]
    scaled = graph.op("Mul", "x", graph.constant(np.float32([2.0])))
    content = graph.model({"x": ("FLOAT", ["rows", width])}, {"y": graph.layer_norm(scaled, name, 1e-5)})
    parsed = onnx.load_model_from_string(content)
    assert [node.op_type for node in parsed.graph.node] == ["Mul", "Cast", "Cast", "LayerNormalization", "Identity"]
    assert parsed.SerializeToString() == content
    x = np.random.default_rng(0).normal(size=(4, width)).astype(np.float32)
    (y,) = open_session(content, model.folder, 1).run(None, {"x": x})
    gain, shift = (graph.weights.read(f"{name}.{part}") for part in ("weight", "bias"))
    centred = 2 * x - (2 * x).mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * gain + shift
    assert y == pytest.approx(expected, abs=1e-5)
