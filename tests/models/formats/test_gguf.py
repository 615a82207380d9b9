"""Reading and refusing GGUF files."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.formats.gguf import KINDS, GgufFile
from tests.golden.load import golden
from tests.models.formats import tiny_gguf
from tests.models.formats.tiny_gguf import F32, Q4_1, Q8_0

SETTINGS = {"name": "tiny", "width": 3, "base": 0.5, "tied": True, "words": ["a", "ж"], "kinds": [1, 3], "none": []}


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def test_settings_and_values(tmp_path):
    tensors = {"a": ((2, 3), F32, floats(1, 2, 3, 4, 5, 6)), "b": ((1,), F32, floats(-0.5))}
    file = GgufFile(tiny_gguf.write(tmp_path / "x.gguf", SETTINGS, tensors))
    assert file.settings == SETTINGS
    assert file.read("a").tolist() == [[1, 2, 3], [4, 5, 6]]
    assert file.read("b").tolist() == [-0.5]
    with pytest.raises(ModelError, match="no tensor 'c'"):
        file.read("c")
    with pytest.raises(ModelError, match=r"'width' must be str\. Got 3 instead"):
        file.setting("width", str)


def test_a_block_worked_out_by_hand(tmp_path):
    # Q4_1: d = .5, m = -1. Byte j holds q_j in its low half and q_(j + 16) in its high half. A value is d q + m.
    block = np.array([0.5, -1], "<f2").tobytes() + bytes([0x30, 0x21]) + b"\xff" * 14
    file = GgufFile(tiny_gguf.write(tmp_path / "x.gguf", {}, {"a": ((1, 32), Q4_1, block)}))
    row = file.read("a")[0]
    assert row[:3].tolist() == [-1, -0.5, 6.5]  # 0, 1, 15
    assert row[16:19].tolist() == [0.5, 0, 6.5]  # 3, 2, 15
    # Q8_0: d = .25 and signed bytes.
    block = np.array([0.25], "<f2").tobytes() + bytes([4, 252]) + b"\0" * 30
    file = GgufFile(tiny_gguf.write(tmp_path / "y.gguf", {}, {"a": ((32,), Q8_0, block)}))
    assert file.read("a")[:3].tolist() == [1, -1, 0]


@pytest.mark.parametrize("name", golden("gguf.json.gz")["types"])
def test_every_type_is_read_as_in_the_gguf_package(tmp_path, name):
    recorded = golden("gguf.json.gz")["types"][name]
    blocks = bytes.fromhex(recorded["blocks"])
    tensor = ((len(recorded["numbers"]),), recorded["type"], blocks)
    assert KINDS[recorded["type"]].name == name
    file = GgufFile(tiny_gguf.write(tmp_path / "x.gguf", {}, {"a": tensor}))
    assert file.read("a").tolist() == recorded["numbers"]


WHOLE = tiny_gguf.content(SETTINGS, {"a": ((2, 32), Q8_0, b"\1" * 68)})


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "x.gguf"
    for end in range(len(WHOLE) - 28):  # the last 28 bytes are padding
        path.write_bytes(WHOLE[:end])
        with pytest.raises(ModelError, match=r"not a readable GGUF file|cut off"):
            GgufFile(path)


@given(offset=st.integers(0, len(WHOLE) - 97), value=st.integers(0, 255))
def test_a_damaged_header_is_read_or_refused(tmp_path_factory, offset, value):
    path = tmp_path_factory.mktemp("damaged") / "x.gguf"
    path.write_bytes(WHOLE[:offset] + bytes([value]) + WHOLE[offset + 1 :])
    try:
        file = GgufFile(path)
        for name in file.tensors:
            file.read(name)
    except ModelError:
        pass


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (((2, 3), 99, b""), "unknown type 99. Known: F32"),
        (((2, 31), Q8_0, b"\0" * 68), r"of shape \(2, 31\) does not fit Q8_0"),
        (((1 << 40, 32), Q8_0, b"\0" * 68), "extends beyond the end"),
        (((1, 1, 1, 1, 1), F32, floats(1)), "5 dimensions"),
    ],
)
def test_invalid_tensors_are_refused(tmp_path, tensor, message):
    with pytest.raises(ModelError, match=message):
        GgufFile(tiny_gguf.write(tmp_path / "x.gguf", {}, {"a": tensor}))


def test_other_versions_and_other_files_are_refused(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 1, 0, 0))
    with pytest.raises(ModelError, match="unknown format version 1"):
        GgufFile(path)
    path.write_bytes(b"PK\3\4" + bytes(100))
    with pytest.raises(ModelError, match="does not start with GGUF"):
        GgufFile(path)
    with pytest.raises(ModelError, match="No such file"):
        GgufFile(tmp_path / "nothing.gguf")
