"""The classification report: derived from a finished run, and stored if the composite is a macro F1."""

from __future__ import annotations

import json

import msgspec
import pytest

from multimodal_eval import evaluate, load_run
from multimodal_eval.analysis import classification
from multimodal_eval.analysis.classification import classification_of, derived_classification
from multimodal_eval.contests.clarity.contest import prepare, score_tasks
from multimodal_eval.core.errors import RunFolderError
from tests.contests.clarity.make_data import FOLDER
from tests.edited_runs import stored_json, write_json

ROWS = [
    {"id": "1", "generated_answer": "red", "expected_answer": "red", "annotations": {"a": "red", "b": "blue"}},
    {"id": "2", "generated_answer": "red", "expected_answer": "blue", "annotations": {"a": "blue", "b": "red"}},
]
TASK = {"colours": {"metrics": ["f1_strict", "f1_any_match"], "headline": "f1_any_match"}}


def test_a_run_whose_composite_is_a_macro_f1_stores_the_report(tmp_path):
    run = evaluate(ROWS, task="colours", tasks=TASK, output=tmp_path / "run")
    stored = stored_json(tmp_path / "run" / "classification.json")
    report = classification_of(run)
    assert stored == json.loads(msgspec.json.encode(report))
    assert (report.task, report.files, report.official) == ("colours", [], "any_match")
    # Both predictions match an annotator: red 1, blue 0.
    assert report.scores["any_match"].macro_f1.value == run["f1_any_match"]["value"] == 0.5
    assert report.scores["strict"].confusion_matrix == [[0, 1], [0, 1]]  # blue, red


def test_other_runs_with_labels_derive_the_report_on_request(tmp_path):
    run = evaluate(ROWS, task="classification", output=tmp_path / "run")
    assert not (tmp_path / "run" / "classification.json").exists()
    assert classification_of(run).official == "strict"  # there are gold labels
    bare = [{key: value for key, value in row.items() if key != "expected_answer"} for row in ROWS]
    assert classification_of(evaluate(bare, task="classification")).official == "any_match"
    texts = [{"id": "1", "generated_answer": "a dog", "references": ["a dog"]}]
    assert classification_of(evaluate(texts, metrics="rouge_l")) is None


def test_the_report_of_clarity_is_computed_once_after_the_run(tmp_path, monkeypatch):
    calls = []

    def counted(run):
        calls.append(run.results["composite"]["value"])  # the run has its results
        return derived_classification(run)

    monkeypatch.setattr(classification, "derived_classification", counted)
    prepared = prepare(FOLDER / "test.csv", FOLDER / "alba.csv")
    assert calls == []
    runs = score_tasks(prepared, tmp_path / "runs")
    assert len(calls) == 2
    reports = {name: classification_of(run) for name, run in runs.items()}
    assert len(calls) == 2
    for name, run in runs.items():
        (tmp_path / "runs" / name / "classification.json").unlink()
        assert classification_of(load_run(run.path)) == reports[name]


def test_a_file_that_is_not_a_report(tmp_path):
    run = evaluate(ROWS, task="colours", tasks=TASK, output=tmp_path / "run")
    write_json(tmp_path / "run" / "classification.json", {"task": 3})
    with pytest.raises(RunFolderError, match=r"classification.json cannot be read"):
        classification_of(run)
