"""The summary of a run's generation, with values worked out by hand."""

from __future__ import annotations

import shutil

import msgspec
import pyarrow as pa
import pytest

from multimodal_eval import evaluate
from multimodal_eval.analysis.generation import generation_summary, stored_answers
from multimodal_eval.core.figure import ReasonCount
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.answer_tables import exchange_table
from multimodal_eval.generate.protocol import Answer, Exchange, Outcome, RejectedError

FILTERED = "the endpoint's content filter stopped the answer"


def answered(request):
    """Sample 3 is filtered, 4 is cut off, 5 and 6 are rejected with different reasons."""
    number = int(request.id)
    if number == 3:
        return Answer(None, finish="content_filter")
    if number == 4:
        return Answer("a cat on", finish="length", output_tokens=2, reasoning="Which animal?")
    if number in (5, 6):
        raise RejectedError(f"too long: {number}")
    return Answer("a cat", reasoning="It purrs.", input_tokens=5, output_tokens=3, model="cats-1")


@pytest.fixture
def run(tmp_path):
    samples = [Sample(str(number), question=f"what? {number}", references=["a cat"]) for number in range(8)]
    generation = {
        "model": "cats",
        "use_cache": False,
        "base_url": "http://127.0.0.1:1/v1",
        "system": "Be brief.",
        "parameters": {"temperature": 0.0, "max_tokens": 8, "extra": {"top_k": 20}},
    }
    return evaluate(samples, metrics=["rouge_l"], model=answered, output=tmp_path / "run", generation=generation)


def with_exchanges(run, latencies, attempts=(1,) * 8, cached=()):
    """Replace the times, which differ from run to run."""
    exchanges = [
        Exchange(Outcome("ok", Answer("x")), "", float(latency > 0), latency, attempts[row], row in cached)
        for row, latency in enumerate(latencies)
    ]
    run.folder.write_part("exchanges", 0, exchange_table(0, exchanges))


def test_a_run_whose_samples_have_answers_has_no_generation():
    run = evaluate([Sample("a", references=["a"], generated_answer="a")], metrics=["rouge_l"])
    assert generation_summary(run.folder, run.info) is None
    assert stored_answers(run.folder, 0, [0]) == []


def test_the_model_and_its_settings(run):
    summary = generation_summary(run.folder, run.info)
    assert summary.model.startswith("python:answered@")
    assert (summary.system, summary.info.base_url, summary.info.models) == (
        "Be brief.",
        "http://127.0.0.1:1/v1",
        ["cats-1"],
    )
    assert summary.parameters == {"temperature": 0.0, "max_tokens": 8, "extra": {"top_k": 20}}
    assert not {"metric", "version", "model", "temperature", "max_tokens", "extra.top_k"} & {*summary.settings}
    assert {"temperature", "max_tokens", "system"} <= {*summary.info.settings}


def test_outcomes_are_counted_with_their_reasons(run):
    summary = generation_summary(run.folder, run.info)
    counts = {status.status: (status.count, status.share) for status in summary.statuses}
    # 0, 1, 2 and 7 are answered: 4 of 8. The most frequent failure comes next, then by name.
    assert list(counts.items()) == [
        ("ok", (4, 0.5)),
        ("rejected", (2, 0.25)),
        ("filtered", (1, 0.125)),
        ("truncated", (1, 0.125)),
    ]
    reasons = {status.status: status.reasons for status in summary.statuses}
    assert reasons["ok"] == []
    assert reasons["rejected"] == [ReasonCount("too long: 5", 1), ReasonCount("too long: 6", 1)]
    assert reasons["filtered"] == [ReasonCount(FILTERED, 1)]
    assert (summary.samples, summary.failed) == (8, 4)


def test_latencies_are_those_of_requests_that_were_sent(run):
    # Row 6 came from the cache and row 7 was never sent: 1, 2, 3, 4, 5 and 10 s are left. Between the sorted values at
    # the positions 0 to 5, the median is at 2.5: (3 + 4) / 2; the 95 % quantile at 4.75: 5 + 0.75 * (10 - 5) = 8.75.
    with_exchanges(run, [1, 2, 3, 4, 5, 10, 99, 0], attempts=(1, 2, 1, 3, 1, 1, 1, 1), cached={6})
    summary = generation_summary(run.folder, run.info)
    latency = summary.latency
    assert (latency.requests, latency.p50, latency.p95, latency.longest) == (6, 3.5, pytest.approx(8.75), 10)
    assert (summary.cached, summary.retried) == (1, 2)


def test_without_exchanges_there_are_no_times(run):
    shutil.rmtree(run.path / "exchanges")
    run = type(run)(run.path)
    summary = generation_summary(run.folder, run.info)
    assert (summary.latency, summary.cached, summary.retried) == (None, 0, 0)
    assert summary.samples == 8
    assert stored_answers(run.folder, 0, [0])[0].latency is None


def test_a_run_that_is_still_generating_has_only_settings(run):
    generation = msgspec.structs.replace(run.info.generation, statuses={})
    summary = generation_summary(run.folder, msgspec.structs.replace(run.info, generation=generation))
    assert (summary.statuses, summary.latency, summary.samples) == ([], None, 0)
    assert summary.system == "Be brief."


def test_the_outcome_of_single_rows_in_any_order(run):
    with_exchanges(run, [0.5, 2, 3, 4, 5, 10, 99, 0.25], cached={0})
    cut, first, last = stored_answers(run.folder, 0, [4, 0, 7])
    assert (cut.status, cut.unused_text, cut.reasoning, cut.latency) == ("truncated", "a cat on", "Which animal?", 5)
    assert cut.reason == "the answer was cut off after 2 tokens at the limit of tokens"
    assert (first.status, first.unused_text, first.reasoning, first.latency) == ("ok", None, "It purrs.", None)
    assert (first.is_cached, first.input_tokens, first.output_tokens) == (True, 5, 3)
    assert (last.is_cached, last.latency) == (False, 0.25)


def test_all_rows_in_another_order(run):
    rows = list(range(8))[::-1]
    assert [answer.status for answer in stored_answers(run.folder, 0, rows)] == [
        "ok",
        *("rejected", "rejected", "truncated", "filtered"),
        *("ok", "ok", "ok"),
    ]


def test_columns_that_another_program_left_out_are_empty(run):
    run.folder.write_part("exchanges", 0, pa.table({"row": list(range(8))}))
    assert generation_summary(run.folder, run.info).latency is None
    answer = stored_answers(run.folder, 0, [1])[0]
    assert (answer.latency, answer.is_cached) == (None, False)


def test_values_of_other_types_are_left_out(run):
    odd = {"row": list(range(8)), "latency": ["slow"] * 8, "attempts": ["2"] * 8, "is_cached": ["", "yes", *[None] * 6]}
    run.folder.write_part("exchanges", 0, pa.table(odd))
    summary = generation_summary(run.folder, run.info)
    assert (summary.latency, summary.retried, summary.cached) == (None, 0, 1)
    run.folder.write_part("exchanges", 0, pa.table({"row": [0], "latency": [float("nan")], "is_cached": [False]}))
    assert generation_summary(run.folder, run.info).latency is None
    run.folder.write_part(
        "answers", 0, pa.table({"row": [0], "status": [7], "reasoning": [[1]], "input_tokens": ["x"]})
    )
    answer, missing = stored_answers(run.folder, 0, [0, 5])
    assert (answer.status, answer.reasoning, answer.input_tokens) == ("7", "[1]", None)
    assert missing.status == "None"
