"""Files as on Windows: no fcntl and no pread, locks of byte ranges, files in use that cannot be replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

from multimodal_eval.core import system_files
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.data.labels.append_file import AppendFile, NotSavedError
from multimodal_eval.data.runs.storage import LocalStorage, write_atomically

fcntl = pytest.importorskip("fcntl", reason="Windows itself is tried by the tests of run folders and labels")


def access(handle):
    return fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE


@pytest.fixture
def windows(monkeypatch):
    """Without what only POSIX systems have; msvcrt's function is played by a lock of the same kind."""
    from tests.portability.like_windows import byte_locks

    monkeypatch.setitem(sys.modules, "msvcrt", byte_locks.module())
    monkeypatch.setitem(sys.modules, "fcntl", None)  # its import fails
    monkeypatch.delattr(os, "pread")


# In another process: tries to lock the byte range that `system_files` locks.
OTHER = """
import fcntl, sys
with open(sys.argv[1], "rb+") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[2]))
    except BlockingIOError:
        print("locked")
    else:
        print("free")
"""


def seen_by_another_process(path):
    command = [sys.executable, "-c", OTHER, str(path), str(system_files._LOCKED_BYTE)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_lock_of_a_byte_range_keeps_others_out_until_it_is_closed(windows, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    handle = os.open(path, os.O_RDWR)
    assert system_files.try_lock(handle)
    assert seen_by_another_process(path) == "locked"
    assert os.fstat(handle).st_size == 7  # the byte behind the end is not written
    system_files.close_locked(handle)
    assert seen_by_another_process(path) == "free"


def test_a_lock_of_another_process_is_noticed(windows, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"")
    hold = "import fcntl, sys; file = open(sys.argv[1], 'rb+'); fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2]))"
    code = f"{hold}; print('ready', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(path), str(system_files._LOCKED_BYTE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "ready\n"
        handle = os.open(path, os.O_RDWR)
        assert not system_files.try_lock(handle)
        other.communicate("")
        assert system_files.try_lock(handle)
        system_files.close_locked(handle)


def test_a_run_folder_is_locked_by_a_file_outside_of_it(windows, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = LocalStorage(tmp_path / "run")
    run.make()
    with run.locked():
        assert list(run.path.iterdir()) == []
        (lock,) = (tmp_path / "mmeval-locks").iterdir()
        assert seen_by_another_process(lock) == "locked"
    assert seen_by_another_process(lock) == "free"


def test_a_run_folder_that_another_process_uses_is_refused(windows, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = LocalStorage(tmp_path / "run")
    run.make()
    refused = pytest.raises(RunFolderError, match="in use by another process")
    with run.locked(), refused, LocalStorage(run.path).locked():
        pass
    with LocalStorage(run.path).locked():
        pass


def test_a_link_is_not_followed(windows, tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_NOFOLLOW")
    path = tmp_path / "labels.jsonl"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotSavedError, match="symbolic links"):
        AppendFile(path).append(b"{}")
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_not_there_cannot_be_locked(windows, tmp_path):
    with pytest.raises(FileNotFoundError), LocalStorage(tmp_path / "none").locked():
        pass


def test_lines_are_appended_repaired_and_read(windows, tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_bytes(b'{"a": 1}\n{"cut')
    file = AppendFile(path)
    file.append(b'{"b": 2}')
    assert file.read() == ([b'{"a": 1}', b'{"b": 2}'], 18)
    assert (tmp_path / "labels.jsonl.partial").read_bytes() == b'{"cut\n'
    assert file.read(9) == ([b'{"b": 2}'], 18)


def test_reading_at_a_place_without_pread(windows, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    handle = os.open(path, os.O_RDONLY)
    assert system_files.read_at(handle, 3, 7) == b"789"
    assert system_files.read_at(handle, 2, 0) == b"01"
    assert system_files.read_at(handle, 2, 20) == b""
    os.close(handle)


class TestReplacing:
    def test_a_reader_that_closes_its_file_soon(self, tmp_path, monkeypatch):
        refusals = iter([True, True, False])
        renamed = type(tmp_path).replace

        def replace(self, target):
            if next(refusals):
                raise PermissionError(13, "it is used by another process")
            return renamed(self, target)

        monkeypatch.setattr(system_files, "_ATTEMPTS", 5)
        monkeypatch.setattr(type(tmp_path), "replace", replace)
        write_atomically(tmp_path / "file", lambda path: path.write_bytes(b"new"))
        assert (tmp_path / "file").read_bytes() == b"new"
        assert list(refusals) == []

    def test_one_that_never_does(self, tmp_path, monkeypatch):
        def replace(self, target):
            raise PermissionError(13, "it is used by another process")

        (tmp_path / "file").write_bytes(b"old")
        monkeypatch.setattr(system_files, "_ATTEMPTS", 3)
        monkeypatch.setattr(type(tmp_path), "replace", replace)
        with pytest.raises(PermissionError):
            write_atomically(tmp_path / "file", lambda path: path.write_bytes(b"new"))
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_only_files_that_are_open_for_writing_are_synced(tmp_path, monkeypatch):
    def fsync(handle):
        opened.append((os.fstat(handle).st_size, access(handle)))

    opened = []
    monkeypatch.setattr(os, "fsync", fsync)
    write_atomically(tmp_path / "file", lambda path: path.write_bytes(b"new"))
    assert opened[0] == (3, os.O_RDWR)  # Windows refuses to sync a file that was opened for reading
