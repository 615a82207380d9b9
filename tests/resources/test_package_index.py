"""Source archives: found in pip's folders and indexes, checked, never run."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from hashlib import sha256

import pytest

from multimodal_eval.core.errors import FetchError, UnknownNameError
from multimodal_eval.resources import fetch as package_index
from multimodal_eval.resources.catalogue import CATALOGUE, GROUPS, File, PackageArchive, Resource
from multimodal_eval.resources.fetch import expanded, fetch, fetch_named
from multimodal_eval.resources.store import folder_of, folder_with
from tests.cli.command_line import mmeval

CONTENT = b"words" * 99
NAME = "tiny_words-1.0.tar.gz"


@pytest.fixture
def archive(tmp_path):
    """A source archive whose setup.py would fail."""
    path = tmp_path / "shelf" / NAME
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as file:
        for name, content in (("tiny_words-1.0/setup.py", b"1 / 0"), ("tiny_words-1.0/words.db", CONTENT)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def words(archive):
    content = archive.read_bytes()
    source = PackageArchive("tiny-words", "1.0", NAME, sha256(content).hexdigest(), len(content))
    file = File("tiny_words-1.0/words.db", "words.db", sha256(CONTENT).hexdigest(), len(CONTENT))
    return Resource("tiny-words", "a few words", "CC0-1.0", source, (file,))


@pytest.fixture
def pip(monkeypatch):
    """The settings of pip that a test chooses."""
    settings: dict[str, str] = {"no-index": "true"}
    monkeypatch.setattr(package_index, "pip_settings", lambda: settings)
    return settings


def test_from_a_folder_of_find_links(words, archive, pip):
    pip["find-links"] = str(archive.parent)
    folder = fetch(words)
    assert [file.name for file in folder.iterdir()] == ["words.db"]  # nothing else is unpacked
    assert (folder / "words.db").read_bytes() == CONTENT
    assert folder_with(words) == folder


@pytest.mark.parametrize("link", ["../../shelf/{}", "../../shelf/{}#sha256=0"])
def test_from_a_second_index(words, archive, pip, tmp_path, link):
    page = tmp_path / "simple" / "tiny-words" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../shelf/other-1.0.tar.gz">x</a><a href="{link.format(NAME)}">y</a>')
    empty = tmp_path / "empty"
    empty.mkdir()
    pip |= {"no-index": "0", "index-url": empty.as_uri(), "extra-index-url": (tmp_path / "simple").as_uri()}
    assert (fetch(words) / "words.db").read_bytes() == CONTENT


def test_the_settings_are_those_of_pip(monkeypatch, tmp_path):
    sections = {"global": "index-url = https://a.example/simple\ncert = a.pem", "download": "cert = b.pem"}
    sections["list"] = "format = json"
    configuration = tmp_path / "pip.conf"
    configuration.write_text("".join(f"[{name}]\n{content}\n" for name, content in sections.items()))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(configuration))
    monkeypatch.setenv("PIP_FIND_LINKS", "/shelf /other")
    for name in ("PIP_INDEX_URL", "PIP_CERT", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    settings = package_index.pip_settings()
    assert settings["index-url"] == "https://a.example/simple"
    assert settings["cert"] == "b.pem"  # of `pip download`
    assert settings["find-links"] == "/shelf /other"  # the environment wins
    assert "format" not in settings


def test_a_missing_archive(words, pip, tmp_path):
    with pytest.raises(FetchError, match=r"tiny_words-1\.0\.tar\.gz is neither in an index nor in a folder"):
        fetch(words)
    pip |= {"no-index": "false", "index-url": f"file://user:secret@localhost{tmp_path}/nowhere"}
    with pytest.raises(FetchError, match=r"nowhere/tiny-words/index\.html could not be read") as refused:
        fetch(words)
    assert "secret" not in str(refused.value)
    assert not folder_of(words).exists()


def test_another_archive_is_refused_before_it_is_opened(words, archive, pip):
    pip["find-links"] = str(archive.parent)
    content = bytearray(archive.read_bytes())
    content[-1] ^= 1
    archive.write_bytes(content)
    with pytest.raises(FetchError, match=r"tiny-words: tiny_words-1\.0\.tar\.gz must have the checksum"):
        fetch(words)
    archive.write_bytes(content + b"more")
    with pytest.raises(FetchError, match="is larger than the expected"):
        fetch(words)
    assert not folder_of(words).exists()


def test_an_archive_without_the_file(words, archive, pip):
    pip["find-links"] = str(archive.parent)
    with pytest.raises(FetchError, match="is missing in it"):
        fetch(replace(words, files=(replace(words.files[0], origin="tiny_words-1.0/other.db"),)))


def test_the_data_of_an_installed_package_is_used(words, tmp_path, monkeypatch):
    installed = replace(words, installed="tiny_words/data")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert folder_with(installed) is None
    folder = tmp_path / "site" / "tiny_words" / "data"
    folder.mkdir(parents=True)
    (folder / "words.db").write_bytes(CONTENT[1:])  # another version
    assert folder_with(installed) is None
    (folder / "words.db").write_bytes(CONTENT)
    assert folder_with(installed) == folder


def test_groups_name_resources():
    assert expanded(["ru", "navec-ru", "wiktionary-ru"]) == ["wiktionary-ru", "navec-ru"]
    assert {name for names in GROUPS.values() for name in names} <= CATALOGUE.keys()
    with pytest.raises(UnknownNameError, match="no resource is named 'rus'"):
        fetch_named("rus")


def test_mmeval_fetch_ru_fetches_the_synonyms(monkeypatch):
    fetched = []
    monkeypatch.setattr("multimodal_eval.resources.fetch.fetch", lambda entry, progress: fetched.append(entry.name))
    mmeval("fetch", "ru")
    assert fetched == ["wiktionary-ru"]


def test_mmeval_fetch_ruwordnet_says_how_to_get_it(tmp_path, monkeypatch):
    shown = mmeval("fetch", "ruwordnet", code=1).stdout  # it is not on this machine
    for text in ("ruwordnet download", "--synonyms ru=ruwordnet:PATH/ruwordnet.db", "https://ruwordnet.ru"):
        assert text in shown
    assert max(map(len, shown.splitlines())) <= 80
    database = tmp_path / "ruwordnet" / "static" / "ruwordnet.db"
    database.parent.mkdir(parents=True)
    database.touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert f"--synonyms ru=ruwordnet:{database}" in mmeval("fetch", "ruwordnet").stdout


def test_ls_resources_names_the_group():
    assert "mmeval fetch ru fetches wiktionary-ru" in mmeval("ls", "resources").stdout


@pytest.mark.registry
@pytest.mark.slow
def test_the_data_of_russian_can_be_fetched():
    for name in expanded(["ru"]):
        _, already, folder = fetch_named(name)
        assert not already
        assert folder_with(CATALOGUE[name]) == folder
