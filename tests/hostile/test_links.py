"""A link in a run folder of somebody else is named and refused, and nothing that it leads to is touched."""

from __future__ import annotations

import os
import shutil
from random import Random

import pytest

from multimodal_eval import evaluate, load_run, resume
from multimodal_eval.core.errors import OutsideError, RunFolderError
from multimodal_eval.core.system_files import leading_out
from multimodal_eval.data.runs.storage import LocalStorage
from tests.edited_runs import rewrite_json
from tests.hostile.foreign import mmeval, received
from tests.hostile.links import DATA, FOLDERS, snapshot
from tests.run.caption_samples import samples

FOLDERS_OF_A_RUN = ("samples", "scores", "state", "answers", "verdicts")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "run"
    evaluate(samples(6), metrics=["cider", "rouge_l"], output=folder)
    return folder


@pytest.fixture
def home(tmp_path):
    """A folder of the user, with files and folders of several kinds."""
    home = tmp_path / "home"
    (home / "thesis" / "chapters").mkdir(parents=True)
    (home / "thesis" / "chapters" / "one.tex").write_text("mine")
    (home / "notes.partial").write_text("mine")
    return home


def linked(made, tmp_path, name, target):
    """A run whose file or folder is a link."""
    run = received(made, tmp_path / "run")
    place = run / name
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target)
    return run


@pytest.mark.parametrize("state", ["reading", "scoring", "done"])
@pytest.mark.parametrize("name", FOLDERS_OF_A_RUN)
def test_resuming_removes_nothing_outside(made, tmp_path, home, name, state):
    run = linked(made, tmp_path, name, home)
    rewrite_json(run / "run.json", lambda info: info.update(state=state))
    before = snapshot(tmp_path)
    printed = mmeval("score", "--resume", run)
    assert printed.code == 1
    assert f"run/{name} leads out of the folder" in printed.text
    assert snapshot(tmp_path) == before
    with pytest.raises(RunFolderError):
        resume(run)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", [*FOLDERS, "run.json", "scores/part-00000.parquet", "replaced.partial/run.json"])
def test_overwriting_moves_nothing_out(made, tmp_path, home, name):
    run = linked(made, tmp_path, name, home)
    (tmp_path / "data.jsonl").write_bytes(DATA)
    before = snapshot(tmp_path)
    command = ("score", tmp_path / "data.jsonl", "--metrics", "rouge_l", "--no-report", "-o", run, "--overwrite")
    printed = mmeval(*command)
    assert printed.code == 1
    assert "leads out of the folder" in printed.text
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["results.json", "samples", "scores/part-00000.parquet", "report.html"])
def test_no_command_writes_or_reads_through_a_link(made, tmp_path, home, name):
    copy = received(made, home / "copy")
    (copy / "report.html").write_text("mine")
    run = linked(made, tmp_path, name, copy / name)
    received(made, tmp_path / "other")
    before = snapshot(home)
    for command in (("report", run), ("export", run, "--to", "csv", "-o", tmp_path / "t.csv"), ("verify", run)):
        printed = mmeval(*command)
        assert name == "report.html" or printed.code == 1, command
    assert mmeval("report", run).code == 1
    with pytest.raises(OutsideError):
        load_run(run).save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    assert snapshot(home) == before


@pytest.mark.parametrize(
    "name", ["samples", "scores", "state", "answers", "scratch", "run.json", "scores/part-00000.parquet"]
)
def test_loops_and_pipes_neither_hang_nor_end_in_a_traceback(made, tmp_path, name):
    for number, kind in enumerate(("loop", "pipe")):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = linked(made, folder, name, (run_name := name.rpartition("/")[2]))
        assert (run / name).readlink().name == run_name
        if kind == "pipe":
            (run / name).unlink()
            os.mkfifo(run / name)
        for command in (("score", "--resume", run), ("report", run), ("lint", run)):
            assert mmeval(*command).code in (0, 1), (kind, command)


def test_a_link_that_stays_inside_is_read_but_not_written_through(tmp_path):
    storage = LocalStorage(tmp_path / "run")
    storage.write_bytes("samples/a", b"1")
    (tmp_path / "run" / "scores").symlink_to("samples")
    assert storage.read_bytes("scores/a") == b"1"
    for change in (lambda: storage.write_bytes("scores/b", b"2"), lambda: storage.remove("scores/a")):
        with pytest.raises(RunFolderError, match="is a link, through which nothing is written or removed"):
            change()
    storage.remove("scores")  # the link, and not what it leads to
    assert storage.read_bytes("samples/a") == b"1"
    assert storage.names() == ["samples"]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "a/../../run2/x"])
def test_names_lead_nowhere_else(tmp_path, name):
    storage = LocalStorage(tmp_path / "run")
    storage.make()
    for action in (storage.exists, storage.read_bytes, storage.remove, lambda each: storage.write_bytes(each, b"")):
        with pytest.raises(OutsideError):
            action(name)


def test_the_folder_itself_may_be_a_link(made, tmp_path):
    run = received(made, tmp_path / "disk" / "run")
    (tmp_path / "run").symlink_to(run)
    assert mmeval("score", "--resume", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "report.html").is_file()


def test_leading_out_agrees_with_the_resolved_path(tmp_path):
    # Random trees of links: a path leads out if and only if one of its beginnings resolves to a place outside.
    random = Random(3)
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    targets = ["..", "../..", "a", "a/b", "../out", str(tmp_path / "out"), str(root / "a"), "link0", "link1", "nothing"]
    for number in range(6):
        place = root / random.choice(["", "a", "a/b"]) / f"link{number}"
        place.symlink_to(random.choice(targets))
    names = ["a", "b", "..", "x", *(f"link{number}" for number in range(6))]
    for _ in range(500):
        parts = random.choices(names, k=random.choice((1, 2, 3)))
        beginnings = ["/".join(parts[: end + 1]) for end in range(len(parts))]
        resolved = [os.path.realpath(root / beginning) for beginning in beginnings]
        expected = any(not (f"{path}/").startswith(f"{root}/") for path in resolved)
        assert (leading_out(root, "/".join(parts)) is not None) == expected, parts
