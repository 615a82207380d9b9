"""The folder of a site: what is refused, what stays, and what a crash leaves."""

from __future__ import annotations

import json
import shutil
from functools import partial

import pytest

from multimodal_eval.analysis.leaderboard import read_leaderboard
from multimodal_eval.core.errors import ConfigError, OutsideError, RunFolderError
from multimodal_eval.data.runs.storage import LocalStorage
from multimodal_eval.report.site.build import write_site
from multimodal_eval.report.site.folder import SiteFolder
from tests.report.site.boards import ranked
from tests.report.site.parsed import broken_links_from_the_first_page, files_of

PAGES = {"index.html": b"<p>index", "methods.html": b"<p>methods"}


def written(folder, pages=PAGES):
    SiteFolder(folder).write({name: partial(bytes, content) for name, content in pages.items()})
    return folder


def test_a_new_and_an_empty_folder_are_accepted(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "deep/new"):
        assert set(files_of(written(tmp_path / name))) == {*PAGES, "site.json"}


def test_hidden_files_are_no_obstacle_and_stay(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref")
    written(tmp_path)
    assert (tmp_path / ".git" / "HEAD").read_text() == "ref"


@pytest.mark.parametrize("name", ["thesis.tex", "index.html", "alba/run.json"])
def test_a_folder_with_other_files_is_refused(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError, match=r"is not empty and not a site of mmeval: it has .*--site"):
        SiteFolder(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_is_refused(tmp_path):
    (tmp_path / "site").write_text("mine")
    with pytest.raises(ConfigError, match="is a file, not a folder"):
        SiteFolder(tmp_path / "site")


@pytest.mark.parametrize("content", ["", "[]", '{"files": 1}', "\ud800", '{"created_by":"x","format":99,"files":[]}'])
def test_a_list_that_is_not_ours_is_refused(tmp_path, content):
    (tmp_path / "site.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError, match=r"site\.json"):
        SiteFolder(tmp_path)


def test_replacing_removes_old_pages_and_keeps_other_files(tmp_path):
    old = {**PAGES, "submissions/old/index.html": b"old", "submissions/old/report.html": b"old"}
    written(tmp_path, old)
    (tmp_path / "CNAME").write_text("example.org")
    (tmp_path / "submissions" / "old" / "paper.pdf").write_text("mine")
    written(tmp_path, {**PAGES, "submissions/new/index.html": b"new"})
    assert set(files_of(tmp_path)) == {
        *PAGES,
        "site.json",
        "CNAME",
        "submissions/old/paper.pdf",
        "submissions/new/index.html",
    }
    (tmp_path / "submissions" / "old" / "paper.pdf").unlink()


def test_a_file_in_the_way_is_not_overwritten(tmp_path):
    written(tmp_path, {"index.html": b"x"})
    (tmp_path / "methods.html").write_text("mine")
    with pytest.raises(ConfigError, match=r"methods\.html is in the way"):
        written(tmp_path)
    assert (tmp_path / "methods.html").read_text() == "mine"
    assert (tmp_path / "index.html").read_bytes() == b"x"


@pytest.mark.parametrize(
    "name",
    ["../outside.html", "/etc/hosts", "submissions/../../outside.html", "notes.txt", "submissions/a/../../x"],
)
def test_a_list_cannot_remove_other_files(tmp_path, name):
    outside = tmp_path / "outside.html"
    outside.write_text("mine")
    folder = written(tmp_path / "site")
    (folder / "notes.txt").write_text("mine")
    listed = json.loads((folder / "site.json").read_text())
    (folder / "site.json").write_text(json.dumps({**listed, "files": [*listed["files"], name]}))
    written(folder)
    assert (outside.read_text(), (folder / "notes.txt").read_text()) == ("mine", "mine")


def test_a_link_to_another_folder_is_not_followed(tmp_path):
    folder, other = tmp_path / "site", tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("mine")
    written(folder)
    (folder / "submissions").mkdir()
    (folder / "submissions" / "alba").symlink_to(other)
    (other / "index.html.0123abcd.partial").write_text("mine")
    written(folder)  # does not touch the link
    with pytest.raises(ConfigError, match=r"in the way"):
        written(folder, {**PAGES, "submissions/alba/index.html": b"new"})
    assert (other / "index.html").read_text() == "mine"
    (other / "index.html").unlink()
    with pytest.raises(OutsideError, match="leads out of the folder"):
        written(folder, {**PAGES, "submissions/alba/index.html": b"new"})
    assert [item.name for item in other.iterdir()] == ["index.html.0123abcd.partial"]


def test_a_second_process_waits_for_nothing_and_is_refused(tmp_path):
    folder = SiteFolder(tmp_path / "site")

    def page():
        with pytest.raises(RunFolderError, match="is in use by another process"):
            written(tmp_path / "site", {"methods.html": b"second"})
        return b"first"

    folder.write({"index.html": page})
    assert (tmp_path / "site" / "index.html").read_bytes() == b"first"


class StoppedError(Exception):
    """The process ends here."""


@pytest.fixture(scope="module")
def old_and_new(board_runs, tmp_path_factory):
    """A site, and the files of another one that has two submissions more and one less."""
    folder = tmp_path_factory.mktemp("sites")
    ranked(folder / "runs", {"alba": 5, "dune": 4})
    write_site(folder / "old", folder / "runs", read_leaderboard(folder / "runs"))
    write_site(folder / "new", *board_runs)
    return folder / "old", files_of(folder / "new")


@pytest.mark.parametrize("after", [0, 1, 2, 4, 7, 8, 10, 12, 14, 15])
def test_a_crash_leaves_whole_pages_whose_links_resolve(board_runs, old_and_new, tmp_path, monkeypatch, after):
    """Whatever is written before the crash, no link is broken, and the next attempt is complete."""
    old, new = old_and_new
    folder = tmp_path / "site"
    shutil.copytree(old, folder)
    write, count = LocalStorage.write_bytes, [0]

    def failing(self, name, content, **options):
        if count[0] == after + 1:  # the first is the list
            left = self.path / f"{name}.1.partial"
            left.parent.mkdir(parents=True, exist_ok=True)
            left.write_bytes(content[: len(content) // 2])
            raise StoppedError
        count[0] += 1
        write(self, name, content, **options)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "write_bytes", failing)
        with pytest.raises(StoppedError):
            write_site(folder, *board_runs)
    left = {name: content for name, content in files_of(folder).items() if name.endswith(".html")}
    assert set(left.values()) <= {*files_of(old).values(), *new.values()}
    assert broken_links_from_the_first_page(folder) == []
    write_site(folder, *board_runs)
    assert files_of(folder) == new


def test_the_first_page_is_written_last(board_runs, tmp_path, monkeypatch):
    runs, board = board_runs
    names = []
    write = LocalStorage.write_bytes

    def noted(self, name, content, **options):
        names.append(name)
        write(self, name, content, **options)

    monkeypatch.setattr(LocalStorage, "write_bytes", noted)
    write_site(tmp_path / "site", runs, board)
    assert (names[0], names[-2:]) == ("site.json", ["index.html", "site.json"])
