"""Runs whose metrics use models: stored model names, resume and rescore."""

from __future__ import annotations

import json
import shutil

import msgspec
import pytest

from multimodal_eval import evaluate, load_run, rescore, resume
from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.metrics.clipscore import compute_clip_score
from multimodal_eval.models.source import find_model
from tests.contract.examples import IMAGES, png

ROWS = [{"id": s.id, "generated_answer": s.generated_answer, "references": s.reference_texts} for s in IMAGES]


def interrupted(run):
    """Reset the run to its state before its only part was scored."""
    folder = RunFolder(run.path)
    info = msgspec.structs.replace(folder.read_info(), state="scoring", finished=None)
    folder.write_info(info)
    shutil.rmtree(run.path / "scores")
    (run.path / "scores").mkdir()
    (run.path / "results.json").unlink()


def test_a_run_stores_the_model_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIP_MODEL_ID", "shapes-clip")
    run = evaluate(IMAGES, metrics=["clip_score"], output=tmp_path / "run")
    before = run["clip_score"]["value"]
    assert run.info.config.options == {"clip_score": {"model": "shapes-clip"}}
    interrupted(run)
    monkeypatch.delenv("CLIP_MODEL_ID")
    assert resume(tmp_path / "run")["clip_score"]["value"] == before


def test_a_changed_variable_changes_the_next_score(monkeypatch):
    monkeypatch.setenv("CLIP_MODEL_ID", "shapes-clip")
    assert compute_clip_score(IMAGES[0]) > 0
    monkeypatch.setenv("CLIP_MODEL_ID", "no/such")
    with pytest.raises(UnavailableError, match="mmeval fetch hf:no/such"):
        compute_clip_score(IMAGES[0])


def test_a_model_in_a_relative_folder_is_found_from_elsewhere(tmp_path, monkeypatch):
    shutil.copytree(find_model("shapes-clip").folder, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    run = evaluate(IMAGES, metrics=["clip_score"], options={"clip_score": {"model": "mine"}}, output="run")
    interrupted(load_run(tmp_path / "run"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resume(tmp_path / "run")["clip_score"]["n_scored"] == run["clip_score"]["n_scored"] == len(IMAGES)


def test_images_of_samples_in_memory_are_found_from_elsewhere(tmp_path, monkeypatch):
    for number in range(len(ROWS)):
        (tmp_path / f"{number}.png").write_bytes(png(number))
    monkeypatch.chdir(tmp_path)
    rows = [{**row, "image": f"{number}.png"} for number, row in enumerate(ROWS)]
    evaluate(rows, metrics=["clip_score"], options={"clip_score": {"model": "shapes-clip"}}, output="run")
    interrupted(load_run(tmp_path / "run"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert resume(tmp_path / "run")["clip_score"]["n_scored"] == len(ROWS)


@pytest.mark.weights
def test_rescoring_needs_no_model_for_stored_scores(weights, tmp_path, monkeypatch):
    old = evaluate(ROWS, metrics=["semantic_similarity", "cider"], output=tmp_path / "old")
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "empty"))
    tasks = {"mine": {"weights": {"semantic_similarity": 0.5, "cider": 0.5}}}
    new = rescore(old, {"task": "mine", "tasks": tasks}, output=tmp_path / "new")
    assert new["semantic_similarity"] == old["semantic_similarity"]
    assert new["composite_score"]["n_scored"] == len(ROWS)
    with pytest.raises(UnavailableError, match=r"contextual_relevance: .*mmeval fetch all-minilm-l6-v2"):
        rescore(old, {"metrics": ["semantic_similarity", "contextual_relevance"]}, output=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_rescoring_drops_options_of_removed_metrics(tmp_path):
    options = {"clip_score": {"model": "shapes-clip"}}
    old = evaluate(IMAGES, metrics=["clip_score", "rouge_l"], options=options, output=tmp_path / "old")
    new = rescore(old, {"metrics": ["rouge_l"]}, output=tmp_path / "new")
    assert "clip_score" not in new.info.config.options


def test_the_versions_of_relevant_packages_are_stored(tmp_path):
    run = evaluate(ROWS, metrics=["rouge_l"], output=tmp_path / "run")
    packages = {"numpy", "pyarrow", "msgspec", "onnxruntime", "tokenizers", "pillow"}
    assert packages < set(json.loads((tmp_path / "run" / "run.json").read_text())["versions"])
    assert run.info.versions["onnxruntime"]
