"""A run folder is replaced only on request, and never lost to an input that is refused."""

from __future__ import annotations

from uuid import uuid4

import pytest

from multimodal_eval import evaluate, load_run, rescore
from multimodal_eval.core.errors import InputError, RunFolderError
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import storage_at
from tests.cli.command_line import mmeval
from tests.run.stopping_executor import StoppedError, stopping

OLD = [{"id": "a", "generated_answer": "old", "references": ["new"]}]
NEW = [{"id": "a", "generated_answer": "new", "references": ["new"]}]
BAD = [{"id": "a", "generated_answer": "new", "references": []}]


def score(rows, place, **settings):
    return evaluate(rows, metrics=["exact_match"], output=place, progress=False, **settings)


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    if request.param == "local":
        return tmp_path / "run"
    pytest.importorskip("fsspec")
    return f"memory://{uuid4().hex}/run"


def content(place):
    storage = storage_at(place)
    return {name: storage.read_bytes(name) for name in storage.files()}


def test_a_finished_run_is_replaced(place):
    score(OLD, place).write_jsonl()
    run = score(NEW, place, overwrite=True)
    assert run["exact_match"]["value"] == 1.0
    assert load_run(place)["exact_match"]["value"] == 1.0
    assert not any("replaced" in name or name == "scores.jsonl" for name in content(place))


def test_an_unfinished_run_is_replaced(tmp_path):
    with pytest.raises(StoppedError):
        evaluate(OLD, metrics=["exact_match"], output=tmp_path / "run", engine=stopping(0))
    assert score(NEW, tmp_path / "run", overwrite=True)["exact_match"]["value"] == 1.0


def test_a_new_or_empty_folder_needs_no_old_run(tmp_path):
    assert score(NEW, tmp_path / "new", overwrite=True)["exact_match"]["value"] == 1.0
    (tmp_path / "empty").mkdir()
    assert score(NEW, tmp_path / "empty", overwrite=True)["exact_match"]["value"] == 1.0


@pytest.mark.parametrize("rows", [BAD, [], [{"id": "a", "generated_answer": "x"}], [{"id": "a"}]])
def test_a_refused_input_keeps_the_old_run(place, rows):
    score(OLD, place)
    before = content(place)
    with pytest.raises(InputError):
        score(rows, place, overwrite=True)
    assert content(place) == before
    assert load_run(place)["exact_match"]["value"] == 0.0


def test_without_the_setting_a_run_is_not_replaced(place):
    score(OLD, place)
    before = content(place)
    with pytest.raises(RunFolderError, match=r"already exists.*--overwrite.*--resume"):
        score(NEW, place)
    assert content(place) == before


@pytest.mark.parametrize(("name", "text"), [("notes.txt", "mine"), ("run.json", '{"mine": 1}'), ("run.json", "[")])
def test_other_folders_are_never_replaced(place, name, text):
    storage = storage_at(place)
    storage.make()
    storage.write(name, lambda path: path.write_text(text))
    with pytest.raises(RunFolderError, match="only a run folder can be overwritten"):
        score(NEW, place, overwrite=True)
    assert content(place) == {name: text.encode()}


def test_a_file_is_never_replaced(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(RunFolderError):
        score(NEW, tmp_path / "run", overwrite=True)
    assert (tmp_path / "run").read_text() == "mine"


def test_files_of_the_user_in_a_run_folder_stay(place):
    score(OLD, place)
    storage_at(place).write("notes.txt", lambda path: path.write_text("mine"))
    with pytest.raises(InputError):
        score(BAD, place, overwrite=True)
    score(NEW, place, overwrite=True)
    assert content(place)["notes.txt"] == b"mine"


def test_a_run_in_use_is_not_replaced(tmp_path):
    score(OLD, tmp_path / "run")
    before = content(tmp_path / "run")
    with RunFolder(tmp_path / "run").locked(), pytest.raises(RunFolderError, match="in use by another process"):
        score(NEW, tmp_path / "run", overwrite=True)
    assert content(tmp_path / "run") == before


def test_the_old_run_is_kept_until_the_new_one_is_scored(tmp_path):
    score(OLD, tmp_path / "run")
    with pytest.raises(StoppedError):
        evaluate(NEW, metrics=["exact_match"], output=tmp_path / "run", engine=stopping(0), overwrite=True)
    assert load_run(tmp_path / "run" / "replaced.partial")["exact_match"]["value"] == 0.0
    mmeval("score", "--resume", str(tmp_path / "run"))
    assert load_run(tmp_path / "run")["exact_match"]["value"] == 1.0
    assert not (tmp_path / "run" / "replaced.partial").exists()


def test_a_linked_folder_stays_a_link(tmp_path):
    score(OLD, tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    score(NEW, tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert load_run(tmp_path / "run")["exact_match"]["value"] == 1.0


def test_a_refused_input_leaves_an_empty_folder_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError):
        score(BAD, tmp_path / "mine")
    assert (tmp_path / "mine").is_dir()
    assert not any((tmp_path / "mine").iterdir())
    with pytest.raises(InputError):
        score(BAD, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_rescoring_may_replace_another_run_but_not_its_own(tmp_path):
    old = score(OLD, tmp_path / "old")
    score(NEW, tmp_path / "other")
    run = rescore(old, {"metrics": ["rouge_l"]}, output=tmp_path / "other", overwrite=True, progress=False)
    assert list(run.entries) == ["rouge_l"]
    before = content(tmp_path / "old")
    with pytest.raises(RunFolderError, match="cannot be replaced by a run that uses it"):
        rescore(old, {"metrics": ["rouge_l"]}, output=tmp_path / "old", overwrite=True)
    assert content(tmp_path / "old") == before


def test_the_command_line(tmp_path):
    data, output = tmp_path / "d.jsonl", str(tmp_path / "run")
    data.write_text('{"id": 1, "pred": "a dog", "references": ["a dog"]}\n')
    arguments = ["score", str(data), "--metrics", "exact_match", "-o", output]
    mmeval(*arguments)
    assert "--overwrite" in mmeval(*arguments, code=1).stderr
    mmeval(*arguments, "--overwrite")
    assert "--overwrite needs -o" in mmeval("score", str(data), "--metrics", "bleu", "--overwrite", code=2).stderr
    (tmp_path / "c.yaml").write_text("metrics: [rouge_l]")
    again = ["rescore", output, "--config", str(tmp_path / "c.yaml")]
    mmeval(*again, "-o", str(tmp_path / "second"))
    mmeval(*again, "-o", str(tmp_path / "second"), "--overwrite")
    assert "--overwrite needs -o" in mmeval(*again, "--overwrite", code=2).stderr
