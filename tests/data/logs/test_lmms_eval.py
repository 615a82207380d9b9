"""Logs of lmms-eval. The fixtures are real; see tests/data/logs/makers/lmms_eval_logs.py for their tasks."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.data.logs.lmms_eval import FORMAT
from tests.data.logs.fixture_logs import LMMS_EVAL, log_of
from tests.data.logs.test_lm_eval import json_values
from tests.data.readers.reading import read


def write_log(folder, *lines, name="20261116_100000_samples_toy.jsonl"):
    path = folder / name
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def line(doc_id, **more):
    start = {"doc_id": doc_id, "target": "yes", "filtered_resps": "yes", "token_counts": [None]}
    return {**start, "doc_hash": "74234e98", "input": "Question?", "acc": 1.0, **more}


def test_a_value_that_is_an_object_has_its_score_and_details():
    samples, problems, _ = read(log_of(LMMS_EVAL, "toy_pope"))
    assert not problems.total
    assert [sample.id for sample in samples] == ["0", "1", "2", "3", "4"]  # doc_hash is the same for all
    second = samples[1]
    assert (second.prompt, second.generated_answer, second.references) == ("Is there a car?", "yes", ["no"])
    assert second.metadata["lmms-eval.pope_accuracy"] == 0
    assert second.metadata["doc.question_id"] == 1
    assert (second.metadata["input_tokens"], second.metadata["output_tokens"]) == (12, 3)


def test_the_references_are_in_the_value_of_a_caption_metric():
    first, _ = read(log_of(LMMS_EVAL, "toy_captions"))[0]
    assert first.references == ["a dog runs on the grass", "the dog is running in a field"]
    assert first.generated_answer == "a dog runs on grass"
    assert first.metadata["doc.image_id"] == 0
    assert not any(name.startswith("lmms-eval.") for name in first.metadata)


def test_reasoning_is_apart_and_filters_have_the_names_of_the_results():
    sky, grass, snow = read(log_of(LMMS_EVAL, "toy_colours"))[0]
    assert (sky.generated_answer, sky.metadata["reasoning"]) == ("The answer is blue", "Clear weather, not green.")
    assert sky.metadata["answer.colour"] == "blue"
    assert (sky.metadata["lmms-eval.exact_match_whole"], sky.metadata["lmms-eval.exact_match_colour"]) == (0, 1)
    assert grass.references == ["green"]  # not what `submission` has
    assert "reasoning" not in snow.metadata


def test_what_the_log_says_about_itself():
    info = FORMAT.info(log_of(LMMS_EVAL, "toy_pope"))
    assert (info.harness, info.version, info.model, info.task) == ("lmms-eval", None, "dummy", "toy_pope")
    accuracy, precision = info.scores
    assert (accuracy.own_mean, accuracy.own_count) == (0.6, 5)
    assert (precision.column, precision.aggregation) == ("lmms-eval.pope_precision", "precision")


def test_filters_without_results_are_numbered(tmp_path):
    lines = [line(0), line(1), line(0, acc=0.0), line(1, acc=0.0)]
    path = write_log(tmp_path, *lines)
    samples, _, _ = read(path)
    assert [score.column for score in FORMAT.info(path).scores] == ["lmms-eval.acc_1", "lmms-eval.acc_2"]
    assert (samples[1].metadata["lmms-eval.acc_1"], samples[1].metadata["lmms-eval.acc_2"]) == (1, 0)


def test_older_logs_nest_replies(tmp_path):
    nested = line(0, resps=[["The answer: yes"]], filtered_resps=["yes"])
    (sample,) = read(write_log(tmp_path, nested))[0]
    assert (sample.generated_answer, sample.metadata["answer.1"]) == ("The answer: yes", "yes")


def test_log_likelihoods_have_no_texts(tmp_path):
    (sample,) = read(write_log(tmp_path, line(0, filtered_resps=[["-2.0", "False"], ["-1.5", "True"]])))[0]
    assert sample.generated_answer is None
    assert (sample.metadata["log_likelihoods"], sample.metadata["chosen"]) == ([-2, -1.5], 1)


def test_media_of_the_input(tmp_path):
    (sample,) = read(write_log(tmp_path, line(0, input_media=["images/a.png", "images/b.png"])))[0]
    assert sample.images == ["images/a.png", "images/b.png"]


@given(st.sampled_from(sorted(line(0).keys() - {"doc_id"} | {"resps", "input_media"})), json_values)
def test_any_value_in_a_line_is_read_or_refused_with_a_problem(tmp_path_factory, key, value):
    path = write_log(tmp_path_factory.mktemp("any"), line(0), line(1, **{key: value}))
    FORMAT.info(path)
    samples, problems, _ = read(path)
    assert len(samples) == 2 or problems.total


def test_a_document_that_occurs_twice_is_a_duplicate(tmp_path):
    path = write_log(tmp_path, line(0), line(1), line(2), line(1))
    (problem,) = read(path)[1].kept
    assert (problem.code, problem.line, problem.id) == ("DUPLICATE", 4, "1")
    assert "in lines 2 and 4" in problem.message
    assert [score.column for score in FORMAT.info(path).scores] == ["lmms-eval.acc"]


def test_one_document_many_times_is_a_duplicate(tmp_path):
    problems = read(write_log(tmp_path, *[line(0)] * 400))[1]
    assert (problems.total, {problem.code for problem in problems.kept}) == (399, {"DUPLICATE"})


def test_more_lines_than_the_results_have_filters_are_duplicates(tmp_path):
    path = write_log(tmp_path, line(0), line(1), line(0), line(1))
    results = {"results": {"toy": {"acc,none": 1.0, "acc_stderr,none": 0.1}}}
    (tmp_path / "20261116_100000_results.json").write_text(json.dumps(results))
    assert [problem.code for problem in read(path)[1].kept] == ["DUPLICATE", "DUPLICATE"]


def test_a_document_with_more_lines_than_filters_is_a_duplicate(tmp_path):
    path = write_log(tmp_path, *[line(0), line(1), line(2)] * 2, line(1))
    (problem,) = read(path)[1].kept
    assert (problem.code, problem.line) == ("DUPLICATE", 7)
    assert "more often than there are filters (2), in lines 2, 5 and 7" in problem.message


def test_a_document_without_a_line_for_a_filter_is_unmatched(tmp_path):
    (problem,) = read(write_log(tmp_path, *[line(0), line(1), line(2)] * 2, line(3)))[1].kept
    assert (problem.code, problem.line) == ("UNMATCHED", 7)
