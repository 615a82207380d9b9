"""Logs of lighteval. Its tracker wrote the fixtures; see tests/data/logs/makers/lighteval_logs.py for their tasks."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from multimodal_eval import import_log, import_logs
from multimodal_eval.data.logs.lighteval import FORMAT
from multimodal_eval.data.logs.recognised import recognised
from tests.data.logs.fixture_logs import LIGHTEVAL
from tests.data.readers.reading import read

(SUM,) = LIGHTEVAL.rglob("details_toy_sum*.parquet")
(CHOICE,) = LIGHTEVAL.rglob("details_toy_choice*.parquet")


def write_row(folder, doc=None, response=None, metric=None):
    row = {
        "doc": {
            "query": "Which?",
            "choices": ["a", "b"],
            "gold_index": 1,
            "id": "7",
            "task_name": "toy",
            **(doc or {}),
        },
        "model_response": {"input": "Which?", "text": ["b"], **(response or {})},
        "metric": metric or {"em": 1.0},
    }
    path = folder / "details_toy_2026-11-16T10-00-00.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    return path


def test_the_replies_and_the_right_answers():
    samples, problems, _ = read(SUM)
    assert not problems.total
    second = samples[1]
    assert (second.question, second.references, second.choices) == ("2 + 7 =", ["9", "nine"], None)
    assert (second.generated_answer, second.metadata["other_answers"]) == ("nine", ["10"])
    assert second.metadata["reasoning"] == "Two and two."
    assert (second.metadata["input_tokens"], second.metadata["output_tokens"]) == (4, 2)
    assert (second.metadata["specific.level"], second.metadata["lighteval.em"]) == (1, 1.0)


def test_a_choice_by_log_probability():
    samples, _, _ = read(CHOICE)
    second = samples[1]  # -1 for black, -3 for white
    assert (second.choices, second.generated_answer, second.references) == (["black", "white"], "black", ["white"])
    assert second.metadata["log_likelihoods"] == [-1.0, -3.0]
    assert second.metadata["lighteval.acc"] == 0


def test_the_means_are_those_of_the_results():
    for path in (SUM, CHOICE):
        imported = import_log(path, progress=False)
        assert {mean.explanation for mean in imported.means} == {"mean as in its results"}
    (info,) = imported.logs
    assert (info.model, info.task, info.version) == ("toy/scripted", "toy_choice|0", None)


def test_each_task_of_a_folder_is_a_run(tmp_path):
    runs = [each.run for each in import_logs(LIGHTEVAL, output=tmp_path / "suite").imported]
    assert [len(run) for run in runs] == [3, 3]
    assert [run.info.imported.task for run in runs] == ["toy_choice|0", "toy_sum|2"]


def test_post_processed_text_is_the_answer(tmp_path):
    response = {"text": ["<think>hm</think>b"], "text_post_processed": ["b"], "reasonings": [None]}
    (sample,), _, _ = read(write_row(tmp_path, response=response))
    assert (sample.id, sample.generated_answer) == ("7", "b")


def test_a_metric_of_the_whole_task_is_named_and_left_out(tmp_path):
    path = write_row(tmp_path, metric={"bleu": {"golds": ["a"], "preds": ["b"]}, "em": True})
    info = FORMAT.info(path)
    assert [score.column for score in info.scores] == ["lighteval.em"]
    assert info.notes == ("bleu has no number per sample, only a score of all together",)


def test_no_reply_is_an_error(tmp_path):
    (sample,), _, _ = read(write_row(tmp_path, response={"text": []}))
    assert sample.error == "the log has no reply"


def test_other_tables_are_not_logs(tmp_path):
    pq.write_table(pa.table({"doc": ["a"], "metric": [1.0]}), tmp_path / "data.parquet")
    assert recognised(tmp_path / "data.parquet") is None
