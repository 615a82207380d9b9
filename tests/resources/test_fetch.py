"""Fetching: checked, atomic, offline afterwards."""

from __future__ import annotations

import http.server
import os
import pkgutil
import threading
import zipfile
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

import multimodal_eval
from multimodal_eval.core.errors import FetchError, UnavailableError, UnknownNameError
from multimodal_eval.resources import fetch as fetching
from multimodal_eval.resources.catalogue import (
    CATALOGUE,
    File,
    HuggingFace,
    LocalFolder,
    Packaged,
    PackageWheel,
    Resource,
    Url,
    get_resource,
)
from multimodal_eval.resources.fetch import fetch
from multimodal_eval.resources.store import folder_of, home, is_here, move_into_place, resource_file, verify

CONTENT = b"a synonym table\n"


def resource(source, content=CONTENT, origin="table.txt", digest=None):
    file = File(origin, "table.txt", digest or sha256(content).hexdigest(), len(content))
    return Resource("tiny", "a tiny table", "CC0-1.0", source, (file,))


@pytest.fixture
def local(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "table.txt").write_bytes(CONTENT)
    return resource(LocalFolder(str(tmp_path / "source")))


def test_from_a_folder(local):
    seen = []
    folder = fetch(local, lambda *progress: seen.append(progress))
    assert (folder / "table.txt").read_bytes() == CONTENT
    assert folder.is_relative_to(home())
    assert seen == [("table.txt", len(CONTENT), len(CONTENT))]


def make_index(folder, progress):
    (folder / "index").write_bytes((folder / "table.txt").read_bytes()[::-1])
    progress("index", 1, 1)


def fail_to_make_index(folder, progress):
    raise RuntimeError("no room")


def test_a_resource_is_prepared_before_it_is_renamed_into_place(local):
    seen = []
    folder = fetch(replace(local, prepare=f"{__name__}:make_index"), lambda *progress: seen.append(progress))
    assert (folder / "index").read_bytes() == CONTENT[::-1]
    assert seen[-1] == ("index", 1, 1)


def test_a_failure_of_prepare_leaves_nothing_behind(local):
    with pytest.raises(RuntimeError, match="no room"):
        fetch(replace(local, prepare=f"{__name__}:fail_to_make_index"))
    assert not folder_of(local).exists()
    assert list(folder_of(local).parent.iterdir()) == []


def test_every_prepare_of_the_catalogue_is_a_function():
    assert all(callable(pkgutil.resolve_name(entry.prepare)) for entry in CATALOGUE.values() if entry.prepare)


def test_a_second_fetch_does_nothing(local, monkeypatch):
    fetch(local)
    monkeypatch.setattr(fetching, "_FETCHERS", {})
    assert is_here(local)
    fetch(local)


def test_a_wrong_checksum_leaves_nothing_behind(local):
    wrong = resource(local.source, digest="0" * 64)
    with pytest.raises(FetchError, match="must have the checksum"):
        fetch(wrong)
    assert list((home() / "resources").iterdir()) == []


def test_an_interruption_leaves_nothing_behind(local):
    def interrupt(*progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(local, interrupt)
    assert list((home() / "resources").iterdir()) == []
    assert not is_here(local)


def test_a_larger_file_than_expected_is_refused(local, tmp_path):
    (tmp_path / "source" / "table.txt").write_bytes(CONTENT * 1000)
    with pytest.raises(FetchError, match="larger than"):
        fetch(local)


def test_a_damaged_copy_is_detected_and_replaced(local):
    file = fetch(local) / "table.txt"
    file.write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(FetchError):
        verify(local)
    file.write_bytes(b"short")
    assert not is_here(local)
    fetch(local)
    verify(local)


def test_a_missing_source(tmp_path):
    with pytest.raises(FetchError, match="does not exist"):
        fetch(resource(LocalFolder(str(tmp_path / "nowhere"))))


@pytest.fixture
def web(tmp_path):
    (tmp_path / "table.txt").write_bytes(CONTENT)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    handler.func.log_message = lambda *arguments: None  # type: ignore[attr-defined]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_from_the_web(web):
    assert (fetch(resource(Url(web))) / "table.txt").read_bytes() == CONTENT
    with pytest.raises(FetchError, match="could not be read"):
        fetch(resource(Url(web), content=b"other", origin="nowhere.txt"))


def test_from_hugging_face_asks_for_the_pinned_revision(monkeypatch):
    asked = []

    def refuse(url, timeout):
        asked.append(url)
        raise TimeoutError("no network in this test")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(FetchError, match="no network"):
        fetch(resource(HuggingFace("someone/model", "abc123")))
    assert asked == ["https://huggingface.co/someone/model/resolve/abc123/table.txt"]


def test_from_another_hub(web, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", web + "/")
    (tmp_path / "someone/model/resolve/abc123").mkdir(parents=True)
    (tmp_path / "someone/model/resolve/abc123/table.txt").write_bytes(CONTENT)
    assert (fetch(resource(HuggingFace("someone/model", "abc123"))) / "table.txt").read_bytes() == CONTENT


def test_a_smaller_file_than_expected_is_refused(local, tmp_path):
    (tmp_path / "source" / "table.txt").write_bytes(CONTENT[:-1])
    with pytest.raises(FetchError, match="ended after 15 of 16 bytes"):
        fetch(local)


@pytest.mark.registry
def test_from_a_wheel_of_the_registry():
    digest = "8bb850c565aa389fdc16f3a46965ad23d82adff60f2393fc2762b63185e8e6c9"
    licence = File("six-1.16.0.dist-info/LICENSE", "LICENSE", digest, 1066)
    six = Resource("six", "a small wheel", "MIT", PackageWheel("six", "1.16.0", 11_053), (licence,))
    assert "Permission is hereby granted" in (fetch(six) / "LICENSE").read_text()


@pytest.mark.registry
def test_progress_counts_while_pip_removes_its_folders(tmp_path, monkeypatch):
    (tmp_path / "pip-unpack").mkdir()
    (tmp_path / "a.whl").write_bytes(b"12345")
    look = os.scandir

    def removed_meanwhile(path):
        if "pip-unpack" in str(path):
            raise FileNotFoundError(path)
        return look(path)

    monkeypatch.setattr(os, "scandir", removed_meanwhile)
    assert fetching._bytes_in(tmp_path) == 5


def test_a_wheel_that_does_not_exist():
    nothing = resource(PackageWheel("six", "0.0.0.dev999", 1))
    with pytest.raises(FetchError, match="pip could not download"):
        fetch(nothing)


def test_members_of_a_nested_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "inner.jar", "w") as inner:
        inner.writestr("deep/table.txt", CONTENT)
    with zipfile.ZipFile(tmp_path / "outer.whl", "w") as outer:
        outer.write(tmp_path / "inner.jar", "lib/inner.jar")
    subject = resource(PackageWheel("x", "1", 1))
    with zipfile.ZipFile(tmp_path / "outer.whl") as wheel:
        fetching._extract(subject, wheel, "lib/inner.jar!/deep/table.txt", tmp_path / "out.txt")
        with pytest.raises(FetchError, match="is not in"):
            fetching._extract(subject, wheel, "lib/inner.jar!/nowhere", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_bytes() == CONTENT


def test_a_missing_resource_names_the_command_that_fetches_it():
    with pytest.raises(UnavailableError, match=r"mmeval fetch meteor-1\.5-en"):
        resource_file("meteor-1.5-en", "english.synsets")
    with pytest.raises(UnknownNameError, match=r"Did you mean 'meteor-1\.5-"):
        get_resource("meteor-1.5")


def test_the_catalogue_is_pinned():
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        assert entry.licence
        assert len({file.name for file in entry.files}) == len(entry.files)
        for file in entry.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert file.size > 0
        if not isinstance(entry.source, Packaged):
            assert folder_of(entry).name == f"{name}-{entry.fingerprint}"


def test_resources_of_the_package_need_no_fetch():
    path = Path(multimodal_eval.__file__).parent / "data" / "demo" / "vqa.jsonl"
    content = path.read_bytes()
    packaged = replace(
        resource(Packaged("data/demo"), content),
        files=(File("", path.name, sha256(content).hexdigest(), len(content)),),
    )
    assert is_here(packaged)
    assert fetch(packaged) == path.parent
    verify(packaged)
    with pytest.raises(FetchError, match="Reinstall the package"):
        fetch(resource(Packaged("data/demo")))


def test_a_copy_that_another_process_fetched_meanwhile_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "table.txt").write_bytes(CONTENT)
    wanted = resource(LocalFolder(str(tmp_path)))
    theirs, check_file, inodes = folder_of(wanted) / "table.txt", fetching.check_file, []

    def checked_late(*arguments):
        check_file(*arguments)
        theirs.parent.mkdir()
        theirs.write_bytes(CONTENT)
        inodes.append(theirs.stat().st_ino)

    monkeypatch.setattr(fetching, "check_file", checked_late)
    assert fetch(wanted) == theirs.parent
    assert [theirs.stat().st_ino] == inodes
    assert theirs.read_bytes() == CONTENT


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_copy_that_another_process_places_at_the_last_moment(tmp_path, monkeypatch, is_whole):
    staging, target = tmp_path / "scratch" / "files", tmp_path / "target"
    staging.mkdir(parents=True)
    checks, rename = iter([False, is_whole]), Path.rename

    def late(self, place):
        if self == staging:
            target.mkdir()
            (target / "table.txt").write_text("theirs")
        return rename(self, place)

    monkeypatch.setattr(Path, "rename", late)
    if is_whole:
        move_into_place(staging, target, lambda: next(checks))
    else:
        with pytest.raises(OSError, match=r"not empty|exists"):
            move_into_place(staging, target, lambda: next(checks))
    assert (target / "table.txt").read_text() == "theirs"
