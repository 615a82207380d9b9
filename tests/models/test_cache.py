"""The disk cache of model results."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from multimodal_eval.models.cache import VectorCache


def recording(requests):
    def compute(missing):
        requests.append(list(missing))
        return np.array([[float(position), 1.0] for position in missing], np.float32)

    return compute


def test_repeated_and_cached_contents_are_not_computed():
    requests = []
    cache = VectorCache("toy@1")
    rows = cache.vectors([b"a", b"b", b"a"], recording(requests))
    assert rows.tolist() == [[0, 1], [1, 1], [0, 1]]
    again = VectorCache("toy@1").vectors([b"b", b"c"], recording(requests))
    assert again.tolist() == [[1, 1], [1, 1]]
    VectorCache("toy@2").vectors([b"a"], recording(requests))  # another revision has a separate cache
    assert requests == [[0, 1], [1], [0]]


def test_a_damaged_entry_is_computed_again():
    cache = VectorCache("toy@1")
    cache.vectors([b"a"], recording([]))
    with sqlite3.connect(cache.path) as connection:
        (value,) = connection.execute("SELECT value FROM vectors").fetchone()
        connection.execute("UPDATE vectors SET value = ?", (bytes([value[0] ^ 1]) + value[1:],))
    requests = []
    assert VectorCache("toy@1").vectors([b"a"], recording(requests)).tolist() == [[0, 1]]
    assert requests == [[0]]


def test_a_broken_cache_gives_a_warning_and_is_not_used():
    cache = VectorCache("toy@1")
    cache.path.parent.mkdir(parents=True)
    cache.path.write_bytes(b"this is not a database, but as long as one" * 100)
    with pytest.warns(UserWarning, match=r"cannot be used: .*moved to toy@1\.v1\.broken"):
        assert cache.vectors([b"a"], recording([])).tolist() == [[0, 1]]
    assert cache.path.with_suffix(".broken").read_bytes().startswith(b"this is not a database")
    VectorCache("toy@1").vectors([b"a"], recording([]))
    requests = []
    VectorCache("toy@1").vectors([b"a"], recording(requests))
    assert requests == []


def test_threads_can_share_a_cache():
    from concurrent.futures import ThreadPoolExecutor

    cache = VectorCache("toy@1")

    def work(number):
        return cache.vectors([b"%d" % (number % 7), b"%d" % number], lambda missing: np.ones((len(missing), 2)))

    with ThreadPoolExecutor(8) as pool:
        assert all(rows.shape == (2, 2) for rows in pool.map(work, range(200)))  # a warning would be an error


def test_the_cache_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    cache, requests = VectorCache("toy@1"), []
    for _ in range(2):
        cache.vectors([b"a"], recording(requests))
    assert requests == [[0], [0]]
    assert not cache.path.exists()


@pytest.mark.parametrize("cache", ["on", "off"])
def test_known_new_and_repeated_contents_keep_their_order(monkeypatch, cache):
    monkeypatch.setenv("MMEVAL_CACHE", cache)

    def compute_for(contents):
        return lambda missing: np.array([[float(contents[position])] * 3 for position in missing], np.float32)

    store = VectorCache("toy@1")
    for contents in ([b"5", b"2"], [b"7", b"2", b"9", b"7", b"5"], [b"9", b"2"]):
        expected = [[float(content)] * 3 for content in contents]
        assert store.vectors(contents, compute_for(contents)).tolist() == expected
        rows = store.rows([b"row" + content for content in contents], compute_for(contents))
        assert [row.tolist() for row in rows] == expected


def test_a_failed_row_is_nan_and_computed_again():
    store, requests = VectorCache("toy@1"), []

    def failing(missing):
        requests.append(list(missing))
        return np.full((len(missing), 1), np.nan, np.float32)  # nothing was computed, so the width is not known

    store.vectors([b"a"], recording([]))
    mixed = store.vectors([b"b", b"a", b"b"], failing)
    assert mixed[1].tolist() == [0, 1]
    assert np.isnan(mixed[[0, 2]]).all()
    store.vectors([b"b"], failing)
    assert requests == [[0], [0]]


def test_a_wrong_number_of_rows_is_not_matched_to_contents():
    with pytest.raises(ValueError, match="shorter"):
        VectorCache("toy@1").vectors([b"a", b"b"], lambda missing: np.ones((1, 2), np.float32))
