"""An interrupted run resumes to the same bytes, or reports why it cannot."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from multimodal_eval import Sample, evaluate, load_run, metric, rescore, resume
from multimodal_eval.core.errors import InputError, RunFolderError
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.edited_runs import accept_changes, rewrite_json, write_json
from tests.parts import set_part_size
from tests.registry_state import restored_registries
from tests.run.caption_samples import METRICS, PLUGIN, samples
from tests.run.stopping_executor import StoppedError, stopping

ROUND = {"metrics": METRICS, "plugins": [PLUGIN]}  # other numbers of workers: test_local.py


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing stopped, and its data beside it: 4 parts to fit, 1 bucket to merge, 4 parts to score."""
    folder = tmp_path_factory.mktemp("whole")
    rows = [{"id": s.id, "references": s.references, "prediction": s.generated_answer} for s in samples()]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.MonkeyPatch.context() as patch, restored_registries():
        set_part_size(patch, 13)
        evaluate(folder / "data.jsonl", output=folder / "run", workers=1, **ROUND)
    return folder


UNREAD: dict[str, Any] = {"state": "reading", "finished": None, "parts": [], "signatures": {}}


@pytest.mark.parametrize("items", range(9))
def test_a_run_stopped_anywhere_resumes_to_the_same_bytes(tmp_path, monkeypatch, whole, items):
    set_part_size(monkeypatch, 13)
    with pytest.raises(StoppedError):
        evaluate(whole / "data.jsonl", output=tmp_path / "broken", engine=stopping(items), **ROUND)
    resumed = resume(tmp_path / "broken", plugins=[PLUGIN], workers=1)
    assert (tmp_path / "broken" / "results.json").read_bytes() == (whole / "run" / "results.json").read_bytes()
    for kind in ("samples", "scores"):
        for part in range(4):
            expected = RunFolder(whole / "run").part(kind, part).read_bytes()
            assert resumed.folder.part(kind, part).read_bytes() == expected


def test_resuming_with_a_changed_metric_is_refused(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    info["state"], info["finished"] = "scoring", None
    info["signatures"]["cider"]["text"] += "|older"
    write_json(tmp_path / "run" / "run.json", info)
    with pytest.raises(RunFolderError, match="older"):
        resume(tmp_path / "run")


def test_samples_in_memory_cannot_be_read_again(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    write_json(tmp_path / "run" / "run.json", {**info, **UNREAD})
    with pytest.raises(RunFolderError, match="Start a new run"):
        resume(tmp_path / "run")


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    resume(tmp_path / "run")
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_a_run_in_use_by_another_process_is_refused(tmp_path):
    run = evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    write_json(tmp_path / "run" / "run.json", {**info, "state": "scoring", "finished": None})
    with run.folder.locked(), pytest.raises(RunFolderError, match="another process"):
        resume(tmp_path / "run")
    resume(tmp_path / "run")


def test_a_resumed_run_whose_input_is_refused_keeps_its_folder(tmp_path):
    """The state in run.json alone never causes a folder to be deleted."""
    data = tmp_path / "data.jsonl"
    data.write_text('{"id": "a", "generated_answer": "x", "references": ["x"]}\n')
    evaluate(data, metrics=["rouge_l"], output=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    folder.write_info(msgspec.structs.replace(folder.read_info(), **UNREAD))
    (tmp_path / "run" / "notes.txt").write_text("mine")
    data.write_text("not JSON\n")
    with pytest.raises(InputError):
        resume(tmp_path / "run")
    assert (tmp_path / "run" / "notes.txt").exists()


def test_tuple_options_are_equal_to_the_lists_in_json(tmp_path):
    @metric("listed", needs=("generated_answer",), version="1")
    def listed(sample, words=("a", "b")):
        return float(len(words))

    with pytest.raises(StoppedError):
        evaluate(samples(), metrics=["listed"], output=tmp_path / "run", engine=stopping(0))
    assert resume(tmp_path / "run")["listed"]["value"] == 2.0
    again = rescore(tmp_path / "run", {"metrics": ["listed"]}, output=tmp_path / "again")
    assert again.info.signatures == load_run(tmp_path / "run").info.signatures


def test_exchanged_parts_of_scores_are_refused(tmp_path, monkeypatch):
    set_part_size(monkeypatch, 2)
    rows = [Sample(id=str(n), generated_answer="a", expected_answer="ab"[n % 2]) for n in range(4)]
    evaluate(rows, metrics=["exact_match"], output=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    for part, table in enumerate(reversed([folder.read_part("scores", part) for part in (0, 1)])):
        folder.write_part("scores", part, table)
    accept_changes(tmp_path / "run")
    rewrite_json(tmp_path / "run" / "run.json", lambda info: info.update(state="scoring", finished=None))
    with pytest.raises(RunFolderError, match="are not those of the input, in its order: parts have been exchanged"):
        resume(tmp_path / "run")
