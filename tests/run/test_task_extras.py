"""Metrics beside the composite of a task: computed if the samples have references."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import Sample, evaluate, load_run, rescore, resume
from multimodal_eval.evaluation.metrics_registry import TASK_METRICS, evaluate_sample
from multimodal_eval.evaluation.tasks_config import TASKS
from tests.edited_runs import write_json

EXTRAS = ["vqa_accuracy", "exact_match"]
SETTINGS = {"task": "vqa", "skip_unavailable": True}


def rows(**fields):
    return [Sample(id=str(n), question="Which?", generated_answer=text, **fields) for n, text in enumerate("abc")]


def test_the_task_itself_stays():
    assert TASK_METRICS["vqa"] == ["clip_score", "semantic_similarity", "contextual_relevance"]
    assert set(TASKS["vqa"].weights) == set(TASK_METRICS["vqa"])


@pytest.mark.parametrize("fields", [{"references": ["a"]}, {"expected_answer": "a"}, {"caption": "a"}])
def test_a_run_computes_them_if_there_are_references(fields):
    run = evaluate(rows(**fields), **SETTINGS)
    assert {*EXTRAS} <= {*run.metrics}
    assert run["exact_match"]["value"] == pytest.approx(1 / 3)
    assert run["vqa_accuracy"]["value"] == pytest.approx(1 / 3)
    assert run.info.signatures["composite_score"].weights == TASKS["vqa"].weights


def test_a_run_without_references_leaves_them_out(tmp_path):
    run = evaluate(rows(), **SETTINGS, output=tmp_path / "run")
    assert not {*EXTRAS} & {*run.metrics, *run.info.metrics, *run.info.signatures, *run.info.bounds, *run.info.means}
    assert not {name.partition(".")[0] for name in run.scores().column_names} & {*EXTRAS}
    info = json.loads((run.path / "run.json").read_text())
    for part in (run.path / "scores").iterdir():
        part.unlink()
    write_json(run.path / "run.json", {**info, "state": "scoring", "finished": None})
    assert resume(run.path).results == run.results
    assert not {*EXTRAS} & {*rescore(load_run(run.path), {"by": ["id"]}).metrics}


def test_metrics_that_were_named_are_computed_anyway():
    run = evaluate(rows(), task="vqa", metrics=["exact_match"], allow_empty=True)
    assert (run.metrics, run["exact_match"]["n_scored"]) == (["exact_match"], 0)
    named = {"vqa": {"metrics": ["contextual_relevance", "exact_match"], "weights": {"exact_match": 1}}}
    assert evaluate(rows(references=["a"]), **SETTINGS, tasks=named).metrics == ["exact_match", "contextual_relevance"]


def test_an_interrupted_run_of_an_earlier_version_resumes_without_them(tmp_path):
    run = evaluate(rows(references=["a"]), **SETTINGS, output=tmp_path / "run")
    info = json.loads((run.path / "run.json").read_text())
    for name in EXTRAS:  # as it was stored
        info["metrics"].remove(name)
        del info["signatures"][name], info["bounds"][name]
    info["means"] = [name for name in info["means"] if name not in EXTRAS]
    for part in (run.path / "scores").iterdir():
        part.unlink()
    write_json(run.path / "run.json", {**info, "state": "scoring", "finished": None})
    assert not {*EXTRAS} & {*resume(run.path).metrics}


def test_one_sample():
    result = evaluate_sample(Sample(id="1", generated_answer="a", references=["a", "b"]), "vqa")
    assert (result["exact_match"], result["status"]["exact_match"]) == (1.0, "ok")
    assert "exact_match" not in evaluate_sample(Sample(id="1", generated_answer="a"), "vqa")
    assert "exact_match" not in evaluate_sample(Sample(id="1", generated_answer="a", references=["a"]), "captioning")
