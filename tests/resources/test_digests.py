"""Digests are computed once per file, and again after any change of it."""

from __future__ import annotations

import os
import time
from hashlib import sha256

import pytest

from multimodal_eval.resources import store
from multimodal_eval.resources.store import sha256_of


@pytest.fixture
def read(tmp_path, monkeypatch):
    """The number of files read so far; all files count as old."""
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(store, "_RECENT", -(10**12))
    files = []
    compute = store.file_digest
    monkeypatch.setattr(store, "file_digest", lambda stream, kind: files.append(stream.name) or compute(stream, kind))
    return files


def digest(content):
    return sha256(content).hexdigest()


def test_an_unchanged_file_is_read_once(tmp_path, read):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"1")
    second.write_bytes(b"2")
    assert sha256_of(first, second, first) == [digest(b"1"), digest(b"2"), digest(b"1")]
    assert sha256_of(second, first) == [digest(b"2"), digest(b"1")]
    assert len(read) == 2
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["digests.json"]


def same_size(path):
    path.write_bytes(b"other")


def same_time(path):
    before = path.stat()
    time.sleep(0.02)  # more than a tick of the clock, so that the time of the last change differs
    path.write_bytes(b"other")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_file(path):
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(b"other")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("change", [same_size, same_time, another_file])
def test_a_changed_file_is_read_again(tmp_path, read, change):
    path = tmp_path / "a"
    path.write_bytes(b"first")
    assert sha256_of(path) == [digest(b"first")]
    time.sleep(0.02)
    change(path)
    assert sha256_of(path) == [digest(b"other")]
    assert len(read) == 2


def test_a_file_that_has_just_changed_is_not_kept(tmp_path, read, monkeypatch):
    monkeypatch.setattr(store, "_RECENT", 10**12)
    path = tmp_path / "a"
    path.write_bytes(b"first")
    assert sha256_of(path) == sha256_of(path) == [digest(b"first")]
    assert len(read) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a 1 2": "00"}'])
def test_an_unreadable_store_is_replaced(tmp_path, read, content):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "digests.json").write_bytes(content)
    path = tmp_path / "a"
    path.write_bytes(b"first")
    assert sha256_of(path) == sha256_of(path) == [digest(b"first")]
    assert len(read) == 1


def test_a_home_that_cannot_be_written_costs_only_time(tmp_path, read, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "file" / "home"))
    path = tmp_path / "a"
    path.write_bytes(b"first")
    assert sha256_of(path) == sha256_of(path) == [digest(b"first")]
    assert len(read) == 2
