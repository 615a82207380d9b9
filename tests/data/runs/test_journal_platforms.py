"""The journal on systems without `fdatasync`, and on a disk that fails."""

from __future__ import annotations

import errno
import os

import pytest

from multimodal_eval.data.runs import journal
from multimodal_eval.data.runs.journal import Journal


def test_a_system_without_fdatasync(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "fdatasync")  # macOS and Windows
    monkeypatch.setattr(journal, "_FLUSHED_EVERY", 2)
    with Journal(tmp_path / "journal") as opened:
        for number in range(5):
            opened.append(b"%d" % number)
    assert list(Journal(tmp_path / "journal").records()) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_failure_of_the_disk_is_reported_and_the_file_closed(tmp_path, monkeypatch):
    def failing(descriptor):
        descriptors.append(descriptor)
        raise OSError(errno.EIO, "input/output error")

    descriptors = []
    monkeypatch.setattr(journal, "_FLUSHED_EVERY", 1)
    opened = Journal(tmp_path / "journal")
    monkeypatch.setattr(os, "fdatasync", failing)
    opened.append(b"1")  # flushed in a thread
    with pytest.raises(OSError, match="input/output error"):
        opened.close()
    assert len(descriptors) == 1  # what the thread was told is not asked again
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptors[0])
