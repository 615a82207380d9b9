"""Tags and notes: written beside the runs with --label, shown always, and a filter of the list."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.report.viewer.labelling.annotators import Annotator, make_labelled_runs, server
from tests.report.viewer.viewed import client

NAME = ".mmeval-notes.jsonl"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("noted") / "runs"
    make_labelled_runs(folder, 3)
    make_labelled_runs(folder / "group", 3)
    return folder


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def ann(runs: Path, tmp_path: Path) -> Annotator:
    return Annotator(server(runs, tmp_path / "labels.jsonl", scale="1-5"))


def write(ann: Annotator, run: str, tags: str, note: str = "", version: str | None = None):
    """Send the form of a run."""
    ann.open(f"/notes/{run}")
    field = re.search(r'name="version" value="(\w+)"', ann.text)
    assert field is not None
    return ann.post(f"/notes/{run}", tags=tags, note=note, version=version or field[1])


def listed(text: str) -> list[str]:
    return re.findall(r'<a href="/run/([^"]+)">', text)


def test_tags_and_notes_are_written_beside_the_run_and_shown(ann: Annotator, runs: Path):
    assert write(ann, "parrot", " good ,for paper, good", "line 1\r\nline 2").headers["location"] == "/run/parrot"
    assert write(ann, "group/owl", "for paper").status_code == 303
    (record,) = [json.loads(line) for line in (runs / NAME).read_text().splitlines()]
    assert (record["run"], record["tags"], record["note"]) == ("parrot", ["good", "for paper"], "line 1\nline 2")
    assert record["by"] == "ann"
    (inner,) = [json.loads(line) for line in (runs / "group" / NAME).read_text().splitlines()]
    assert inner["run"] == "owl"
    readers = client(runs)  # without --label
    for site in (readers, ann.browser):
        page = site.get("/run/parrot").text
        assert '<a class="run-tag" href="/?tag=for%20paper"><bdi>for paper</bdi></a>' in page
        assert "line 1\nline 2" in page
        assert "for paper" in site.get("/run/group/owl").text
        assert "run-tag" not in site.get("/run/owl").text
    assert "/notes/" not in readers.get("/run/parrot").text
    assert "/notes/" not in readers.get("/").text
    assert 'href="/notes/parrot"' in ann.browser.get("/").text


def test_the_list_is_filtered_by_tag(ann: Annotator, runs: Path):
    write(ann, "parrot", "for paper")
    write(ann, "group/owl", "For Paper, old")
    site = client(runs)
    assert listed(site.get("/").text) == ["group/owl", "group/parrot", "owl", "parrot"]
    assert listed(site.get("/?tag=for%20paper").text) == ["parrot"]
    assert listed(site.get("/?tag=old").text) == ["group/owl"]
    assert listed(site.get("/?tag=nothing").text) == []
    assert listed(site.get("/?q=paper").text) == ["group/owl", "parrot"]
    page = site.get("/?tag=old&sort=samples").text
    assert '<option value="old" selected>' in page
    assert "tag=old" in re.findall(r'id="sort-name"[^>]*href="([^"]+)"', page)[0]
    assert site.get("/runs.csv?tag=old").text.count("\n") == 2


def test_the_last_note_counts_and_an_empty_one_removes(ann: Annotator, runs: Path):
    write(ann, "parrot", "a", "first")
    write(ann, "parrot", "b", "second")
    write(ann, "parrot", "b", "second")  # nothing changes: no new line
    assert len((runs / NAME).read_text().splitlines()) == 2
    assert "second" in ann.open("/run/parrot")
    write(ann, "parrot", "", "")
    assert "run-tag" not in ann.open("/run/parrot")
    assert "second" not in ann.text


def test_a_change_of_somebody_else_is_not_overwritten(ann: Annotator, runs: Path):
    write(ann, "parrot", "a", "mine")
    ann.open("/notes/parrot")
    old = re.findall(r'name="version" value="(\w+)"', ann.text)[0]
    write(ann, "parrot", "a", "of somebody else")
    answer = write(ann, "parrot", "b", "mine again", version=old)
    assert answer.status_code == 409
    assert "mine again</textarea>" in answer.text  # what was typed is kept
    assert "of somebody else" in answer.text
    assert "mine again" not in (runs / NAME).read_text()
    newer = re.findall(r'name="version" value="(\w+)"', answer.text)[0]
    assert write(ann, "parrot", "b", "mine again", version=newer).status_code == 303


@pytest.mark.parametrize(
    ("tags", "note"),
    [
        (",".join(f"t{number}" for number in range(21)), ""),
        ("x" * 41, ""),
        ("x" * 2_000, ""),
        ("a\u202eb", ""),
        ("a\nb", ""),
        ("", "x" * 4_001),
        ("", "a\x00b"),
        ("", "a\x1b[31m"),
    ],
)
def test_notes_that_are_refused_stay_in_the_form(ann: Annotator, runs: Path, tags: str, note: str):
    answer = write(ann, "parrot", tags, note)
    assert answer.status_code == 400
    assert "Not saved" in answer.text
    assert not (runs / NAME).exists()
    assert len(answer.text) > max(len(tags), len(note))


def test_notes_of_a_single_run_are_beside_it(runs: Path, tmp_path: Path):
    ann = Annotator(server(runs / "parrot", tmp_path / "labels.jsonl", scale="1-5"))
    assert write(ann, "parrot", "x").status_code == 303
    assert (runs / NAME).is_file()
    assert not list((runs / "parrot").rglob(NAME))
    assert '"run-tag" href="/?tag=x"' in client(runs).get("/run/parrot").text


def test_a_note_that_cannot_be_saved_says_so(ann: Annotator, runs: Path, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text('{"run": "parrot", "tags": ["stolen"]}\n')
    (runs / NAME).symlink_to(secret)
    assert "stolen" not in ann.open("/run/parrot")
    answer = write(ann, "parrot", "x", "my text")
    assert answer.status_code == 507
    assert "my text</textarea>" in answer.text
    assert "nothing was saved" in answer.text
    assert "stolen" not in ann.open("/")
    assert secret.read_text().count("\n") == 1


def test_a_group_that_is_a_link_has_no_notes(ann: Annotator, runs: Path):
    (runs / "linked").symlink_to(runs / "group")
    answer = write(ann, "linked/owl", "x")
    assert answer.status_code == 507
    assert not (runs / "group" / NAME).exists()


def test_foreign_notes_are_read_with_care(runs: Path):
    """A file from somebody else: what is not valid is left out."""
    lines = [
        "not json",
        '{"run": "parrot", "tags": "no list"}',
        '{"run": "parrot", "tags": [1]}',
        json.dumps({"run": "parrot", "tags": ["x" * 500, " ", *[f"t{n}" for n in range(99)]], "note": "n" * 99_999}),
        '{"run": "../owl", "tags": ["outside"]}',
        "[" * 10_000,
        '{"run": "owl", "tags": ["cut off"]',
    ]
    (runs / NAME).write_text("\n".join(lines))
    site = client(runs)
    page = site.get("/run/parrot").text
    assert page.count("run-tag") < 30
    assert "x" * 41 not in page
    assert "n" * 4_001 not in page
    assert "outside" not in site.get("/").text
    assert "cut off" not in site.get("/").text
    (runs / NAME).unlink()
    (runs / NAME).mkdir()
    assert site.get("/").status_code == 200
