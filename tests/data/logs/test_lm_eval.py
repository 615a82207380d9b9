"""Logs of lm-evaluation-harness. The fixtures are real; see tests/data/logs/makers/lm_eval_logs.py for their tasks."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import import_log
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.logs.lm_eval import FORMAT
from multimodal_eval.data.logs.sample_lines import MOST_FILTERS, references_of, split_reasoning
from tests.data.logs.fixture_logs import LM_EVAL, log_of
from tests.data.readers.reading import read


def write_log(folder, lines, name="samples_toy_2026-11-16T10-00-00.000000.jsonl"):
    path = folder / name
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def line(doc_id, reply="yes", filter="none", **more):
    arguments = {"gen_args_0": {"arg_0": "Question?", "arg_1": {"until": []}}}
    start = {"doc_id": doc_id, "doc": {}, "target": "yes", "arguments": arguments, "resps": [[reply]]}
    return {**start, "filtered_resps": [reply], "filter": filter, "metrics": ["acc"], "acc": 1.0, **more}


def test_two_filters_are_one_sample_with_two_scores():
    samples, problems, _ = read(log_of(LM_EVAL, "toy_sum"))
    assert not problems.total
    assert [sample.id for sample in samples] == ["0", "1", "2", "3", "4", "5"]
    second = samples[1]  # 10 + 7, answered "I think 17": the strict filter finds nothing, the flexible one 17
    assert (second.prompt, second.references) == ("Question: 10 + 7?\nAnswer:", ["17"])
    assert second.generated_answer == "I think 17"
    assert second.metadata["answer.strict-match"] == "[invalid]"
    assert second.metadata["answer.flexible-extract"] == "17"
    assert second.metadata["lm-eval.exact_match_strict-match"] == 0
    assert second.metadata["lm-eval.exact_match_flexible-extract"] == 1
    assert second.metadata["doc.a"] == 10


def test_a_choice_by_log_likelihood_has_the_most_likely_option():
    samples, _, _ = read(log_of(LM_EVAL, "toy_choice"))
    sky, snow = samples[:2]
    assert (sky.choices, sky.generated_answer, sky.references) == (["blue", "green"], "blue", ["blue"])
    assert sky.metadata["log_likelihoods"] == [-1, -2]
    # -2.0 for black, -2.5 for white, -3.0 for very red; the target is option 1
    assert (snow.generated_answer, snow.references) == ("black", ["white"])
    assert snow.metadata["lm-eval.acc"] == 0


def test_a_continuation_is_the_answer_if_the_model_would_write_it():
    first, second, _ = read(log_of(LM_EVAL, "toy_word"))[0]
    assert (first.generated_answer, first.references) == ("Paris", ["Paris"])
    assert (second.generated_answer, second.references) == (None, ["two"])


def test_references_that_were_written_as_python_source():
    samples, _, _ = read(log_of(LM_EVAL, "toy_captions"))
    assert samples[2].references == ['it\'s a "red" car', "a red car"]


def test_images_are_known_by_their_hashes():
    red, green = read(log_of(LM_EVAL, "toy_colour"))[0]
    assert (red.prompt, red.generated_answer, red.references) == ("Which colour is <image>?", "red", ["red"])
    assert [len(name) for name in red.metadata["image_hashes"]] == [64]
    assert red.metadata["image_hashes"] != green.metadata["image_hashes"]


def test_what_the_log_says_about_itself():
    info = FORMAT.info(log_of(LM_EVAL, "toy_word"))
    assert (info.harness, info.version, info.model, info.task) == ("lm-eval", "0.4.13", "toys/scripted", "toy_word")
    perplexity, accuracy = info.scores
    assert (perplexity.column, perplexity.aggregation) == ("lm-eval.loglikelihood", "perplexity")
    assert perplexity.direction == "higher"  # the values are log-likelihoods, although a lower perplexity is better
    assert (accuracy.own_mean, accuracy.own_count, accuracy.aggregation) == (pytest.approx(1 / 3), 3, None)


def test_a_metric_without_numbers_is_named():
    info = FORMAT.info(log_of(LM_EVAL, "toy_first_caption"))
    assert [score.column for score in info.scores] == ["lm-eval.exact_match"]
    assert info.notes == ("bleu has no number per sample, only a score of all together",)


def test_python_writes_nan(tmp_path):
    nan = json.dumps(line(1, acc=float("nan"), doc={"x": [float("inf")], "text": "NaN"}))
    samples, problems, _ = read(write_log(tmp_path, [line(0), nan]))
    assert not problems.total
    assert samples[1].metadata == {"lm-eval.acc": "NaN", "doc.x": [None], "doc.text": "NaN"}


def test_what_was_recorded_instead_of_a_score_is_the_reason(tmp_path):
    values = [1, "0.5", [1, 0], None, {"a": 1}, float("nan"), float("-inf"), "x" * 300]
    path = write_log(tmp_path, [json.dumps(line(number, acc=value)) for number, value in enumerate(values)])
    run = import_log(path, progress=False).run
    entry = run.entries["lm-eval.acc"]
    assert (entry.value, entry.n_scored, entry.unscored) == (1, 1, {"error": 7})
    reasons = run.scores().column("lm-eval.acc:reason").to_pylist()
    for reason, shown in zip(
        reasons[1:7], ["'\"0.5\"'", "'[1,0]'", "'null'", "'{\"a\":1}'", "nan", "-inf"], strict=True
    ):
        assert reason == f"the column 'lm-eval.acc' must be a number. Got {shown} instead."
    assert len(reasons[7]) < 150


def test_documents_may_mix_types(tmp_path):
    samples, problems, _ = read(write_log(tmp_path, [line(0, doc={"x": 1}), line(1, doc={"x": "one"})]))
    assert not problems.total
    assert [sample.metadata["doc.x"] for sample in samples] == [1, "one"]


def test_control_characters_in_the_name_of_a_column_are_escaped(tmp_path):
    (sample,) = read(write_log(tmp_path, [line(0, doc={"\0\x1b[2J": 1})]))[0]
    assert sample.metadata["doc.\\x00\\x1b[2J"] == 1


def test_older_logs_have_lists_of_arguments(tmp_path):
    (sample,) = read(write_log(tmp_path, [line(0, arguments=[["An old prompt", {"until": []}]])]))[0]
    assert (sample.prompt, sample.generated_answer) == ("An old prompt", "yes")


def test_options_that_differ_in_their_context(tmp_path):
    # As in Winogrande: the continuation is the same, the contexts differ.
    arguments = {
        "gen_args_0": {"arg_0": "Ann was", "arg_1": " tall."},
        "gen_args_1": {"arg_0": "Bob was", "arg_1": " tall."},
    }
    replies = [["-2.0", "False"], ["-1.0", "False"]]
    (sample,) = read(write_log(tmp_path, [line(0, arguments=arguments, filtered_resps=replies, target="0")]))[0]
    assert (sample.choices, sample.generated_answer, sample.references) == (
        ["Ann was", "Bob was"],
        "Bob was",
        ["Ann was"],
    )


def test_a_perplexity_of_a_document_has_no_answer(tmp_path):
    rolling = line(0, arguments={"gen_args_0": {"arg_0": "A text."}}, resps=[["-12.5"]], filtered_resps=["-12.5"])
    (sample,) = read(write_log(tmp_path, [rolling]))[0]
    assert sample.generated_answer is None


def test_a_log_likelihood_may_be_infinite(tmp_path):
    arguments = {"gen_args_0": {"arg_0": "It is", "arg_1": " a"}, "gen_args_1": {"arg_0": "It is", "arg_1": " b"}}
    replies = [["-inf", "False"], ["-3.5", "False"]]
    (sample,) = read(write_log(tmp_path, [line(0, arguments=arguments, filtered_resps=replies, target="1")]))[0]
    assert (sample.generated_answer, sample.metadata["log_likelihoods"]) == ("b", [None, -3.5])


def test_several_replies_and_reasoning(tmp_path):
    lines = [line(0, resps=[["yes", "no"]]), line(1, reply="<think>Hm.</think>\nno")]
    first, second = read(write_log(tmp_path, lines))[0]
    assert (first.generated_answer, first.metadata["replies"]) == ("yes", ["yes", "no"])
    assert (second.generated_answer, second.metadata["reasoning"]) == ("no", "Hm.")


def test_filters_with_different_documents_are_a_problem(tmp_path):
    _, problems, _ = read(write_log(tmp_path, [line(0, filter="a"), line(1, filter="a"), line(0, filter="b")]))
    (problem,) = problems.kept
    assert (problem.code, problem.line) == ("UNMATCHED", 2)
    assert "'a' and 'b'" in problem.message


def test_a_half_written_last_line_is_reported(tmp_path):
    path = write_log(tmp_path, [line(0), line(1)])
    path.write_bytes(path.read_bytes()[:-40])
    (problem,) = read(path)[1].kept
    assert (problem.code, problem.line) == ("TRUNCATED", 2)
    assert "the last good record is on line 1" in problem.message


def test_damaged_bytes_are_reported_in_every_block(tmp_path):
    path = write_log(tmp_path, [line(0, filter="a"), line(0, filter="b")])
    path.write_bytes(path.read_bytes().replace(b'"yes"', b'"\xff"', 1))
    (problem,) = read(path)[1].kept
    assert (problem.code, problem.line) == ("ENCODING", 1)


def test_a_long_name_of_a_metric_is_cut(tmp_path):
    (score,) = FORMAT.info(write_log(tmp_path, [{**line(0), "x" * 500: 1.0, "acc": None}])).scores
    assert len(score.column) < 110


def test_a_metric_may_have_the_name_of_a_column_of_runs(tmp_path):
    (score,) = FORMAT.info(write_log(tmp_path, [{**line(0), "status": 1.0, "acc": None}])).scores
    assert score.column == "lm-eval.status_score"


def test_other_data_are_not_read_as_this_log(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": "a"}\n')
    with pytest.raises(InputError, match="this is not a log of lm-eval: no line has `doc_id`"):
        FORMAT.info(path)


def test_a_half_written_only_line_is_reported(tmp_path):
    path = write_log(tmp_path, [line(0)])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="TRUNCATED"):
        FORMAT.info(path)


def test_compressed_logs_are_read_too(tmp_path):
    plain = write_log(tmp_path, [line(0), line(1)])
    packed = tmp_path / f"{plain.name}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(packed)[0] == read(plain)[0]
    assert FORMAT.part_name(packed) == "toy"


@pytest.mark.parametrize("content", [None, "{", "[1]", '{"results": 3, "configs": [], "n-shot": null, "config": 1}'])
def test_results_that_are_missing_or_damaged(tmp_path, content):
    path = write_log(tmp_path, [line(0)])
    if content is not None:
        (tmp_path / "results_2026-11-16T10-00-00.000000.json").write_text(content)
    info = FORMAT.info(path)
    assert [(score.column, score.own_mean) for score in info.scores] == [("lm-eval.acc", None)]
    assert bool(info.notes) == (content is None or not content.endswith("1}"))


@given(st.text())
def test_a_text_is_one_reference(text):
    expected = None if not text.strip() else [text]
    assert text[:1] == "[" or references_of(text) == expected


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1))
def test_a_list_as_python_writes_it_comes_back(targets):
    assert references_of(str(targets)) == targets


@given(st.text(), st.text())
def test_reasoning_and_answer_are_apart(thought, answer):
    text = f"<think>{thought.replace('</think>', '')}</think>{answer}"
    assert split_reasoning(text) == (answer.strip(), thought.replace("</think>", "").strip() or None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(line(0).keys() - {"doc_id"})), json_values)
def test_any_value_in_a_line_is_read_or_refused_with_a_problem(tmp_path_factory, key, value):
    path = write_log(tmp_path_factory.mktemp("any"), [line(0), line(1, **{key: value})])
    FORMAT.info(path)
    samples, problems, _ = read(path)
    assert len(samples) == 2 or problems.total


def test_a_document_twice_under_a_filter_is_a_duplicate(tmp_path):
    lines = [line(0, filter="a"), line(1, filter="a"), line(1, filter="a"), line(0, filter="b"), line(1, filter="b")]
    (problem,) = read(write_log(tmp_path, lines))[1].kept
    assert (problem.code, problem.line, problem.id) == ("DUPLICATE", 3, "1")
    assert "twice with the filter 'a', in lines 2 and 3" in problem.message


def test_a_filter_per_line_is_refused(tmp_path):
    path = write_log(tmp_path, [line(0, filter=f"f{place}") for place in range(MOST_FILTERS + 8)])
    with pytest.raises(InputError, match="more than 32 filters: 'f0', 'f1', 'f2', …") as refused:
        read(path)
    (problem,) = refused.value.problems
    assert (problem.code, problem.line) == ("TOO_MANY", MOST_FILTERS + 1)


def test_as_many_filters_as_may_be_read(tmp_path):
    path = write_log(tmp_path, [line(0, filter=f"f{place}") for place in range(MOST_FILTERS)])
    (sample,) = read(path)[0]
    assert sample.metadata["lm-eval.acc_f31"] == 1


def test_filters_must_be_those_of_the_results(tmp_path):
    path = write_log(tmp_path, [line(0, filter="a"), line(0, filter="b")])
    results = {"results": {"toy": {"acc,a": 1.0, "acc_stderr,a": 0.1, "alias": "toy"}}}
    (tmp_path / "results_2026-11-16T10-00-00.000000.json").write_text(json.dumps(results))
    with pytest.raises(InputError, match="no filter 'b', only 'a'") as refused:
        FORMAT.info(path)
    assert refused.value.problems[0].line == 2


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        ("pretrained=acme/parrot,dtype=auto", "acme/parrot"),
        ({"pretrained": "acme/parrot"}, "acme/parrot"),
        ("dtype=auto, model=gpt-x", "gpt-x"),
        ("dtype=auto", None),
        (None, None),
    ],
)
def test_the_model_is_in_the_arguments(tmp_path, arguments, model):
    results = {"config": {"model": "hf", "model_args": arguments}}
    (tmp_path / "results_2026-11-16T10-00-00.000000.json").write_text(json.dumps(results))
    assert FORMAT.info(write_log(tmp_path, [line(0)])).model == model
