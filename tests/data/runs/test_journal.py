from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.data.runs.journal import Journal

records = st.lists(st.binary(max_size=200).filter(lambda record: b"\n" not in record), max_size=20)


def written(path: Path, contents: list[bytes]) -> None:
    with Journal(path) as journal:
        for record in contents:
            journal.append(record)


@given(records, records)
def test_records_come_back_in_order_also_those_of_an_earlier_process(tmp_path_factory, first, second):
    path = tmp_path_factory.mktemp("journal") / "answers" / "journal.jsonl"
    written(path, first)
    written(path, second)
    assert list(Journal(path).records()) == first + second


@given(records.filter(bool), st.data())
def test_a_journal_that_is_cut_off_anywhere_loses_at_most_the_last_record(tmp_path_factory, contents, data):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    written(path, contents)
    length = path.stat().st_size
    last = 8 + 1 + len(contents[-1]) + 1  # checksum, space, record, line break
    os.truncate(path, data.draw(st.integers(length - last, length)))
    kept = list(Journal(path).records())
    assert kept in (contents, contents[:-1])
    written(path, [b"next"])  # on a line of its own
    assert list(Journal(path).records()) == [*kept, b"next"]


@given(records.filter(bool), st.data())
def test_a_damaged_record_is_ignored_and_the_others_are_kept(tmp_path_factory, contents, data):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    written(path, contents)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    kept = list(Journal(path).records())
    assert len(kept) >= len(contents) - 2  # a damaged line break joins two lines
    assert all(record in contents for record in kept)


def test_a_record_is_in_the_file_as_soon_as_it_is_appended(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for number in range(1000):  # also while a thread flushes
        journal.append(b"%d" % number)
        if number % 100 == 0:
            assert len(list(Journal(journal.path).records())) == number + 1
    journal.close()


def test_without_a_path_nothing_is_kept():
    with Journal(None) as journal:
        journal.append(b"record")
        assert list(journal.records()) == []


def test_without_a_file_there_are_no_records(tmp_path):
    assert list(Journal(tmp_path / "none.jsonl").records()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # no file of this process may grow
    try:
        with pytest.raises(OSError, match="File too large"):
            journal.append(b"record")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_a_regular_file_is_appended_to(tmp_path, kind):
    path, outside = tmp_path / "journal.jsonl", tmp_path / "outside.jsonl"
    outside.write_bytes(b"kept")
    {"link": lambda: path.symlink_to(outside), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[kind]()
    with pytest.raises(RunFolderError, match="not a regular file"):
        Journal(path).append(b"record")
    assert outside.read_bytes() == b"kept"
