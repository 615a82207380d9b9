"""Weights on disk, and the cache."""

from __future__ import annotations

import json
import sqlite3
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.batching import equal_lengths
from multimodal_eval.models.cache import VectorCache
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


def test_numbers_of_every_floating_kind_are_read(tmp_path):
    values = np.array([[1.5, -2.0], [0.25, 3.0]], np.float32)
    brain = (values.view(np.uint32) >> 16).astype(np.uint16)  # exact: these values need few bits
    file = SafetensorsFile(
        write_safetensors(
            tmp_path / "m.safetensors",
            {
                "f32": ("F32", values),
                "f16": ("F16", values.astype(np.float16)),
                "bf16": ("BF16", brain),
                "i64": ("I64", np.arange(4)),
            },
        )
    )
    assert all(np.array_equal(file.read(name), values) for name in ("f32", "f16", "bf16"))
    assert "f32" in file
    with pytest.raises(ModelError, match="no floating-point numbers"):
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
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "m.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match="no safetensors file"):
        SafetensorsFile(tmp_path / "m.safetensors")


def test_a_header_that_lies_is_refused(tmp_path):
    path = write_safetensors(tmp_path / "m.safetensors", {"x": ("F32", np.zeros(3, np.float32))}, cut=4)
    with pytest.raises(ModelError, match="cut off"):
        SafetensorsFile(path)
    with pytest.raises(ModelError, match="does not fit its shape"):
        SafetensorsFile(write_safetensors(path, {"x": ("F64", np.zeros(3, np.float32))}))


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 30))
def test_batches_hold_every_sequence_once_and_one_length_each(lengths, tokens):
    sequences = [[0] * length for length in lengths]
    seen = []
    for positions, rows in equal_lengths(sequences, tokens=tokens):
        assert len({len(row) for row in rows}) == 1
        assert len(rows) == max(2, len(positions))
        assert all(rows[i] is sequences[position] for i, position in enumerate(positions))
        seen += positions
    assert sorted(seen) == list(range(len(lengths)))


def counted(asked):
    def compute(missing):
        asked.append(list(missing))
        return np.array([[float(position), 1.0] for position in missing], np.float32)

    return compute


def test_repeated_and_known_contents_are_not_computed():
    asked = []
    cache = VectorCache("toy@1")
    rows = cache.vectors([b"a", b"b", b"a"], counted(asked))
    assert rows.tolist() == [[0, 1], [1, 1], [0, 1]]
    again = VectorCache("toy@1").vectors([b"b", b"c"], counted(asked))
    assert again.tolist() == [[1, 1], [1, 1]]
    VectorCache("toy@2").vectors([b"a"], counted(asked))  # another revision knows nothing of it
    assert asked == [[0, 1], [1], [0]]


def test_a_damaged_entry_is_computed_again():
    cache = VectorCache("toy@1")
    cache.vectors([b"a"], counted([]))
    with sqlite3.connect(cache.path) as connection:
        (value,) = connection.execute("SELECT value FROM vectors").fetchone()
        connection.execute("UPDATE vectors SET value = ?", (bytes([value[0] ^ 1]) + value[1:],))
    asked = []
    assert VectorCache("toy@1").vectors([b"a"], counted(asked)).tolist() == [[0, 1]]
    assert asked == [[0]]


def test_a_broken_cache_is_said_and_done_without():
    cache = VectorCache("toy@1")
    cache.path.parent.mkdir(parents=True)
    cache.path.write_bytes(b"this is no database, but long enough to be taken for one" * 100)
    with pytest.warns(UserWarning, match=r"cannot be used: .*moved to toy@1\.v1\.broken"):
        assert cache.vectors([b"a"], counted([])).tolist() == [[0, 1]]
    assert cache.path.with_suffix(".broken").read_bytes().startswith(b"this is no database")
    VectorCache("toy@1").vectors([b"a"], counted([]))
    asked = []
    VectorCache("toy@1").vectors([b"a"], counted(asked))
    assert asked == []


def test_threads_may_share_it():
    from concurrent.futures import ThreadPoolExecutor

    cache = VectorCache("toy@1")

    def work(number):
        return cache.vectors([b"%d" % (number % 7), b"%d" % number], lambda missing: np.ones((len(missing), 2)))

    with ThreadPoolExecutor(8) as pool:
        assert all(rows.shape == (2, 2) for rows in pool.map(work, range(200)))  # a warning would be an error


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    cache, asked = VectorCache("toy@1"), []
    for _ in range(2):
        cache.vectors([b"a"], counted(asked))
    assert asked == [[0], [0]]
    assert not cache.path.exists()
