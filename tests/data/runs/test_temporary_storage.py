"""Files of a temporary folder: in memory until somebody needs them, then all on the disk."""

from __future__ import annotations

import pickle
import shutil

import pyarrow.parquet as pq
import pytest

from multimodal_eval import Run, Sample, evaluate, load_run, metric, rescore, resume
from multimodal_eval.core.errors import OpenSamplesError
from multimodal_eval.data.runs import run_folder
from multimodal_eval.data.runs.storage import TemporaryStorage
from tests.parts import set_part_size

SAMPLES = [
    Sample(id=str(number), generated_answer=f"a {number}", references=[f"a {number % 3}"]) for number in range(30)
]


def on_disk(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_nothing_is_written_until_it_is_needed(tmp_path):
    storage = TemporaryStorage(tmp_path / "run")
    storage.write_bytes("run.json", b"{}")
    storage.write_later("scores/part", lambda path: path.write_bytes(b"table"))
    assert not storage.path.exists()
    assert storage.files() == ["run.json", "scores/part"]
    with storage.local_copy("scores/part") as path:  # only this file
        assert path.read_bytes() == b"table"
    assert on_disk(storage.path) == ["scores/part"]
    assert storage.address == str(storage.path)
    assert on_disk(storage.path) == ["run.json", "scores/part"]
    storage.write_bytes("more", b"x")
    assert (storage.path / "more").read_bytes() == b"x"
    assert not storage.defers


def test_large_contents_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr("multimodal_eval.data.runs.storage._MOST_BYTES", 10)
    storage = TemporaryStorage(tmp_path / "run")
    for _ in range(5):
        storage.write_bytes("same", b"12345678")  # replaces the old content
    assert storage.defers
    storage.write_bytes("other", b"123")
    assert on_disk(storage.path) == ["other", "same"]


def test_a_failing_writer_is_tried_again(tmp_path):
    storage, failures = TemporaryStorage(tmp_path / "run"), [OSError("disk full")]

    def write(path):
        if failures:
            raise failures.pop()
        path.write_bytes(b"table")

    storage.write_later("part", write)
    with pytest.raises(OSError, match="disk full"):
        storage.sync()
    storage.sync()
    assert storage.read_bytes("part") == b"table"


def scratch_of(run):
    return run.folder.storage.path


def test_a_small_run_is_in_memory_until_its_path_is_asked_for(tmp_path):
    run = evaluate(SAMPLES, metrics=["cider_d"])
    expected = evaluate(SAMPLES, metrics=["cider_d"], output=tmp_path / "run")
    assert not scratch_of(run).exists()
    assert run.results == expected.results
    assert run.lint() == expected.lint()
    assert run.scores().equals(expected.scores())
    assert list(run.samples()) == SAMPLES
    assert not scratch_of(run).exists()
    assert on_disk(run.path) == on_disk(expected.path)
    for name in ("samples", "scores"):
        stored = [each.path / name / "part-00000.parquet" for each in (run, expected)]
        assert pq.read_table(stored[0]).equals(pq.read_table(stored[1]))
    assert load_run(run.path).results == expected.results
    scratch = scratch_of(run).parent
    del run
    assert not scratch.exists()


@pytest.mark.parametrize(
    "needed", [lambda run: run.location, pickle.dumps, Run.write_jsonl], ids=["location", "pickle", "jsonl"]
)
def test_every_way_to_the_files_finds_them(needed):
    run = evaluate(SAMPLES, metrics=["exact_match"])
    needed(run.folder if needed is pickle.dumps else run)
    assert {"run.json", "results.json", "lint.json", "scores/part-00000.parquet"} <= set(on_disk(scratch_of(run)))


def test_a_saved_copy_and_a_rescored_run_have_all_files(tmp_path):
    run = evaluate(SAMPLES, metrics=["exact_match"])
    assert run.save(tmp_path / "copy").results == run.results
    again = rescore(evaluate(SAMPLES, metrics=["exact_match"]), {"metrics": ["exact_match", "rouge_l"]})
    assert list(again.samples()) == SAMPLES
    assert again["exact_match"] == run["exact_match"]


def test_a_run_of_several_or_large_parts_is_on_the_disk(monkeypatch):
    set_part_size(monkeypatch, 10)
    run = evaluate(SAMPLES, metrics=["exact_match"])
    assert len([name for name in on_disk(scratch_of(run)) if name.startswith("scores/")]) == 3
    set_part_size(monkeypatch, 100)
    monkeypatch.setattr(run_folder, "_SMALL", 10)
    assert len(on_disk(scratch_of(evaluate(SAMPLES, metrics=["exact_match"])))) > 4


def test_open_samples_can_be_scored_later_from_the_temporary_folder(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    answers = ["no answer"]

    @metric("asked", needs=("generated_answer",), version="1")
    def asked(sample):
        if sample.id == "7" and answers:
            raise TimeoutError("no answer")
        return 1.0

    with pytest.raises(OpenSamplesError, match="mmeval score --resume") as refused:
        evaluate(SAMPLES, metrics=["asked"])
    folder = str(refused.value).partition("--resume ")[2].partition(";")[0]
    answers.clear()
    assert resume(folder)["asked"]["n_scored"] == len(SAMPLES)
    shutil.rmtree(folder)
