"""`resume` recomputes just the damaged files of a run, and the run is then as it was."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from multimodal_eval import evaluate, load_run, rescore, resume
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import DamagedFileError, MissingFileError, RunFolderError
from multimodal_eval.data.runs.run import UncheckedRunWarning
from multimodal_eval.data.runs.run_folder import RunFolder, faults
from tests.edited_runs import without_checksums, write_json
from tests.parts import set_part_size
from tests.run.stopping_executor import StoppedError, stopping

COUNT = 30
SETTINGS: dict[str, Any] = {"metrics": ["cider", "rouge_l"], "progress": False}


@pytest.fixture
def data(tmp_path: Path, monkeypatch) -> Path:
    set_part_size(monkeypatch, 10)
    rows = [
        {"id": str(n), "references": [f"a dog number {n}", "two cats"], "generated_answer": f"a dog {n}"}
        for n in range(COUNT)
    ]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Path:
    evaluate(data, output=tmp_path / "run", **SETTINGS)
    return tmp_path / "run"


def content(folder: Path) -> dict[str, bytes]:
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    return {name: file.read_bytes() for name, file in sorted(files.items()) if name != "run.json"}


def flip(file: Path, place: int = -20) -> None:
    damaged = bytearray(file.read_bytes())
    damaged[place] ^= 4
    file.write_bytes(damaged)


def times(folder: Path) -> dict[str, int]:
    return {str(file.relative_to(folder)): file.stat().st_mtime_ns for file in folder.glob("s*/part-*")}


DAMAGED = [
    "scores/part-00001.parquet",
    "samples/part-00002.parquet",
    "state/cider.bin",
    "results.json",
    "lint.json",
    "manifest.json",
]


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_recomputed_and_no_other(run, name):
    before = content(run)
    flip(run / name)
    damaged_times = times(run)
    assert [fault.name for fault in faults(RunFolder(run))] == [name]
    resume(run, progress=False)
    assert content(run) == before
    assert not list(faults(RunFolder(run)))
    assert {part for part, time in times(run).items() if time != damaged_times[part]} == {name} & set(before) & {
        *damaged_times
    }


@pytest.mark.parametrize("size", [7, 16, 100])
@pytest.mark.parametrize("part", [0, 2])
def test_parts_of_another_version_keep_their_size(run, monkeypatch, size, part):
    before = content(run)
    set_part_size(monkeypatch, size)
    flip(run / "samples" / f"part-0000{part}.parquet")
    resume(run, progress=False)
    assert content(run) == before
    assert load_run(run).info.parts == [10, 10, 10]


@pytest.mark.parametrize("name", [*DAMAGED[:4], "manifest.json"])
def test_a_missing_file_is_recomputed(run, name):
    before = content(run)
    (run / name).unlink()
    resume(run, progress=False)
    assert content(run) == before


def test_a_finished_run_without_results_can_be_resumed_as_advised(run):
    before = content(run)
    (run / "results.json").unlink()
    with pytest.raises(RunFolderError, match=r"is not finished. Continue it with: mmeval score --resume"):
        load_run(run)
    assert resume(run, progress=False)["cider"]["n_scored"] == COUNT
    assert content(run) == before


@pytest.mark.parametrize("name", DAMAGED[:2])
def test_the_error_names_the_file_and_what_to_do(run, name):
    flip(run / name)
    opened = load_run(run)
    with pytest.raises(DamagedFileError, match=rf"run/{name} is damaged .*Recompute it with: mmeval score --resume"):
        list(opened.samples()) if name.startswith("samples") else opened.scores()
    (run / name).unlink()
    with pytest.raises(MissingFileError, match=rf"{name} is missing. Recompute it with: mmeval score --resume"):
        list(opened.samples()) if name.startswith("samples") else opened.scores()


def test_a_damaged_description_cannot_be_recomputed(run):
    flip(run / "run.json", 100)
    for act in (load_run, resume):
        with pytest.raises(DamagedFileError, match=r"run\.json is damaged .*Restore it from a copy"):
            act(run)


def test_parts_that_changed_places_are_noticed(run):
    first, second = run / "scores" / "part-00000.parquet", run / "scores" / "part-00001.parquet"
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"part-00000\.parquet"):
        load_run(run).scores()


def test_a_part_of_another_run_is_noticed(run, data, tmp_path):
    evaluate(data, output=tmp_path / "other", metrics=["cider", "rouge_l", "bleu"], progress=False)
    shutil.copy(tmp_path / "other" / "scores" / "part-00001.parquet", run / "scores")
    with pytest.raises(DamagedFileError, match=r"part-00001\.parquet"):
        load_run(run).scores()


def test_a_changed_input_is_refused(run, data):
    flip(run / "samples" / "part-00001.parquet")
    data.write_text(data.read_text().replace("cats", "cows"))
    before = content(run)
    with pytest.raises(RunFolderError, match=r"samples/part-00001.parquet is damaged, .*data\.jsonl has changed since"):
        resume(run, progress=False)
    assert content(run) == before


def test_samples_in_memory_cannot_be_read_again(tmp_path):
    evaluate([{"id": "1", "references": ["a"], "generated_answer": "a"}], metrics=["rouge_l"], output=tmp_path / "run")
    flip(tmp_path / "run" / "samples" / "part-00000.parquet")
    with pytest.raises(RunFolderError, match="they were in memory"):
        resume(tmp_path / "run", progress=False)


def test_scores_of_samples_that_are_stored_differently_are_computed_again(run, monkeypatch):
    """Another version of Arrow may write other bytes: then nobody knows whether the content is the same."""
    before = load_run(run).results
    flip(run / "samples" / "part-00001.parquet")
    scores = (run / "scores" / "part-00001.parquet").stat().st_mtime_ns
    write = pq.write_table
    monkeypatch.setattr(pq, "write_table", lambda *a, **k: write(*a, **k | {"compression": "gzip"}))
    assert resume(run, progress=False).results == before
    assert (run / "scores" / "part-00001.parquet").stat().st_mtime_ns != scores
    assert not list(faults(RunFolder(run)))


def test_a_damaged_rescored_run_is_repaired_from_the_old_scores(run, tmp_path):
    rescore(run, {"by": ["id"]}, output=tmp_path / "second", progress=False)
    before = content(tmp_path / "second")
    for name in ("scores/part-00000.parquet", "state/cider.bin"):
        file = tmp_path / "second" / name
        stored = file.read_bytes()
        file.unlink()  # it may be a hard link
        file.write_bytes(stored[:-1] + b"\0")
    resume(tmp_path / "second", progress=False)
    assert content(tmp_path / "second") == before


def test_rescoring_refuses_damaged_samples(run, tmp_path):
    flip(run / "samples" / "part-00000.parquet")
    with pytest.raises(DamagedFileError, match=r"samples/part-00000\.parquet"):
        rescore(run, {"by": ["id"]}, output=tmp_path / "second", progress=False)
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("burning", [5, 6])
def test_a_part_damaged_after_an_interruption_is_scored_again(data, tmp_path, burning):
    evaluate(data, output=tmp_path / "whole", **SETTINGS)
    with pytest.raises(StoppedError):  # after 3 parts are fitted, 1 bucket is merged, and some parts are scored
        evaluate(data, output=tmp_path / "broken", engine=stopping(burning), **SETTINGS)
    flip(tmp_path / "broken" / "scores" / "part-00000.parquet")
    assert [fault.name for fault in faults(RunFolder(tmp_path / "broken"))] == ["scores/part-00000.parquet"]
    resume(tmp_path / "broken", progress=False)
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


def test_a_part_without_a_checksum_is_scored_again(data, tmp_path):
    """A failure of the machine may lose the small files with the checksums."""
    evaluate(data, output=tmp_path / "whole", **SETTINGS)
    with pytest.raises(StoppedError):
        evaluate(data, output=tmp_path / "broken", engine=stopping(6), **SETTINGS)
    shutil.rmtree(tmp_path / "broken" / "checksums")
    resume(tmp_path / "broken", progress=False)
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


def test_a_run_of_an_earlier_version_opens_with_a_warning(run):
    results = load_run(run).results
    without_checksums(run)
    with pytest.warns(UncheckedRunWarning, match="from a version without checksums"):
        old = load_run(run)
    assert old.results == results
    assert len(old.scores()) == COUNT


@pytest.mark.parametrize("version", [1, 2])
def test_an_interrupted_run_of_an_earlier_version_is_started_again(run, version):
    results = (run / "results.json").read_bytes()
    without_checksums(run)
    (run / "results.json").unlink()
    (run / "scores" / "part-00001.parquet").unlink()
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(info | {"format": version, "state": "scoring", "finished": None}))
    before = content(run)
    with pytest.raises(RunFolderError, match=rf"\(format {version}\), which this version does not continue") as refused:
        resume(run, progress=False)
    assert content(run) == before
    again = shlex.split(str(refused.value).partition("Start it again: mmeval ")[2])
    done = CliRunner().invoke(cli, again)
    assert done.exit_code == 0, done.output
    assert (run.parent / f"{run.name}-again" / "results.json").read_bytes() == results


def test_resuming_keeps_the_paths_as_they_were_given(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = evaluate("data.jsonl", output="whole", **SETTINGS)
    assert whole.info.input[0].path == "data.jsonl"
    with pytest.raises(StoppedError):
        evaluate("data.jsonl", output="broken", engine=stopping(1), **SETTINGS)
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    again = resume(tmp_path / "broken", progress=False)
    assert again.info.input == whole.info.input


def test_a_run_stored_by_hand_is_complete_only_with_its_checksum(run):
    info = json.loads((run / "run.json").read_text())
    write_json(run / "run.json", info)
    assert len(load_run(run)) == COUNT
    (run / "run.json").write_text(json.dumps(info))
    with pytest.raises(DamagedFileError):
        load_run(run)
