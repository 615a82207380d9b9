"""Any number of workers gives the same bytes. A failed or interrupted run leaves no process or thread behind."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import evaluate, load_run, metric, resume
from multimodal_eval.core.errors import ConfigError, InputError, Problem, UnavailableError, UnknownNameError
from multimodal_eval.core.metric import signature_of
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.metrics_registry import TASK_METRICS
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.engine import base
from multimodal_eval.run.engine.base import AHEAD, BUNDLE, THREADS, Job, Local, Phase, bundled, in_order
from multimodal_eval.run.plan import make_plan
from multimodal_eval.run.start import describe
from multimodal_eval.run.step import RunContext
from multimodal_eval.run.steps.score import Score
from tests.run.local_runs import PLUGIN, content, run, samples

pytestmark = pytest.mark.usefixtures("many_parts", "nothing_is_left_running")
FMEAN = {"meteor": {"variant": "fmean"}}
MIXTURES = {
    "threads": (["cider", "cider_d", "bleu", "meteor"], FMEAN),
    "processes": (["rarity", "corpus_precision", "chair_i"], {}),
    "mixed": (["cider", "rarity", "exact_match", "meteor"], FMEAN),
}


@pytest.mark.parametrize("mixture", MIXTURES)
def test_any_number_of_workers_gives_the_same_bytes(tmp_path, mixture):
    metrics, options = MIXTURES[mixture]
    run(tmp_path / "inline", 1, metrics, options=options)
    expected = content(tmp_path / "inline")
    assert sum(name.startswith("scores") for name in expected) == 9
    assert {Path(name).parts[0] for name in expected} <= {
        *("samples", "scores", "state", "manifest.json", "results.json", "lint.json")
    }
    for workers in (1, 2, 3, 7) if mixture == "threads" else (1, 3):
        run(tmp_path / str(workers), workers, metrics, options=options)
        assert content(tmp_path / str(workers)) == expected


@pytest.mark.parametrize("mixture", ["threads", "statistics"])
def test_processes_with_threads_give_the_same_bytes(tmp_path, mixture, monkeypatch):
    metrics, options = {**MIXTURES, "statistics": (["cider_d", "quick_rarity"], {})}[mixture]
    data = samples(130)
    run(tmp_path / "inline", 1, metrics, data=data, options=options)
    stages = []
    in_bundles = base._in_bundles
    monkeypatch.setattr(
        base,
        "_in_bundles",
        lambda job, phase, workers: (
            stages.append(f"{job.step.__name__}.{phase.work}") or in_bundles(job, phase, workers)
        ),
    )
    run(tmp_path / "local", 8, metrics, data=data, options=options)
    assert stages == ["Fit.part", "Score.part"]
    assert content(tmp_path / "local") == content(tmp_path / "inline")
    assert load_run(tmp_path / "local")[metrics[-1]]["n_scored"] == 111


@given(st.integers(1, 400), st.integers(5, 64), st.sampled_from([2, THREADS]))
def test_bundles_keep_all_workers_busy(items, workers, most):
    processes, bundles = bundled(range(items), workers, most)
    threads = bundles[0].threads
    assert [item for bundle in bundles for item in bundle.items] == list(range(items))
    assert {bundle.threads for bundle in bundles} == {threads}
    assert 1 <= threads <= most
    assert 1 <= processes <= len(bundles)
    if items >= workers * BUNDLE:  # each worker has a thread, and there are few more threads
        assert workers <= processes * threads < workers + processes
    # No process gets more than its share while another is idle.
    assert max(len(bundle.items) for bundle in bundles) <= max(1, -(-items // -(-workers // most)))


def test_an_interrupted_run_with_bundles_leaves_no_process_and_resumes(tmp_path):
    def stop(stage, done, total):
        if stage == "scoring" and done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", 8, ["cider"], data=samples(130), progress=stop)
    assert multiprocessing.active_children() == []
    resume(tmp_path / "broken")
    run(tmp_path / "whole", 1, ["cider"], data=samples(130))
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


def test_a_model_runs_in_this_process_and_thread(tmp_path):
    places = set()

    @metric("stand_in", needs=("generated_answer",), version="1", placement="model")
    def stand_in(sample):
        places.add((os.getpid(), threading.current_thread()))
        return float(len(sample.generated_answer))

    run(tmp_path / "inline", 1, ["stand_in", "cider", "rarity"])
    run(tmp_path / "local", 3, ["stand_in", "cider", "rarity"])
    assert places == {(os.getpid(), threading.current_thread())}
    assert content(tmp_path / "local") == content(tmp_path / "inline")


def test_work_runs_in_threads_and_processes(tmp_path):
    places = set()

    @metric("here", needs=("generated_answer",), version="1", placement="thread")
    def here(sample):
        places.add(threading.current_thread().name)
        time.sleep(0.001)
        return 1.0

    run(tmp_path / "threads", 2, ["here"])
    assert places
    assert threading.current_thread().name not in places
    run(tmp_path / "processes", 2, ["process_number"], data=samples(40))
    numbers = set(load_run(tmp_path / "processes").scores().column("process_number").to_pylist()) - {None}
    assert numbers
    assert os.getpid() not in numbers


def test_a_metric_known_only_to_this_process_runs_here(tmp_path):
    @metric("mine", needs=("generated_answer",), version="1")
    def mine(sample):
        return float(os.getpid())

    results = run(tmp_path / "run", 3, ["mine", "rarity", "cider"])
    assert results["mine"]["value"] == os.getpid()
    assert results["cider"]["n_scored"] == 51


def test_a_task_known_only_to_this_process_reaches_the_others(tmp_path):
    TASK_METRICS["mine"] = ["rarity", "cider"]
    TASK_METRICS["captioning"].append("rarity")
    for task in ("mine", "captioning"):
        for name, workers in (("inline", 1), ("local", 2)):
            settings = {"task": task, "plugins": [PLUGIN], "skip_unavailable": True, "workers": workers}
            evaluate(samples(30), output=tmp_path / f"{task}-{name}", **settings)
        assert content(tmp_path / f"{task}-local") == content(tmp_path / f"{task}-inline")


def test_a_job_rebuilds_the_plan(tmp_path):
    tasks = {"mine": {"weights": {"cider": 0.5, "bleu": 0.5}, "on_missing": "renormalise"}}
    plan = make_plan(overlaid(None, task="mine", tasks=tasks, seed=3, by=["group"]))
    folder = RunFolder.create(tmp_path, describe(plan, None))
    job = Job.of(Score(RunContext(plan, folder, folder.read_info())))
    rebuilt = pickle.loads(pickle.dumps(job)).here().run.plan
    assert (rebuilt.task, rebuilt.composite, rebuilt.names) == (plan.task, plan.composite, plan.names)
    assert [signature_of(metric) for metric in rebuilt.metrics] == [signature_of(metric) for metric in plan.metrics]


@pytest.mark.parametrize(("items", "window"), [(0, 3), (1, 3), (2, 3), (20, 1), (20, 3), (20, 50)])
def test_results_are_in_order_and_few_are_pending(items, window):
    pending, most = set(), 0

    def submit(item):
        nonlocal most
        pending.add(item)
        most = max(most, len(pending))
        return item * 10

    def result(item, future):
        pending.remove(item)
        return future + 1

    results = in_order(submit, result, range(items), window)
    for number, value in enumerate(results):
        assert value == number * 10 + 1
        assert len(pending) < window
    assert most == min(items, window)
    assert not pending


def test_a_slow_consumer_slows_the_workers_down(tmp_path):
    started = []

    @metric("counting", needs=(), version="1", placement="thread")
    def counting(sample):
        started.append(sample.id)
        return 1.0

    run(tmp_path / "run", 1, ["counting"], data=samples(40))
    started.clear()
    plan = make_plan(overlaid(None, metrics=["counting"]))
    folder = RunFolder(tmp_path / "run")
    step = Score(RunContext(plan, folder, folder.read_info()))
    results = Local(2).map(step, Phase("part", range(6)))
    next(results)
    time.sleep(0.3)
    assert len(started) <= 7 * AHEAD * 2
    assert len(list(results)) == 5


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("config", ConfigError, "the option is wrong"),
        ("unavailable", UnavailableError, "the model is not here"),
        ("unknown", UnknownNameError, "no thing is named 'a'"),
    ],
)
def test_an_error_not_caused_by_a_sample_is_raised_unchanged(tmp_path, workers, kind, error, message):
    with pytest.raises(error, match=message) as raised:
        run(tmp_path / "run", workers, ["refuses"], options={"refuses": {"kind": kind}})
    assert type(raised.value) is error


def test_an_error_in_a_thread_is_raised_and_the_run_resumes(tmp_path):
    @metric("flaky", needs=("generated_answer",), version="1", placement="thread")
    def flaky(sample):
        if sample.id == "s30" and broken:
            raise UnavailableError("not today")
        return 1.0

    broken = True
    with pytest.raises(UnavailableError, match="not today"):
        run(tmp_path / "broken", 3, ["flaky", "cider"])
    broken = False
    resume(tmp_path / "broken")
    run(tmp_path / "whole", 1, ["flaky", "cider"])
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


def test_errors_can_be_pickled():
    problems = [Problem(code="TYPE", message="not a list", id="7")]
    for error in (InputError(problems, 40), UnknownNameError("metric", "cidr", ["cider"]), ConfigError("x")):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_an_exception_that_cannot_be_unpickled_is_not_a_crash(tmp_path):
    with pytest.raises(RuntimeError, match="OddError: an odd error"):
        run(tmp_path / "run", 2, ["odd_corpus"])


@pytest.mark.parametrize("metrics", [["cider", "bleu"], ["rarity"]])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_run_resumes_to_the_same_bytes(tmp_path, metrics, error):
    def stop(stage, done, total):
        if stage == "scoring" and done > 20:
            raise error

    with pytest.raises(error):
        run(tmp_path / "broken", 3, metrics, progress=stop)
    assert multiprocessing.active_children() == []
    resume(tmp_path / "broken")
    run(tmp_path / "whole", 1, metrics)
    assert content(tmp_path / "broken") == content(tmp_path / "whole")
