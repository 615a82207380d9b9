"""Temporary failures are retried, never bisected, and never stored as a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from multimodal_eval import Sample, evaluate, load_run, metric, rescore, resume
from multimodal_eval.core import metric_failures
from multimodal_eval.core.errors import OpenSamplesError, RetryableError
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.metric_failures import MAX_FAILURES_IN_A_ROW, TRIES, GaveUpError, Retries
from multimodal_eval.core.registry import register
from multimodal_eval.core.score import Score, mean_estimate
from multimodal_eval.evaluation.metrics_registry import evaluate_sample
from multimodal_eval.evaluation.tasks_config import TASKS
from tests.parts import set_part_size

COUNT = 1_000


def samples(count: int = COUNT) -> list[Sample]:
    return [Sample(str(number), generated_answer="a word") for number in range(count)]


@pytest.fixture(autouse=True)
def pauses(monkeypatch) -> list[float]:
    """The pauses, without waiting."""
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


class Endpoint:
    """Answers all samples except some, which fail a given number of times; records the requests."""

    def __init__(self, failures: dict[str, int], error: type[Exception] = TimeoutError) -> None:
        self.failures, self.error = dict(failures), error
        self.asked: list[str] = []

    def __call__(self, sample: Sample) -> float:
        self.asked.append(sample.id)
        if self.failures.get(sample.id, 0) > 0:
            self.failures[sample.id] -= 1
            raise self.error("no answer within 60 s")
        return float(len(sample.generated_answer or ""))


def asking(endpoint: Endpoint) -> None:
    @metric("asked", needs=("generated_answer",), version="1")
    def asked(sample: Sample) -> float:
        return endpoint(sample)


@pytest.mark.parametrize("error", [TimeoutError, ConnectionError, ConnectionResetError, RetryableError])
def test_one_failure_costs_one_more_request(error, pauses):
    endpoint = Endpoint({"500": 1}, error)
    asking(endpoint)
    run = evaluate(samples(), metrics=["asked"], workers=1)
    assert len(endpoint.asked) == COUNT + 1  # bisecting would need 2,996 requests
    assert run["asked"]["n_scored"] == COUNT
    assert pauses == [metric_failures.FIRST_DELAY]


def test_a_sample_without_an_answer_stays_open_and_resume_requests_only_this_sample(tmp_path, pauses):
    endpoint = Endpoint({"500": TRIES})
    asking(endpoint)
    with pytest.raises(OpenSamplesError, match=r"so far: 1 \(asked: TimeoutError: no answer within 60 s\)") as refused:
        evaluate(samples(), metrics=["asked"], output=tmp_path / "run", workers=1)
    assert f"mmeval score --resume {tmp_path / 'run'}" in str(refused.value)
    assert len(endpoint.asked) == COUNT + TRIES - 1
    assert pauses == [0.5, 1.0, 2.0]
    assert not list((tmp_path / "run").glob("scores/*"))  # the part is not committed
    endpoint.asked.clear()
    run = resume(tmp_path / "run")
    assert endpoint.asked == ["500"]
    assert run["asked"]["n_scored"] == COUNT
    assert run["asked"]["unscored"] == {}
    undisturbed = evaluate(samples(), metrics=["asked"], output=tmp_path / "whole", workers=1)
    assert run.results == undisturbed.results
    assert run.scores().to_pylist() == undisturbed.scores().to_pylist()


def test_other_parts_are_committed(tmp_path, monkeypatch):
    set_part_size(monkeypatch, 10)
    endpoint = Endpoint({"15": TRIES, "16": TRIES})
    asking(endpoint)
    with pytest.raises(OpenSamplesError, match="so far: 2 "):
        evaluate(samples(40), metrics=["asked"], output=tmp_path / "run", workers=1)
    assert len(list((tmp_path / "run").glob("scores/*.parquet"))) == 3
    endpoint.asked.clear()
    resume(tmp_path / "run")
    assert endpoint.asked == ["15", "16"]


def test_a_run_without_a_folder_can_be_resumed_too():
    endpoint = Endpoint({"3": TRIES})
    asking(endpoint)
    with pytest.raises(OpenSamplesError) as refused:
        evaluate(samples(5), metrics=["asked"], workers=1)
    folder = str(refused.value).rpartition("--resume ")[2].partition(";")[0]
    assert resume(folder)["asked"]["n_scored"] == 5


def test_rescoring_leaves_samples_open_too(tmp_path):
    endpoint = Endpoint({"3": TRIES})
    asking(endpoint)
    old = evaluate([Sample(str(n), generated_answer="a b", references=["a b"]) for n in range(5)], metrics=["rouge_l"])
    with pytest.raises(OpenSamplesError):
        rescore(old, {"metrics": ["rouge_l", "asked"]}, output=tmp_path / "new", workers=1)
    endpoint.asked.clear()
    assert resume(tmp_path / "new")["asked"]["n_scored"] == 5
    assert endpoint.asked == ["3"]
    assert load_run(tmp_path / "new")["rouge_l"] == old["rouge_l"]


def test_kept_scores_are_read_back_unchanged(tmp_path):
    """Including NumPy numbers, parts and details."""
    endpoint = Endpoint({"3": TRIES})

    @metric("rich", needs=("generated_answer",), version="1", aggregate=lambda rows: mean_estimate(rows))
    def rich(sample):
        value = endpoint(sample)
        numbers = {"stats": (np.float64(value), np.int64(2)), "parts": {"half": np.float32(0.5)}}
        return Score(np.float64(value / 3), details={"large": 2**70, "path": Path("x")}, **numbers)

    with pytest.raises(OpenSamplesError):
        evaluate(samples(5), metrics=["rich"], output=tmp_path / "run", workers=1)
    resume(tmp_path / "run")
    evaluate(samples(5), metrics=["rich"], output=tmp_path / "whole", workers=1)
    run, whole = load_run(tmp_path / "run"), load_run(tmp_path / "whole")
    assert run.results == whole.results
    assert run.scores().equals(whole.scores())


def test_samples_that_fail_again_can_be_stored_as_errors(tmp_path):
    endpoint = Endpoint({"3": 100, "4": TRIES})
    asking(endpoint)
    with pytest.raises(OpenSamplesError, match="--accept-open"):
        evaluate(samples(5), metrics=["asked"], output=tmp_path / "run", workers=1)
    run = resume(tmp_path / "run", accept_open=True)
    assert run["asked"]["n_scored"] == 4  # the other sample was requested again and answered
    assert run["asked"]["unscored"] == {"error": 1}
    assert run["asked"]["reasons"] == [{"reason": "TimeoutError: no answer within 60 s", "count": 1}]


def test_the_folder_is_kept_if_corpus_statistics_fail_temporarily(tmp_path):
    calls = []

    def gather(corpus):
        calls.append(len(list(corpus)))
        if len(calls) <= TRIES:
            raise RetryableError("rate limit")
        return {"count": calls[-1]}

    @metric("counted", needs=("generated_answer",), version="1", corpus=gather)
    def counted(sample, corpus=None):
        return float(corpus["count"])

    with pytest.raises(OpenSamplesError, match=r"statistics of counted .*rate limit"):
        evaluate(samples(5), metrics=["counted"], output=tmp_path / "run", workers=1)
    assert calls == [5] * TRIES
    assert (tmp_path / "run" / "run.json").exists()


class BatchMetric(Metric):
    """Scores a whole batch in one call."""

    name = "batched"
    version = "1"
    needs = ("generated_answer",)

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.failures: list[Exception] = []

    def open(self, state):
        return self

    def score(self, batch):
        self.sizes.append(len(batch))
        if self.failures:
            raise self.failures.pop()
        return [Score(1.0) for _ in batch]


def test_a_batch_is_not_bisected_after_a_lost_connection(tmp_path):
    batched = BatchMetric()
    register(batched)
    batched.failures += [ConnectionError("refused")] * TRIES
    with pytest.raises(OpenSamplesError, match="so far: 100 "):
        evaluate(samples(100), metrics=["batched"], output=tmp_path / "run", workers=1)
    assert batched.sizes == [100] * TRIES
    resume(tmp_path / "run")
    assert batched.sizes == [100] * (TRIES + 1)


def test_a_failing_sample_next_to_an_open_one_is_an_error(tmp_path):
    endpoint = Endpoint({"3": TRIES})

    @metric("both", needs=("generated_answer",), version="1")
    def both(sample):
        if sample.id == "2":
            raise ValueError("bad sample")
        return endpoint(sample)

    with pytest.raises(OpenSamplesError, match="so far: 1 "):
        evaluate(samples(5), metrics=["both"], output=tmp_path / "run", workers=1)
    run = resume(tmp_path / "run")
    assert run["both"]["unscored"] == {"error": 1}
    assert run["both"]["reasons"] == [{"reason": "ValueError: bad sample (test_retries.py:206)", "count": 1}]


def test_requests_stop_after_too_many_failures_in_a_row(pauses):
    endpoint = Endpoint(dict.fromkeys(map(str, range(COUNT)), TRIES))
    asking(endpoint)
    with pytest.raises(OpenSamplesError, match=f"so far: {COUNT:,} "):
        evaluate(samples(), metrics=["asked"], workers=1)
    assert len(endpoint.asked) == MAX_FAILURES_IN_A_ROW * TRIES


def test_a_metric_without_its_endpoint_does_not_stop_another_metric(tmp_path):
    asking(Endpoint(dict.fromkeys(map(str, range(COUNT)), TRIES)))
    calls = []

    @metric("working", needs=("generated_answer",), version="1")
    def working(sample):
        calls.append(sample.id)
        return 1.0

    with pytest.raises(OpenSamplesError):
        evaluate(samples(), metrics=["asked", "working"], output=tmp_path / "run", workers=1)
    assert len(calls) == COUNT
    asking(Endpoint({}))
    assert resume(tmp_path / "run")["working"]["n_scored"] == COUNT
    assert len(calls) == COUNT  # stored scores are not computed again


def test_a_successful_call_resets_the_count_of_failures():
    tries = Retries(sleep=lambda seconds: None)

    def fail(argument):
        raise TimeoutError(argument)

    for _ in range(MAX_FAILURES_IN_A_ROW - 1):
        with pytest.raises(GaveUpError, match="TimeoutError: late"):
            tries.call(fail, "late")
    assert tries.call(int, "1") == 1
    with pytest.raises(GaveUpError, match=r"^TimeoutError: late$"):
        tries.call(fail, "late")
    with pytest.raises(ValueError, match="invalid literal"):
        tries.call(int, "x")


def test_a_single_open_sample_has_its_reason_as_status(monkeypatch):
    asking(Endpoint({"a": TRIES}))
    monkeypatch.setitem(TASKS, "one", type(TASKS["vqa"])("one", ["asked"]))
    result = evaluate_sample(Sample("a", generated_answer="x"), "one")
    assert result["asked"] is None
    assert result["status"]["asked"] == "TimeoutError: no answer within 60 s"
