"""Reading, writing and refusing safetensors files."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.formats.safetensors import SafetensorsFile


def write_safetensors(path, tensors, cut=0):
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        raw = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    content = struct.pack("<Q", len(text)) + text + data
    path.write_bytes(content[: len(content) - cut])
    return path


def test_every_floating_point_format_is_read(tmp_path):
    values = np.array([[1.5, -2.0], [0.25, 3.0]], np.float32)
    bfloats = (values.view(np.uint32) >> 16).astype(np.uint16)  # exact, because these values need few bits
    file = SafetensorsFile(
        write_safetensors(
            tmp_path / "m.safetensors",
            {
                "f32": ("F32", values),
                "f16": ("F16", values.astype(np.float16)),
                "bf16": ("BF16", bfloats),
                "i64": ("I64", np.arange(4)),
            },
        )
    )
    assert all(np.array_equal(file.read(name), values) for name in ("f32", "f16", "bf16"))
    assert "f32" in file
    with pytest.raises(ModelError, match=r"must hold floating-point values\. Got I64"):
        file.read("i64")
    with pytest.raises(ModelError, match="has no tensor 'other'"):
        file.read("other")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x01",
        struct.pack("<Q", 5) + b"{}",
        struct.pack("<Q", 1 << 60),
        struct.pack("<Q", 2) + b"[]",
        b"\x80\x04N.",
    ],
)
def test_another_kind_of_file_is_refused(tmp_path, content):
    (tmp_path / "m.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match="not a safetensors file"):
        SafetensorsFile(tmp_path / "m.safetensors")


def test_a_header_that_does_not_match_the_file_is_refused(tmp_path):
    path = write_safetensors(tmp_path / "m.safetensors", {"x": ("F32", np.zeros(3, np.float32))}, cut=4)
    with pytest.raises(ModelError, match="cut off"):
        SafetensorsFile(path)
    with pytest.raises(ModelError, match="does not match its shape"):
        SafetensorsFile(write_safetensors(path, {"x": ("F64", np.zeros(3, np.float32))}))


def test_written_values_can_be_read_again(tmp_path):
    from multimodal_eval.models.formats.safetensors import SafetensorsFile, write_float32

    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_float32(tmp_path / "x.safetensors", {"a": (2, 3), "b": (1,)}, [table, np.ones(1, np.float32)])
    file = SafetensorsFile(tmp_path / "x.safetensors")
    assert file.read("a").tolist() == table.tolist()
    assert file.read("b").tolist() == [1]
    with pytest.raises(ValueError, match=r"must have the shape \(3, 2\)"):
        write_float32(tmp_path / "y.safetensors", {"a": (3, 2)}, [table])
