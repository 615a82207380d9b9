"""Logs of evalscope. The fixtures are real; see tests/data/logs/makers/evalscope_logs.py for their tasks."""

from __future__ import annotations

import json
import shutil

import pytest

from multimodal_eval import import_log
from multimodal_eval.data.logs.evalscope import FORMAT
from multimodal_eval.data.logs.recognised import recognised
from tests.data.logs.fixture_logs import EVALSCOPE
from tests.data.readers.reading import read

CHOICES = EVALSCOPE / "choices" / "reviews" / "mockllm" / "general_mcq_toy.jsonl"
ANSWERS = EVALSCOPE / "answers" / "reviews" / "mockllm" / "general_qa_toy.jsonl"


def write_review(folder, **changes):
    score = {"value": {"acc": 1.0}, "status": "success", "prediction": "B", **changes.pop("score", {})}
    review = {"index": 0, "target": ["B"], "messages": [], "sample_score": {"score": score}, **changes}
    path = folder / "toy.jsonl"
    path.write_text(json.dumps(review) + "\n")
    return path


def test_repeated_questions_are_epochs_of_a_group():
    samples, problems, _ = read(CHOICES)
    assert not problems.total
    assert [(sample.id, sample.group, sample.epoch) for sample in samples] == [
        ("0#1", "0", 1),
        ("0#2", "0", 2),
        ("1#1", "1", 1),
        ("1#2", "1", 2),
        ("2#1", "2", 1),
        ("2#2", "2", 2),
    ]
    first = samples[0]
    assert first.question.startswith("Which planet is the red one?")
    assert (first.generated_answer, first.metadata["extracted_answer"], first.references) == ("ANSWER: B", "B", ["B"])
    assert (first.metadata["input_tokens"], first.metadata["output_tokens"]) == (20, 3)  # of the predictions


def test_the_mean_is_that_of_the_report_which_rounds_it():
    (mean,) = import_log(EVALSCOPE / "choices", progress=False).means
    # B, C, B, B, D, A for B, B, B, B, A, A: four of six are right.
    assert mean.metric == "evalscope.accuracy"
    assert mean.entry.value == pytest.approx(4 / 6)
    assert "rounded" in mean.explanation


def test_the_zero_of_a_metric_that_failed_is_not_a_score():
    text = ANSWERS.read_text()
    assert '"bleu-1": 0.0' in text
    assert "punkt_tab" in text
    samples, _, _ = read(ANSWERS)
    assert not any("bleu" in name for name in samples[0].metadata)
    info = FORMAT.info(ANSWERS)
    assert [score.column for score in info.scores][:2] == ["evalscope.Rouge-1-R", "evalscope.Rouge-1-P"]
    (note,) = info.notes
    assert "bleu-1, bleu-2, bleu-3, bleu-4" in note
    assert "punkt_tab" in note


def test_every_score_has_the_mean_of_the_report():
    means = import_log(EVALSCOPE / "answers", progress=False).means
    assert len(means) == 9
    # 'Paris' and 'It is bright red' for 'It is red': precision 1 and 3/4
    assert {mean.metric: mean.entry.value for mean in means}["evalscope.Rouge-1-P"] == 0.875
    assert {mean.explanation.partition(",")[2].strip() or mean.explanation for mean in means} <= {
        "mean as in its results",
        "which is rounded",
    }


def test_an_image_is_carried_over():
    (sample,), _, _ = read(EVALSCOPE / "images")
    assert sample.question == "Which colour?"
    assert sample.image.startswith("data:image/png;base64,iVBORw0KGgo")


def test_predictions_alone_are_samples_without_scores(tmp_path):
    folder = tmp_path / "predictions"
    shutil.copytree(EVALSCOPE / "answers" / "predictions", folder)
    samples, _, _ = read(folder)
    assert [sample.generated_answer for sample in samples] == ["Paris", "It is bright red"]
    assert not any(name.startswith("evalscope.") for name in samples[0].metadata)


def test_a_prediction_without_review_is_a_failure(tmp_path):
    shutil.copytree(EVALSCOPE / "answers", tmp_path / "run")
    (reviews,) = (tmp_path / "run" / "reviews").rglob("*.jsonl")
    reviews.write_text(reviews.read_text().splitlines()[0] + "\n")
    (predictions,) = (tmp_path / "run" / "predictions").rglob("*.jsonl")
    lines = [json.loads(line) for line in predictions.read_text().splitlines()]
    lines[1]["model_output"] |= {"choices": [], "error": "connection refused"}
    predictions.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    samples, _, _ = read(tmp_path / "run")
    assert [(sample.id, sample.error) for sample in samples] == [("0", None), ("1", "connection refused")]


def test_a_score_that_is_not_usable_is_left_out(tmp_path):
    (sample,), _, _ = read(write_review(tmp_path, score={"status": "parse_error"}))
    assert "evalscope.acc" not in sample.metadata
    assert sample.metadata["score_status"] == "parse_error"


def test_a_target_that_is_text_is_from_older_versions(tmp_path):
    (sample,), _, _ = read(write_review(tmp_path, target="B", input="Which?"))
    assert (sample.references, sample.question) == (["B"], "Which?")


def test_a_first_line_with_a_large_image_is_recognised(tmp_path):
    parts = [{"type": "image", "image": "data:image/png;base64," + "A" * 100_000}, {"type": "text", "text": "Which?"}]
    path = write_review(tmp_path, messages=[{"role": "user", "content": parts}])
    assert recognised(path) is FORMAT
    (sample,), problems, _ = read(path)
    assert not problems.total
    assert len(sample.image) > 100_000


def test_a_line_of_another_shape_is_named(tmp_path):
    path = write_review(tmp_path)
    path.write_text(path.read_text() + '{"index": 1, "sample_score": 3}\n')
    _, problems, _ = read(path)
    (problem,) = problems.kept
    assert (problem.code, problem.line) == ("TYPE", 2)
    assert "not a review of evalscope" in problem.message


def test_other_columns_are_not_taken_for_misspelt_fields():
    _, _, summary = read(CHOICES)
    assert "extracted_answer" in summary.metadata
    assert summary.notes == []
