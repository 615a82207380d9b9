"""The cache of what models computed."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from multimodal_eval.models.cache import VectorCache


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
