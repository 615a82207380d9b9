"""WebDataset shards, and hostile archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.datasets.webdataset import tar_entries
from multimodal_eval.data.readers import limits
from tests.data.readers.reading import read

FIXTURES = Path(__file__).parent / "fixtures" / "webdataset"


def digest(content):
    return {"sha256": hashlib.sha256(content).hexdigest()}


def archive(path, *members, kind=tarfile.PAX_FORMAT, mode="w"):
    with tarfile.open(path, mode, format=kind) as tar:
        for name, content in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_samples_are_those_of_webdataset():
    records = json.loads((FIXTURES / "expected.json").read_text())["records"]
    samples, problems, _ = read(FIXTURES, None)
    assert problems.total == 0
    first, second, third = samples
    assert [record["__key__"] for record in records] == [sample.metadata["__key__"] for sample in samples]
    assert first.id == "tile-1"  # of its JSON
    assert (digest(first.image), digest(first.caption.encode())) == (records[0]["jpg"], records[0]["txt"])
    assert first.metadata["size"] == 4
    assert second.id == "a/0002"
    assert [digest(image) for image in second.images] == [records[1][f"{name}.png"] for name in (0, 2, 10)]
    assert (third.expected_answer, third.metadata["part.seg"]) == ("2", [1, 2])
    assert "npy" not in third.metadata


def test_two_shards_with_the_same_key(tmp_path):
    for name in ("a.tar", "b.tar"):
        archive(tmp_path / name, ("0001.txt", b"x"))
    _, problems, _ = read(tmp_path)
    assert [problem.code for problem in problems.kept] == ["DUPLICATE"]


def test_the_json_has_another_caption(tmp_path):
    path = archive(tmp_path / "a.tar", ("1.txt", b"short"), ("1.json", b'{"caption": "long"}'), ("1.cls", b"3"))
    (sample,) = read(path)[0]
    assert (sample.caption, sample.metadata["txt"], sample.expected_answer) == ("long", "short", "3")


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_form_of_names(tmp_path, kind):
    names = ["a.txt", "d" * 90 + "/" + "e" * 90 + ".txt"]
    names += [] if kind == tarfile.USTAR_FORMAT else ["f" * 300 + ".txt", "ключ.txt"]
    path = archive(tmp_path / "a.tar", *((name, name.encode()) for name in names), kind=kind)
    samples, problems, _ = read(path)
    assert problems.total == 0
    assert [f"{sample.id}.txt" for sample in samples] == names
    assert [sample.caption for sample in samples] == names


def test_compressed(tmp_path):
    path = archive(tmp_path / "a.tar.gz", ("1.txt", b"x"), mode="w:gz")
    assert [sample.caption for sample in read(path)[0]] == ["x"]


def typed(name, kind, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    ("members", "code", "message"),
    [
        ([("../1.txt", b"x")], "FORMAT", "the name '../1.txt' leaves the archive"),
        ([("/etc/1.txt", b"x")], "FORMAT", "the name '/etc/1.txt' leaves the archive"),
        ([(typed("1.txt", tarfile.SYMTYPE, "/etc/passwd"), b"")], "FORMAT", "'1.txt' is a symbolic link"),
        ([(typed("1.txt", tarfile.LNKTYPE, "2.txt"), b"")], "FORMAT", "'1.txt' is a hard link"),
        ([(typed("1.txt", tarfile.CHRTYPE), b"")], "FORMAT", "'1.txt' is a device"),
        ([("1.txt", b"x"), ("1.txt", b"y")], "DUPLICATE", "the sample '1' has two files with the extension 'txt'"),
        ([("1.txt", b"\xff")], "ENCODING", "'1.txt' is not valid UTF-8, at byte 0"),
        ([("1.json", b"{")], "SYNTAX", "'1.json' is not valid JSON: "),
        ([("1.json", b"[1]")], "SYNTAX", "'1.json' must be a JSON object. Got [1] instead."),
    ],
)
def test_refused(tmp_path, members, code, message):
    samples, problems, _ = read(archive(tmp_path / "a.tar", *members))
    assert [problem.code for problem in problems.kept] == [code]
    assert problems.kept[0].message.startswith(message)
    assert samples == []


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"", None, ""),
        (b"\0" * 1024, "EMPTY", "the archive has no entries"),
        (b"x" * 2000, "SYNTAX", "the file is not a tar archive"),
        (b"x" * 100, "TRUNCATED", "the archive ends in the middle of an entry"),
    ],
)
def test_not_archives(tmp_path, content, code, message):
    (tmp_path / "a.tar").write_bytes(content)
    _, problems, _ = read(tmp_path / "a.tar")
    assert [problem.code for problem in problems.kept] == ([] if code is None else [code])
    assert all(problem.message.startswith(message) for problem in problems.kept)


def test_an_archive_that_is_cut_off(tmp_path):
    path = archive(tmp_path / "a.tar", ("1.txt", b"x"), ("2.txt", b"y" * 2000))
    path.write_bytes(path.read_bytes()[: 512 * 4])
    _, problems, _ = read(path)
    assert [problem.code for problem in problems.kept] == ["TRUNCATED"]


def test_a_huge_entry_is_refused_before_it_is_read(tmp_path):
    info = tarfile.TarInfo("1.jpg")
    info.size = 1 << 40
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(InputError, match=r"TOO_LONG: the entry '1\.jpg' would take about 1,048,576 MB"):
        read(tmp_path / "a.tar")


def test_many_small_files_of_one_sample_are_limited(tmp_path):
    path = archive(tmp_path / "a.tar", *((f"1.{number}.jpg", b"x" * (1 << 18)) for number in range(8)))
    with limits.using(record_mb=1), pytest.raises(InputError, match="TOO_LONG: the sample '1' would take"):
        list(read(path)[0])


def test_a_bomb_is_refused(tmp_path):
    path = tmp_path / "a.tar.gz"
    info = tarfile.TarInfo("1.jpg")
    info.size = 300 << 20
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(info.tobuf())
        for _ in range(300):
            file.write(b"\0" * (1 << 20))
    with pytest.raises(InputError, match=r"EXPANSION: .* it may be a decompression bomb"):
        read(path)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.text("abc/é.", min_size=1, max_size=120), st.binary(max_size=1100)),
        max_size=5,
        unique_by=lambda item: item[0],
    ).filter(lambda items: all(not name.startswith("/") and ".." not in name.split("/") for name, _ in items)),
    st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_entries_are_those_of_tarfile(items, kind):
    items = [(name, content) for name, content in items if not name.endswith("/")]
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=kind) as tar:
        for name, content in items:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    stream.seek(0)
    if items:
        assert [(entry.name, entry.content) for entry in tar_entries(stream, "a.tar")] == items
