"""Lines that are appended: whole, durable, by several processes, after crashes and on full disks."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.labels.append_file import AppendFile, NotSavedError, refuse_unsuitable

WRITER = """
import sys
from pathlib import Path
from multimodal_eval.data.labels.append_file import AppendFile

file = AppendFile(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    file.append(b'{"id": "%s %d", "label": 1, "comment": "%s"}' % (sys.argv[2].encode(), number, b"x" * 3000))
    print(number, flush=True)
"""


def writer(path: Path, name: str, count: int, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_bytes().splitlines()]


def test_lines_are_appended_and_read(tmp_path: Path):
    file = AppendFile(tmp_path / "labels.jsonl")
    assert file.read() == ([], 0)
    file.append(b'{"a": 1}')
    lines, place = file.read()
    assert lines == [b'{"a": 1}']
    file.append(b'{"b": 2}')
    assert file.read(place) == ([b'{"b": 2}'], 18)
    assert stat.S_IMODE(file.path.stat().st_mode) & 0o022 == 0


def test_two_processes_append_whole_lines(tmp_path: Path):
    path = tmp_path / "labels.jsonl"
    processes = [writer(path, name, 60) for name in ("ann", "bob")]
    for process in processes:
        process.communicate(timeout=600)
        assert process.returncode == 0
    written = ids(path)
    assert sorted(written) == sorted(f"{name} {number}" for name in ("ann", "bob") for number in range(60))
    for name in ("ann", "bob"):
        assert [each for each in written if each.startswith(name)] == [f"{name} {number}" for number in range(60)]


@pytest.mark.slow
def test_killed_processes_lose_nothing_that_they_reported(tmp_path: Path):
    """Twenty processes are killed while they append. What one has reported is in the file, and every line is whole."""
    path = tmp_path / "labels.jsonl"
    reported: list[str] = []
    for attempt in range(20):
        process = writer(path, f"p{attempt}", 10_000)
        assert process.stdout is not None
        reported.append(f"p{attempt} {process.stdout.readline().strip()}")
        time.sleep(0.003 * attempt)
        process.send_signal(signal.SIGKILL)
        reported += [f"p{attempt} {line.strip()}" for line in process.stdout if line.endswith("\n")]
        process.wait()
        process.stdout.close()
        file = AppendFile(path)
        file.append(b'{"id": "after", "label": 1}')
    written = ids(path)  # raises if a line is not whole
    assert set(reported) <= set(written)
    assert written.count("after") == 20
    assert len(set(written) - {"after"}) == len(written) - 20


@pytest.mark.parametrize("cut", [1, 7, 20])
def test_a_line_that_was_cut_off_is_kept_elsewhere(tmp_path: Path, cut: int):
    path = tmp_path / "labels.jsonl"
    whole, part = b'{"id": "a", "label": 1}\n', b'{"id": "b", "label": 2}'[:cut]
    path.write_bytes(whole + part)
    file = AppendFile(path)
    assert file.read()[0] == [whole.strip()]
    file.append(b'{"id": "c", "label": 3}')
    assert path.read_bytes() == whole + b'{"id": "c", "label": 3}\n'
    assert (tmp_path / "labels.jsonl.partial").read_bytes() == part + b"\n"
    (repair,) = file.repairs
    assert (repair.bytes, repair.moved_to.name) == (cut, "labels.jsonl.partial")
    assert f"incomplete ({cut} bytes)" in str(repair)


def test_a_record_without_its_line_end_is_kept_in_place(tmp_path: Path):
    path = tmp_path / "labels.jsonl"
    path.write_bytes(b'{"id": "a", "label": 1}')
    file = AppendFile(path)
    file.repair()
    file.append(b'{"id": "b", "label": 2}')
    assert ids(path) == ["a", "b"]
    assert file.repairs == []
    assert [each.name for each in tmp_path.iterdir()] == ["labels.jsonl"]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path):
    """The limit on the size of files cuts the third line, which must not be in the file."""
    import resource

    path = tmp_path / "labels.jsonl"
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))  # noqa: E731
    process = writer(path, "ann", 5, preexec_fn=limit, stderr=subprocess.PIPE)
    output, errors = process.communicate(timeout=600)
    assert output.split() == ["0", "1"]
    assert "NotSavedError: nothing was saved: labels.jsonl: File too large" in errors
    assert ids(path) == ["ann 0", "ann 1"]
    assert path.read_bytes().endswith(b"\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written(tmp_path: Path):
    path = tmp_path / "labels.jsonl"
    path.touch(0o444)
    with pytest.raises(NotSavedError, match="Permission denied"):
        AppendFile(path).append(b"{}")


def test_a_folder_that_is_gone(tmp_path: Path):
    path = tmp_path / "place" / "labels.jsonl"
    path.parent.mkdir()
    file = AppendFile(path)
    path.parent.rmdir()
    with pytest.raises(NotSavedError, match="No such file"):
        file.append(b"{}")
    path.parent.symlink_to(tmp_path)
    with pytest.raises(NotSavedError, match="replaced by a link"):
        file.append(b"{}")
    assert not (tmp_path / "labels.jsonl").exists()


def test_links_and_special_files_are_not_written(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("x\n")
    path = tmp_path / "labels.jsonl"
    path.symlink_to(secret)
    with pytest.raises(NotSavedError):
        AppendFile(path).append(b"{}")
    with pytest.raises(ConfigError, match="is a link"):
        refuse_unsuitable(path)
    dangling = tmp_path / "dangling.jsonl"
    dangling.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotSavedError, match="symbolic links"):
        AppendFile(dangling).append(b"{}")
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(NotSavedError, match="not a plain file"):
        AppendFile(Path("/dev/null")).append(b"{}")
    assert secret.read_text() == "x\n"


def test_lines_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = AppendFile(tmp_path / "labels.jsonl")
    with pytest.raises(NotSavedError, match=r"a line may have 1,048,576 bytes"):
        file.append(b"x" * 2**20)
    monkeypatch.setattr("multimodal_eval.data.labels.append_file.MOST_BYTES", 100)
    file.append(b"x" * 50)
    with pytest.raises(NotSavedError, match="has reached 100 bytes"):
        file.append(b"y" * 50)
    assert file.path.read_bytes() == b"x" * 50 + b"\n"


def test_a_file_that_an_editor_replaced_is_opened_again(tmp_path: Path):
    path = tmp_path / "labels.jsonl"
    file = AppendFile(path)
    file.append(b'{"id": "a"}')
    other = tmp_path / "other"
    other.write_bytes(b'{"id": "b"}\n')
    other.replace(path)
    file.append(b'{"id": "c"}')
    assert path.read_bytes() == b'{"id": "b"}\n{"id": "c"}\n'
