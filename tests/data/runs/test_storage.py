"""The storage of a run folder: a local disk and fsspec filesystems must behave the same."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ConfigError, MissingFileError, RunFolderError, UnavailableError
from multimodal_eval.data.runs.remote_storage import RemoteStorage
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import (
    LocalStorage,
    TemporaryStorage,
    copy_file,
    is_url,
    located,
    storage_at,
    take_file,
)
from tests.run_info import run_info

KINDS = ["local", "memory", "object store", "disk by fsspec", "temporary"]


def make(kind, folder):
    if kind == "local":
        return LocalStorage(folder / "run")
    if kind == "temporary":  # keeps files in memory
        return TemporaryStorage(folder / "run")
    if kind == "disk by fsspec":  # renames files; the memory filesystem copies them
        return RemoteStorage(f"file://{folder}/run")
    storage = RemoteStorage(f"memory://{uuid4().hex}/run")
    storage.is_object_store = kind == "object store"
    return storage


@pytest.fixture(params=KINDS)
def storage(request, tmp_path):
    storage = make(request.param, tmp_path)
    storage.make()
    return storage


def put(storage, name, content):
    if len(content) % 2:
        storage.write_bytes(name, content)
    else:
        storage.write_later(name, lambda path: path.write_bytes(content))


def test_written_files_are_read_back(storage):
    for name in ("run.json", "samples/part-0", "scratch/deep/down"):
        for content in (b"", b"first", b"second\x00" * 100_000):
            put(storage, name, content)
            assert storage.exists(name)
            assert storage.read_bytes(name) == content
            with storage.local_copy(name) as path:
                assert path.read_bytes() == content
            with storage.open(name) as source:
                assert (source.read_bytes() if isinstance(source, Path) else source.read()) == content
    assert storage.files() == ["run.json", "samples/part-0", "scratch/deep/down"]


@given(content=st.dictionaries(st.from_regex(r"[a-c]{1,2}(/[a-c]{1,2})?\.x", fullmatch=True), st.binary(max_size=20)))
@pytest.mark.parametrize("kind", KINDS)
def test_names_and_files_list_the_written_files(kind, content, tmp_path_factory):
    storage = make(kind, tmp_path_factory.mktemp("storage"))
    storage.make()
    for name, data in content.items():
        put(storage, name, data)
    assert {name: storage.read_bytes(name) for name in storage.files()} == content
    assert storage.names() == sorted({name.partition("/")[0] for name in content})
    for folder in {name.partition("/")[0] for name in content if "/" in name}:
        assert storage.names(folder) == sorted(n.partition("/")[2] for n in content if n.startswith(f"{folder}/"))
    assert storage.is_taken() == bool(content)


def test_readers_see_the_old_content_until_the_new_is_complete(storage):
    put(storage, "scores/a", b"old")

    def write(path):
        path.write_bytes(b"ne")
        assert storage.read_bytes("scores/a") == b"old"
        assert storage.names("scores")[0] == "a"
        path.write_bytes(b"new")

    storage.write("scores/a", write)
    assert storage.read_bytes("scores/a") == b"new"
    assert storage.names("scores") == ["a"]


def test_a_failing_writer_leaves_the_old_content_and_no_temporary_file(storage):
    put(storage, "scores/a", b"old")

    def failing(path):
        path.write_bytes(b"half")
        raise ZeroDivisionError

    for name in ("scores/a", "scores/b"):
        with pytest.raises(ZeroDivisionError):  # the writer's own error, not another one
            storage.write(name, failing)
    assert storage.files() == ["scores/a"]
    assert storage.read_bytes("scores/a") == b"old"


@pytest.mark.parametrize("step", ["put_file", "mv"])
def test_a_failing_filesystem_leaves_the_old_content_and_no_temporary_file(step, monkeypatch):
    storage = make("memory", None)
    put(storage, "a", b"old")
    original = type(storage.filesystem).put_file

    def failing(source, target, **settings):
        if step == "put_file":
            original(storage.filesystem, source, target)
        raise ConnectionResetError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(storage.filesystem, step, failing)
        with pytest.raises(RunFolderError, match=r"memory://.*/run/a cannot be written: ConnectionResetError: gone"):
            put(storage, "a", b"new")
    assert storage.files() == ["a"]
    assert storage.read_bytes("a") == b"old"


def test_a_missing_file_is_named(storage):
    for action in (storage.read_bytes, lambda name: storage.local_copy(name).__enter__()):
        with pytest.raises(MissingFileError, match=r"run/samples/none is missing"):
            action("samples/none")
    with pytest.raises(MissingFileError, match=r"run/none is missing"), storage.open("none") as source:
        pq.ParquetFile(source)
    assert not storage.exists("none")
    assert storage.names("none") == []
    put(storage, "file", b"")
    assert storage.names("file") == []
    assert not storage.exists("file/below")
    put(storage, "folder/file", b"")
    assert not storage.exists("folder")


def test_removing(storage):
    for name in ("run.json", "samples/a", "samples/b", "state/a"):
        put(storage, name, b"x")
    storage.remove("samples")
    storage.remove("run.json")
    storage.remove("none")
    storage.remove("none/at/all")
    assert storage.files() == ["state/a"]
    storage.remove_all()
    assert storage.files() == []
    if not getattr(storage, "is_object_store", False):  # has no folders, unlike this simulation
        assert not storage.is_taken()


def test_removing_a_folder_keeps_its_neighbours(tmp_path):
    for kind in KINDS:
        first = make(kind, tmp_path)
        first.make()
        second = storage_at(f"{first.location}-2") if kind != "disk by fsspec" else RemoteStorage(f"{first.location}-2")
        second.make()
        put(first, "a", b"1")
        put(second, "a", b"2")
        first.remove_all()
        assert second.read_bytes("a") == b"2"


def test_a_location_is_taken_by_a_file_but_not_by_a_temporary_file(storage, tmp_path):
    put(storage, "run.json.0123.partial", b"half")
    assert not storage.is_taken()
    put(storage, "run", b"")
    assert storage.is_taken()
    if isinstance(storage, LocalStorage):
        inner = LocalStorage(Path(storage.address) / "run")
    else:
        inner = RemoteStorage(f"{storage.location}/run")
    assert inner.is_taken()


@pytest.mark.parametrize("target", KINDS)
def test_files_can_be_copied_between_all_kinds_of_storage(storage, target, tmp_path):
    other = make(target, tmp_path / "other")
    other.make()
    put(storage, "samples/a", b"content")
    for copy in (copy_file, take_file, take_file):
        copy(storage, other, "samples/a")
        assert other.read_bytes("samples/a") == b"content"
    storage.remove_all()
    assert other.read_bytes("samples/a") == b"content"


def test_files_are_linked_between_local_folders(tmp_path):
    first, second = LocalStorage(tmp_path / "first"), LocalStorage(tmp_path / "second")
    first.make()
    put(first, "samples/a", b"content")
    take_file(first, second, "samples/a")
    assert os.path.samefile(tmp_path / "first" / "samples" / "a", tmp_path / "second" / "samples" / "a")  # noqa: PTH121


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("runs/a", Path("runs/a")),
        ("C://runs", Path("C:/runs")),
        ("a:b/c", Path("a:b/c")),
        (Path("s3://bucket"), Path("s3:/bucket")),
        ("file:///data/a%20run", Path("/data/a run")),
        ("file://localhost/data", Path("/data")),
        ("s3://bucket/run//", "s3://bucket/run"),
        ("memory://", "memory://"),
        ("simplecache::s3://bucket/run", "simplecache::s3://bucket/run"),
    ],
)
def test_paths_and_urls_are_distinguished(location, expected):
    assert located(location) == expected
    assert is_url(location) == (isinstance(expected, str) or str(location).startswith("file:"))


@pytest.mark.parametrize("url", ["file://", "file://server/share", "nosuch://x", "memory://a*", "memory://a[1]/b"])
def test_urls_that_cannot_be_used(url):
    with pytest.raises(ConfigError, match=r"Got|not known"):
        RunFolder(url)


def test_passwords_are_refused_and_not_repeated():
    with pytest.raises(ConfigError, match="password in the URL") as refused:
        RunFolder("ftp://me:secret@host/run")
    assert "secret" not in str(refused.value)


def test_without_fsspec_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UnavailableError, match=r"pip install 'multimodal-eval\[remote\]'"):
        RunFolder("s3://bucket/run")


def test_a_missing_package_of_a_filesystem_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(UnavailableError, match="gcsfs"):
        RunFolder("gs://bucket/run")


def test_a_failing_listing_is_not_an_empty_folder(monkeypatch):
    storage = make("memory", None)

    def failing(*arguments, **settings):
        raise ConnectionResetError("gone")

    for name in ("ls", "info", "find"):
        monkeypatch.setattr(storage.filesystem, name, failing)
    for action in (storage.names, storage.files, storage.is_taken, lambda: storage.exists("run.json")):
        with pytest.raises(RunFolderError, match="ConnectionResetError: gone"):
            action()


class Caching(MemoryFileSystem):  # type: ignore[misc]
    """Caches listings until they are invalidated, as s3fs and gcsfs do."""

    def __init__(self):
        super().__init__()
        self.listings = {}

    def ls(self, path, detail=True, **settings):
        if path not in self.listings:
            self.listings[path] = super().ls(path, detail=True)
        return self.listings[path] if detail else [entry["name"] for entry in self.listings[path]]

    def info(self, path, **settings):
        entries = self.ls(path.rpartition("/")[0])
        return next((entry for entry in entries if entry["name"] == path), None) or super().info("/none")

    def invalidate_cache(self, path=None):
        while path:
            self.listings.pop(path, None)
            path = path.rpartition("/")[0]


def test_files_of_another_process_are_seen_immediately():
    storage = make("memory", None)
    other = RemoteStorage(storage.location)
    storage.filesystem = Caching()
    put(storage, "scores/a", b"")
    assert (storage.names("scores"), storage.exists("scores/b")) == (["a"], False)
    put(other, "scores/b", b"")
    assert (storage.names("scores"), storage.exists("scores/b")) == (["a", "b"], True)
    other.remove("scores/a")
    assert (storage.names("scores"), storage.exists("scores/a")) == (["b"], False)


def test_only_a_local_folder_is_locked_against_a_second_process(tmp_path):
    local = LocalStorage(tmp_path)
    with local.locked(), pytest.raises(RunFolderError, match="another process"), local.locked():
        pass
    remote = make("memory", None)
    with remote.locked(), remote.locked():
        pass


def test_the_local_copy_of_a_remote_file_is_removed():
    storage = make("memory", None)
    put(storage, "state/cider.bin", b"x")
    with storage.local_copy("state/cider.bin") as path:
        assert path.name == "cider.bin"
        shutil.copy(path, path.with_suffix(".copy"))
    assert not path.parent.exists()


def test_only_files_of_a_durable_folder_are_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    for is_durable in (False, True):
        storage = LocalStorage(tmp_path / str(is_durable), is_durable=is_durable)
        storage.make()
        put(storage, "run.json", b"content")
        assert storage.read_bytes("run.json") == b"content"
        assert bool(synced) == is_durable


def test_temporary_pieces_are_not_synced(tmp_path, monkeypatch):
    synced = []
    folder = RunFolder.create(tmp_path / "run", run_info())
    monkeypatch.setattr(os, "fsync", synced.append)
    folder.write_pieces("cider.part-0", [b"a", b"table"], is_temporary=True)
    assert not synced
    assert folder.read_piece("cider.part-0", 1) == b"table"
    folder.write_pieces("lint.part-0", [b"facts"])
    assert synced
