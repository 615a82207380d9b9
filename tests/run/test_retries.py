"""Failures that say nothing of a sample: asked again, never isolated, never stored as a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from multimodal_eval import Sample, evaluate, load_run, metric, rescore, resume
from multimodal_eval.core import retries
from multimodal_eval.core.errors import OpenSamplesError, RetryableError
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.registry import register
from multimodal_eval.core.retries import MOST_IN_A_ROW, TRIES, GaveUpError, Retries
from multimodal_eval.core.score import Score, mean_estimate
from multimodal_eval.evaluation.metrics_registry import evaluate_sample
from multimodal_eval.evaluation.tasks_config import TASKS
from multimodal_eval.run import plan as planning

COUNT = 1_000


def samples(count: int = COUNT) -> list[Sample]:
    return [Sample(str(number), generated_answer="a word") for number in range(count)]


@pytest.fixture(autouse=True)
def pauses(monkeypatch) -> list[float]:
    """What would have been waited."""
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


class Endpoint:
    """Answers, but for some samples, which fail so many times; counts what it was asked."""

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
def test_one_failure_costs_one_more_scoring(error, pauses):
    endpoint = Endpoint({"500": 1}, error)
    asking(endpoint)
    run = evaluate(samples(), metrics=["asked"], workers=1)
    assert len(endpoint.asked) == COUNT + 1  # bisecting would ask for 2,996
    assert run["asked"]["n_scored"] == COUNT
    assert pauses == [retries.FIRST_DELAY]


def test_a_sample_that_never_answers_stays_open_and_resume_asks_for_just_it(tmp_path, pauses):
    endpoint = Endpoint({"500": TRIES})
    asking(endpoint)
    with pytest.raises(OpenSamplesError, match=r"so far: 1 \(asked: TimeoutError: no answer within 60 s\)") as said:
        evaluate(samples(), metrics=["asked"], output=tmp_path / "run", workers=1)
    assert f"mmeval score --resume {tmp_path / 'run'}" in str(said.value)
    assert len(endpoint.asked) == COUNT + TRIES - 1
    assert pauses == [0.5, 1.0, 2.0]
    assert not list((tmp_path / "run").glob("scores/*"))  # nothing of it is committed
    endpoint.asked.clear()
    run = resume(tmp_path / "run")
    assert endpoint.asked == ["500"]
    assert run["asked"]["n_scored"] == COUNT
    assert run["asked"]["unscored"] == {}
    undisturbed = evaluate(samples(), metrics=["asked"], output=tmp_path / "whole", workers=1)
    assert run.results == undisturbed.results
    assert run.scores().to_pylist() == undisturbed.scores().to_pylist()


def test_what_other_parts_have_is_committed(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "PART_SIZE", 10)
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
    with pytest.raises(OpenSamplesError) as said:
        evaluate(samples(5), metrics=["asked"], workers=1)
    folder = str(said.value).rpartition("--resume ")[2].partition(";")[0]
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


def test_kept_scores_come_back_as_they_were(tmp_path):
    """NumPy numbers, parts and details too; a run that was open ends with the same bytes."""
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


def test_what_fails_again_can_be_accepted_as_an_error(tmp_path):
    endpoint = Endpoint({"3": 100, "4": TRIES})
    asking(endpoint)
    with pytest.raises(OpenSamplesError, match="--accept-open"):
        evaluate(samples(5), metrics=["asked"], output=tmp_path / "run", workers=1)
    run = resume(tmp_path / "run", accept_open=True)
    assert run["asked"]["n_scored"] == 4  # the other one was asked again, and answered
    assert run["asked"]["unscored"] == {"error": 1}
    assert run["asked"]["reasons"] == [{"reason": "TimeoutError: no answer within 60 s", "count": 1}]


def test_statistics_that_cannot_be_gathered_for_now_lose_nothing(tmp_path):
    calls = []

    def gather(some):
        calls.append(len(list(some)))
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
    """Asks for a whole batch at once."""

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


def test_a_batch_is_never_halved_for_a_lost_connection(tmp_path):
    batched = BatchMetric()
    register(batched)
    batched.failures += [ConnectionError("refused")] * TRIES
    with pytest.raises(OpenSamplesError, match="so far: 100 "):
        evaluate(samples(100), metrics=["batched"], output=tmp_path / "run", workers=1)
    assert batched.sizes == [100] * TRIES
    resume(tmp_path / "run")
    assert batched.sizes == [100] * (TRIES + 1)


def test_a_poisoned_sample_beside_an_open_one_is_an_error_and_no_more(tmp_path):
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
    assert run["both"]["reasons"] == [{"reason": "ValueError: bad sample", "count": 1}]


def test_whoever_never_answers_is_not_asked_for_ever(pauses):
    endpoint = Endpoint(dict.fromkeys(map(str, range(COUNT)), TRIES))
    asking(endpoint)
    with pytest.raises(OpenSamplesError, match=f"so far: {COUNT:,} "):
        evaluate(samples(), metrics=["asked"], workers=1)
    assert len(endpoint.asked) == MOST_IN_A_ROW * TRIES


def test_a_metric_whose_endpoint_is_gone_does_not_keep_another_from_scoring(tmp_path):
    asking(Endpoint(dict.fromkeys(map(str, range(COUNT)), TRIES)))
    calls = []

    @metric("sound", needs=("generated_answer",), version="1")
    def sound(sample):
        calls.append(sample.id)
        return 1.0

    with pytest.raises(OpenSamplesError):
        evaluate(samples(), metrics=["asked", "sound"], output=tmp_path / "run", workers=1)
    assert len(calls) == COUNT
    asking(Endpoint({}))
    assert resume(tmp_path / "run")["sound"]["n_scored"] == COUNT
    assert len(calls) == COUNT  # what is scored is not asked for again


def test_calls_that_work_again_begin_a_new_count():
    tries = Retries(sleep=lambda seconds: None)

    def fail(argument):
        raise TimeoutError(argument)

    for _ in range(MOST_IN_A_ROW - 1):
        with pytest.raises(GaveUpError, match="TimeoutError: late"):
            tries.call(fail, "late")
    assert tries.call(int, "1") == 1
    with pytest.raises(GaveUpError, match=r"^TimeoutError: late$"):
        tries.call(fail, "late")
    with pytest.raises(ValueError, match="invalid literal"):
        tries.call(int, "x")


def test_one_sample_says_that_it_is_open(monkeypatch):
    asking(Endpoint({"a": TRIES}))
    monkeypatch.setitem(TASKS, "one", type(TASKS["vqa"])("one", ["asked"]))
    result = evaluate_sample(Sample("a", generated_answer="x"), "one")
    assert result["asked"] is None
    assert result["status"]["asked"] == "TimeoutError: no answer within 60 s"
