"""The run folder: parts, scratch files, addresses, and the runs in a folder."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from multimodal_eval.core.errors import MissingFileError, RunFolderError
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run_content import read_table, to_parquet
from multimodal_eval.data.runs.run_folder import RunFolder, run_folders
from multimodal_eval.data.runs.sample_table import to_table
from multimodal_eval.data.runs.storage import below, storage_at
from tests.run_info import run_info


@pytest.mark.parametrize("place", ["local", "memory"])
def test_a_part_that_was_just_written_is_read_like_the_file(place, tmp_path):
    location = tmp_path / "run" if place == "local" else f"memory://{uuid4().hex}"
    writer, reader = RunFolder.create(location, run_info()), RunFolder(location)
    tables = [pa.table({"id": [f"{part}"], "b": [part], "a": ["x"]}) for part in range(3)]

    def same(part, columns=None):
        read = writer.read_part("scores", part, columns)
        assert read.equals(reader.read_part("scores", part, columns))
        assert read.column_names == reader.read_part("scores", part, columns).column_names
        assert writer.part_schema("scores", part).equals(reader.part_schema("scores", part))
        return read

    writer.write_part("scores", 0, tables[0])
    assert same(0).equals(tables[0])
    assert same(0, ["a", "missing", "id"]).column_names == ["a", "id"]
    writer.write_part("scores", 0, tables[1])  # rewritten with other columns
    assert same(0).equals(tables[1])
    writer.write_part("scores", 1, tables[2])
    assert same(0).equals(tables[1])
    assert same(1).equals(tables[2])


def test_samples_that_were_removed_are_not_remembered(tmp_path):
    folder = RunFolder.create(tmp_path / "run", run_info())
    folder.write_part("samples", 0, pa.table({"id": ["a"]}))
    folder.clear_samples()
    with pytest.raises(MissingFileError):
        folder.read_part("samples", 0)


def test_only_the_requested_columns_are_read(monkeypatch):
    folder = RunFolder(f"memory://{uuid4().hex}")
    noise = [os.urandom(1000) for _ in range(1000)]
    folder.write_part("scores", 0, pa.table({"big": noise, "small": range(1000)}))
    folder = RunFolder(folder.location)  # which has not written the part itself
    read = []
    file_type = type(folder.storage.filesystem.open(f"{folder.storage.root}/scores/part-00000.parquet"))
    original = file_type.read
    monkeypatch.setattr(file_type, "read", lambda self, *size: read.append(original(self, *size)) or read[-1])
    assert folder.read_part("scores", 0, ["small", "none"]).to_pydict() == {"small": list(range(1000))}
    assert folder.part_schema("scores", 0).names == ["big", "small"]
    assert 0 < sum(map(len, read)) < 200_000
    assert folder.read_part("scores", 0).column("big").to_pylist() == noise


def test_a_damaged_part_is_a_run_folder_error():
    folder = RunFolder(f"memory://{uuid4().hex}")
    folder.storage.write_bytes("scores/part-00000.parquet", b"no parquet")
    with pytest.raises(RunFolderError, match=r"part-00000\.parquet cannot be read: ArrowInvalid"):
        folder.read_part("scores", 0)


def test_run_folders_are_pickled_by_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    local = RunFolder.create("run", run_info(task="local"))
    remote = RunFolder.create(f"memory://{uuid4().hex}/run", run_info(task="remote"))
    sent = pickle.dumps([local, remote])
    assert len(sent) < 1000
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert [folder.read_info().task for folder in pickle.loads(sent)] == ["local", "remote"]
    assert (local.location, local.label, local.name) == (Path("run"), "run", "run")
    assert remote.label == remote.location == remote.address
    with pytest.raises(RunFolderError, match="has no path; use `location`"):
        _ = remote.path


@pytest.mark.parametrize("place", ["local", "memory"])
def test_scratch_files_exist_until_they_are_cleared(place, tmp_path):
    folder = RunFolder.create(tmp_path / "run" if place == "local" else f"memory://{uuid4().hex}", run_info())
    for clear in (folder.clear_scratch, folder.clear_samples, folder.discard):
        folder.write_pieces("cider.part-0", [b"half", b"", b"a corpus"])
        assert [folder.read_piece("cider.part-0", number) for number in range(3)] == [b"half", b"", b"a corpus"]
        assert "scratch" in folder.storage.names()
        clear()
        assert "scratch" not in folder.storage.names()
        assert folder.read_piece("cider.part-0", 0) is None


def test_only_the_requested_piece_is_read(monkeypatch):
    folder = RunFolder(f"memory://{uuid4().hex}")
    folder.write_pieces("table", [b"x" * 1000] * 1000)
    read = []
    cat_file = MemoryFileSystem.cat_file

    def counted(self, path, start=None, end=None, **options):
        read.append(end - start)
        return cat_file(self, path, start=start, end=end, **options)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", counted)
    assert folder.read_piece("table", 700) == b"x" * 1000
    assert read == [16, 1000]


def test_temporary_files_of_interrupted_writes_are_removed(tmp_path):
    for place in (tmp_path / "run", f"memory://{uuid4().hex}"):
        folder = RunFolder.create(place, run_info())
        for name in ("run.json.partial", "scores/part-00000.parquet.89abcdef.partial"):
            folder.storage.write_bytes(name, b"half")
        folder.clear_temporary()
        assert folder.storage.files() == ["run.json"]


def test_runs_in_a_folder_are_found(tmp_path):
    for parent in (tmp_path, f"memory://{uuid4().hex}"):
        for name in ("b", "a", "tasks/vqa", "tasks/captioning", "too/deep/down"):
            RunFolder.create(below(parent, name), run_info(task=name))
        storage_at(parent).write_bytes("file", b"")
        folders = list(run_folders(parent))
        assert [name for name, _ in folders] == ["a", "b", "tasks/captioning", "tasks/vqa"]
        assert [folder.read_info().task for _, folder in folders] == [name for name, _ in folders]
    assert list(run_folders(tmp_path / "none")) == []
    assert list(run_folders("memory://none")) == []


@pytest.mark.parametrize("value", [None, "a dog", ["a dog", "a cat"]])
def test_values_of_a_part_are_known_from_its_footer(value):
    writer = RunFolder(f"memory://{uuid4().hex}")
    kind = pa.list_(pa.string()) if isinstance(value, list) else pa.string()
    table = pa.table({"id": ["a", "b"], "x": pa.array([None, value], kind)})
    writer.write_part("samples", 0, table)
    for folder in (writer, RunFolder(writer.location)):
        assert folder.has_values("samples", 0, ["x", "missing"]) is (value is not None)
        assert not folder.has_values("samples", 0, ["missing"])


def test_a_damaged_footer_is_a_run_folder_error():
    folder = RunFolder(f"memory://{uuid4().hex}")
    folder.storage.write_bytes("samples/part-00000.parquet", b"no parquet")
    with pytest.raises(RunFolderError, match=r"part-00000\.parquet cannot be read"):
        folder.has_values("samples", 0, ["x"])


def test_a_part_that_was_read_is_written_with_the_same_bytes(tmp_path):
    # Parquet calls the items of a list `element`, Arrow calls them `item`.
    table = to_table([Sample(id="1", question="?", references=["red", "blue"])], 0)
    RunFolder.create(tmp_path / "run", run_info()).write_part("samples", 0, table)
    file = tmp_path / "run/samples/part-00000.parquet"
    assert to_parquet(read_table(file, None)).to_pybytes() == file.read_bytes()
