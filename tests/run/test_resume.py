"""A run that was stopped resumes to the same bytes, or says why it cannot."""

from __future__ import annotations

import json

import msgspec
import pytest

import multimodal_eval
from multimodal_eval import evaluate, load_run, metric, rescore, resume
from multimodal_eval.core.errors import InputError, RunFolderError
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run import execute
from multimodal_eval.run import plan as planning
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.engine.base import Inline
from multimodal_eval.run.evaluate import planned
from tests.run.caption_samples import METRICS, PLUGIN, samples
from tests.run.fuse import Fuse, StoppedError


@pytest.mark.parametrize("burning", range(10))
def test_a_run_stopped_anywhere_resumes_to_the_same_bytes(tmp_path, monkeypatch, burning):
    monkeypatch.setattr(planning, "PART_SIZE", 13)  # 4 parts to fit, 1 bucket to merge, 4 parts to score
    data = tmp_path / "data.jsonl"
    data.write_text(
        "".join(
            json.dumps({"id": s.id, "references": s.references, "prediction": s.generated_answer}) + "\n"
            for s in samples()
        )
    )
    whole = evaluate(data, metrics=METRICS, plugins=[PLUGIN], output=tmp_path / "whole")
    with monkeypatch.context() as patched:
        fuse = Fuse(burning if burning < 5 else burning - 5)
        patched.setattr("multimodal_eval.run.engine.local.Local", lambda workers: fuse)
        if burning >= 5:  # let fitting through, break while scoring
            original = multimodal_eval.run.execute.fit  # type: ignore[attr-defined]
            patched.setattr(
                "multimodal_eval.run.execute.fit",
                lambda worker, info, executor, progress: original(worker, info, Inline(), progress),
            )
        if burning < 9:
            with pytest.raises(StoppedError):
                evaluate(data, metrics=METRICS, plugins=[PLUGIN], output=tmp_path / "broken")
        else:
            evaluate(data, metrics=METRICS, plugins=[PLUGIN], output=tmp_path / "broken")
    resumed = resume(tmp_path / "broken")
    assert (tmp_path / "broken" / "results.json").read_bytes() == (tmp_path / "whole" / "results.json").read_bytes()
    for kind in ("samples", "scores"):
        for part in range(4):
            assert resumed.folder.part(kind, part).read_bytes() == whole.folder.part(kind, part).read_bytes()


def test_resuming_with_another_metric_behind_the_name_is_refused(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    info["state"] = "scoring"
    info["signatures"]["cider"]["text"] += "|older"
    (tmp_path / "run" / "run.json").write_text(json.dumps(info))
    with pytest.raises(RunFolderError, match="older"):
        resume(tmp_path / "run")


def test_samples_in_memory_cannot_be_read_again(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**info, "state": "reading"}))
    with pytest.raises(RunFolderError, match="start it again"):
        resume(tmp_path / "run")


def test_a_resumed_run_that_was_done_is_left_alone(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    resume(tmp_path / "run")
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_a_run_that_is_being_worked_on_is_left_alone(tmp_path):
    run = evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**info, "state": "scoring"}))
    with run.folder.locked(), pytest.raises(RunFolderError, match="another process"):
        resume(tmp_path / "run")
    resume(tmp_path / "run")


def test_a_resumed_run_whose_input_is_refused_keeps_its_folder(tmp_path):
    """What run.json says of its state never decides that a folder is deleted."""
    data = tmp_path / "data.jsonl"
    data.write_text('{"id": "a", "generated_answer": "x", "references": ["x"]}\n')
    evaluate(data, metrics=["rouge_l"], output=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    folder.write_info(msgspec.structs.replace(folder.read_info(), state="reading"))
    (tmp_path / "run" / "notes.txt").write_text("mine")
    data.write_text("not JSON\n")
    with pytest.raises(InputError):
        resume(tmp_path / "run")
    assert (tmp_path / "run" / "notes.txt").exists()


def test_options_that_json_turns_into_lists_are_the_same_options(tmp_path):
    @metric("listed", needs=("generated_answer",), version="1")
    def listed(sample, words=("a", "b")):
        return float(len(words))

    plan, source = planned(overlaid(None, metrics=["listed"]), samples(), None)
    with pytest.raises(StoppedError):
        execute.start(plan, source, tmp_path / "run", Fuse(0))
    assert resume(tmp_path / "run")["listed"]["value"] == 2.0
    again = rescore(tmp_path / "run", {"metrics": ["listed"]}, output=tmp_path / "again")
    assert again.info.signatures == load_run(tmp_path / "run").info.signatures
