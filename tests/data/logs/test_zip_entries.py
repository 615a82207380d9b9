"""Zip files are read with all three methods, and hostile ones are refused."""

from __future__ import annotations

import zipfile

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.logs import zip_entries
from multimodal_eval.data.logs.zip_entries import BrokenZipError, open_zip
from multimodal_eval.data.readers import limits
from tests.data.logs.zip_files import DEFLATED, STORED, ZSTD, Entry, write_zip, zip_bytes


def contents(path):
    """All entries, read one by one and together."""
    with open_zip(path) as entries:
        names = list(entries)
        single = {name: entries.read(name) for name in names}
        assert list(entries.read_json(names)) == [single[name] for name in names]
        return single


def refused(path):
    with pytest.raises(BrokenZipError) as refusal:
        contents(path)
    return refusal.value.code, str(refusal.value)


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTD])
@pytest.mark.parametrize("zip_64", [False, True])
def test_every_method_is_read(tmp_path, method, zip_64):
    expected = {"a.json": b"{}", "empty": b"", "ü/b.json": bytes(range(256)) * 300}
    entries = [Entry(name, content, method) for name, content in expected.items()]
    path = write_zip(tmp_path / "x.eval", entries, zip_64=zip_64, comment=b"PK?" * 100)
    assert contents(path) == expected


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_of_the_standard_library_are_read(tmp_path, method):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("one.txt", "one")
        with archive.open("two.txt", "w", force_zip64=True) as entry:
            entry.write(b"two" * 1000)
    assert contents(path) == {"one.txt": b"one", "two.txt": b"two" * 1000}


def test_an_entry_may_have_several_frames(tmp_path):
    frames = [bytes(pa.compress(part, codec="zstd", asbytes=True)) for part in (b"one", b"two")]
    entry = Entry("a", b"onetwo", packed=b"".join(frames))
    assert contents(write_zip(tmp_path / "x", [entry, Entry("b", b"!")])) == {"a": b"onetwo", "b": b"!"}


def test_a_long_local_header_is_read(tmp_path):
    entry = Entry("a", b"content", extra=b"\0" * 5000)
    assert contents(write_zip(tmp_path / "x", [entry, Entry("b")])) == {"a": b"content", "b": b"{}"}


def test_of_entries_with_one_name_the_last_counts(tmp_path):
    path = write_zip(tmp_path / "x", [Entry("a", b"old"), Entry("b", b"b"), Entry("a", b"new")])
    assert contents(path) == {"a": b"new", "b": b"b"}


@given(st.lists(st.tuples(st.binary(max_size=400), st.sampled_from([STORED, DEFLATED, ZSTD])), max_size=12))
@pytest.mark.property
def test_what_is_written_is_read(tmp_path_factory, items):
    entries = [Entry(f"{number}.json", content, method) for number, (content, method) in enumerate(items)]
    path = write_zip(tmp_path_factory.mktemp("zip") / "x.eval", entries)
    assert contents(path) == {entry.name: entry.content for entry in entries}


def test_small_groups_give_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(zip_entries, "_TOGETHER", 10)
    entries = [Entry(str(number), b"x" * number) for number in range(30)]
    assert contents(write_zip(tmp_path / "x", entries)) == {entry.name: entry.content for entry in entries}


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "a/../../b", "..\\a", "\\a", "a\0b"])
def test_names_that_lead_out_of_the_archive_are_refused(tmp_path, name):
    code, message = refused(write_zip(tmp_path / "x", [Entry("fine"), Entry(name)]))
    assert code == "FORMAT"
    assert "leads out of the archive" in message


def test_overlapping_entries_are_refused(tmp_path):
    # A bomb without nesting: many entries of the directory refer to the same data.
    path = write_zip(
        tmp_path / "x", [Entry("a", b"0" * 10_000), *(Entry(f"b{number}", offset=0) for number in range(9))]
    )
    assert refused(path)[0] == "FORMAT"
    # The second entry starts within the data of the first.
    inner = zip_bytes([Entry("inner", b"x", STORED)])[:-100]
    path = write_zip(tmp_path / "y", [Entry("outer", inner, STORED), Entry("inner", b"x", STORED, offset=35)])
    assert "overlaps" in refused(path)[1]
    # The local header is longer than the directory says, so that the data end in the next entry.
    data = bytearray(zip_bytes([Entry("a", b"x", STORED), Entry("b", b"x", STORED)]))
    data[28] = 20
    (tmp_path / "z").write_bytes(data)
    assert "overlaps" in refused(tmp_path / "z")[1]


@pytest.mark.parametrize(
    ("entry", "code", "said"),
    [
        (Entry("a", flags=1), "FORMAT", "encrypted"),
        (Entry("a", method=12, packed=b"x"), "FORMAT", "Known: stored, deflate, zstd"),
        (Entry("a", b"content", checksum=1), "ENCODING", "'a' is damaged"),
        (Entry("a", b"content", size=6), "ENCODING", "'a' is damaged"),
        (Entry("a", b"content", size=8), "ENCODING", "'a' is damaged"),
        (Entry("a", b"content", DEFLATED, size=6), "ENCODING", "'a' is damaged"),
        (Entry("a", b"content", STORED, size=8), "ENCODING", "'a' is damaged"),
        (Entry("a", packed=b"not zstd"), "ENCODING", "'a' is damaged"),
        (Entry("a", method=DEFLATED, packed=b"\xff\xff"), "ENCODING", "'a' is damaged"),
        (Entry("a", packed_size=10**6), "TRUNCATED", "its end is missing"),
        (Entry("a", offset=10**6), "TRUNCATED", "its end is missing"),
        (Entry("a", b"content", offset=4), "FORMAT", "overlaps"),
    ],
)
def test_damaged_entries_are_refused(tmp_path, entry, code, said):
    seen, message = refused(write_zip(tmp_path / "x", [entry, Entry("other", b"more content")]))
    assert (seen, said in message) == (code, True), message


def test_a_damaged_entry_among_many_is_named(tmp_path):
    entries = [Entry(f"e{number}", f"content {number}".encode()) for number in range(20)]
    entries[13].checksum = 7
    with open_zip(write_zip(tmp_path / "x", entries)) as archive:
        read = archive.read_json(list(archive))
        assert [next(read) for _ in range(13)] == [entry.content for entry in entries[:13]]
        with pytest.raises(BrokenZipError, match="'e13' is damaged"):
            next(read)


def test_an_archive_that_is_cut_is_refused(tmp_path):
    data = zip_bytes([Entry("a", b"content" * 100), Entry("b")])
    path = tmp_path / "x"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(BrokenZipError):
            contents(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    # 300 MB of zeros in 30 kB: more than 100 times the file and than 256 MB.
    zeros = bytes(pa.compress(bytes(100 << 20), codec="zstd", asbytes=True))
    entries = [Entry(str(number), b"", size=100 << 20, packed=zeros) for number in range(3)]
    with open_zip(write_zip(tmp_path / "x", entries)) as archive:
        archive.check_total(["0", "1"])
        with pytest.raises(InputError, match="decompression bomb"):
            archive.check_total(archive)


def test_a_huge_entry_is_refused_before_it_is_unpacked(tmp_path):
    with open_zip(write_zip(tmp_path / "x", [Entry("a", size=300 << 20)])) as archive:
        with pytest.raises(InputError, match="the entry 'a' would take about 600 MB of memory"):
            archive.read("a")
        with pytest.raises(InputError, match="--max-record-mb"):
            list(archive.read_json(["a"]))
    with limits.using(record_mb=1000), open_zip(tmp_path / "x") as archive, pytest.raises(BrokenZipError):
        archive.read("a")  # allowed now, and then found to be damaged


@pytest.mark.parametrize("method", [DEFLATED, ZSTD])
def test_too_many_values_for_the_size_of_the_archive_are_refused(tmp_path, monkeypatch, method):
    # 100 entries with 1,000 values each; a value counts as 50 bytes, and 40,000 values may have 2 MB.
    monkeypatch.setattr(limits, "_WORK", 2_000_000)
    entries = [Entry(str(number), b"[%s0]" % (b"0," * 999), method) for number in range(100)]
    path = write_zip(tmp_path / "x", entries)
    with open_zip(path) as archive, limits.using(expansion=1):
        assert len(list(archive.read_json(list(archive)[:30]))) == 30
        with pytest.raises(InputError, match="--max-expansion"):
            list(archive.read_json(list(archive)))


def test_a_directory_with_too_many_entries_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(zip_entries, "_MOST_ENTRIES", 2)
    assert refused(write_zip(tmp_path / "x", [Entry("a"), Entry("b"), Entry("c")]))[0] == "TOO_LONG"


def test_an_empty_archive_has_no_entries(tmp_path):
    assert contents(write_zip(tmp_path / "x", [])) == {}
