"""All cores give the bytes that one gives; what fails or is interrupted leaves nothing behind."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from pathlib import Path

import pytest

from multimodal_eval import load_run, metric, resume
from multimodal_eval.core.errors import ConfigError, InputError, Problem, UnavailableError, UnknownNameError
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.metrics_registry import TASK_METRICS
from multimodal_eval.run import execute
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.engine import local
from multimodal_eval.run.engine.base import AHEAD, Inline, Recipe, in_order
from multimodal_eval.run.engine.local import Local
from multimodal_eval.run.evaluate import planned
from multimodal_eval.run.plan import make_plan
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
    run(tmp_path / "inline", Inline(), metrics, options=options)
    expected = content(tmp_path / "inline")
    assert sum(name.startswith("scores") for name in expected) == 9
    assert {Path(name).parts[0] for name in expected} <= {"samples", "scores", "state", "results.json", "lint.json"}
    for workers in (1, 2, 3, 7) if mixture == "threads" else (1, 3):
        run(tmp_path / str(workers), Local(workers), metrics, options=options)
        assert content(tmp_path / str(workers)) == expected


@pytest.mark.parametrize("mixture", ["threads", "statistics"])
def test_processes_with_threads_give_the_same_bytes(tmp_path, mixture, monkeypatch):
    metrics, options = {**MIXTURES, "statistics": (["cider_d", "quick_rarity"], {})}[mixture]
    data = samples(130)
    run(tmp_path / "inline", Inline(), metrics, data=data, options=options)
    taken = []
    in_bundles = local._in_bundles
    monkeypatch.setattr(local, "_in_bundles", lambda *given: taken.append(given[1]) or in_bundles(*given))
    run(tmp_path / "local", Local(8), metrics, data=data, options=options)
    assert taken == ["fit", "score"]
    assert content(tmp_path / "local") == content(tmp_path / "inline")
    assert load_run(tmp_path / "local")[metrics[-1]]["n_scored"] == 111


@pytest.mark.parametrize(
    ("items", "workers", "processes", "threads", "sizes"),
    [
        (100, 8, 2, 4, [8] * 12 + [4]),
        (100, 6, 2, 3, [8] * 12 + [4]),
        (9, 9, 3, 3, [3, 3, 3]),  # few items: no process takes more than its share
        (16, 16, 4, 4, [4] * 4),
        (10, 10, 3, 4, [4, 4, 2]),
    ],
)
def test_bundles_keep_all_workers_busy(monkeypatch, items, workers, processes, threads, sizes):
    seen = []

    def in_processes(recipe, work, bundles, number):
        seen.append((number, {bundle.threads for bundle in bundles}, [len(bundle.items) for bundle in bundles]))
        return (list(bundle.items) for bundle in bundles)

    monkeypatch.setattr(local, "_in_processes", in_processes)
    assert list(local._in_bundles(None, "score", range(items), workers)) == list(range(items))
    assert seen == [(processes, {threads}, sizes)]


def test_an_interrupted_run_with_bundles_leaves_no_process_and_resumes(tmp_path):
    def stop(stage, done, total):
        if stage == "scoring" and done > 20:
            raise KeyboardInterrupt

    plan, source = planned(overlaid(None, metrics=["cider"]), samples(130), None)
    with pytest.raises(KeyboardInterrupt):
        execute.start(plan, source, tmp_path / "broken", executor=Local(8), progress=stop)
    assert multiprocessing.active_children() == []
    resume(tmp_path / "broken")
    run(tmp_path / "whole", Inline(), ["cider"], data=samples(130))
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


def test_a_model_runs_in_this_process_and_thread(tmp_path):
    seen = set()

    @metric("stand_in", needs=("generated_answer",), version="1", placement="model")
    def stand_in(sample):
        seen.add((os.getpid(), threading.current_thread()))
        return float(len(sample.generated_answer))

    run(tmp_path / "inline", Inline(), ["stand_in", "cider", "rarity"])
    run(tmp_path / "local", Local(3), ["stand_in", "cider", "rarity"])
    assert seen == {(os.getpid(), threading.current_thread())}
    assert content(tmp_path / "local") == content(tmp_path / "inline")


def test_threads_and_processes_are_where_the_work_is_done(tmp_path):
    places = set()

    @metric("here", needs=("generated_answer",), version="1", placement="thread")
    def here(sample):
        places.add(threading.current_thread().name)
        time.sleep(0.001)
        return 1.0

    run(tmp_path / "threads", Local(2), ["here"])
    assert places
    assert threading.current_thread().name not in places
    run(tmp_path / "processes", Local(2), ["process_number"], data=samples(40))
    numbers = set(load_run(tmp_path / "processes").scores().column("process_number").to_pylist()) - {None}
    assert numbers
    assert os.getpid() not in numbers


def test_a_metric_that_only_this_process_knows_runs_here(tmp_path):
    @metric("mine", needs=("generated_answer",), version="1")
    def mine(sample):
        return float(os.getpid())

    found = run(tmp_path / "run", Local(3), ["mine", "rarity", "cider"])
    assert found["mine"]["value"] == os.getpid()
    assert found["cider"]["n_scored"] == 51


def test_a_task_that_only_this_process_knows_reaches_the_others(tmp_path):
    TASK_METRICS["mine"] = ["rarity", "cider"]
    TASK_METRICS["captioning"].append("rarity")
    for task in ("mine", "captioning"):
        for name, executor in (("inline", Inline()), ("local", Local(2))):
            config = overlaid(None, task=task, plugins=[PLUGIN], skip_unavailable=True)
            plan, source = planned(config, samples(30), None)
            execute.start(plan, source, tmp_path / f"{task}-{name}", executor=executor)
        assert content(tmp_path / f"{task}-local") == content(tmp_path / f"{task}-inline")


def test_the_plan_survives_its_recipe(tmp_path):
    from multimodal_eval.run.part import Worker

    tasks = {"mine": {"weights": {"cider": 0.5, "bleu": 0.5}, "on_missing": "renormalise"}}
    plan = make_plan(overlaid(None, task="mine", tasks=tasks, seed=3, by=["group"]))
    recipe = Recipe.of(Worker(plan, RunFolder(tmp_path)))
    again = pickle.loads(pickle.dumps(recipe)).worker().plan
    assert (again.task, again.composite, again.names) == (plan.task, plan.composite, plan.names)
    assert [one.signature() for one in again.metrics] == [one.signature() for one in plan.metrics]


@pytest.mark.parametrize(("items", "window"), [(0, 3), (1, 3), (2, 3), (20, 1), (20, 3), (20, 50)])
def test_results_come_in_order_and_few_are_on_their_way(items, window):
    on_their_way, most = set(), 0

    def submit(item):
        nonlocal most
        on_their_way.add(item)
        most = max(most, len(on_their_way))
        return item * 10

    def result(item, future):
        on_their_way.remove(item)
        return future + 1

    found = in_order(submit, result, range(items), window)
    for number, value in enumerate(found):
        assert value == number * 10 + 1
        assert len(on_their_way) < window
    assert most == min(items, window)
    assert not on_their_way


def test_a_slow_consumer_holds_the_workers_back(tmp_path):
    started = []

    @metric("counting", needs=(), version="1", placement="thread")
    def counting(sample):
        started.append(sample.id)
        return 1.0

    from multimodal_eval.run.part import Worker

    run(tmp_path / "run", Inline(), ["counting"], data=samples(40))
    started.clear()
    plan = make_plan(overlaid(None, metrics=["counting"]))
    results = Local(2).map(Worker(plan, RunFolder(tmp_path / "run")), "score", range(6))
    next(results)
    time.sleep(0.3)
    assert len(started) <= 7 * AHEAD * 2
    assert len(list(results)) == 5


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("config", ConfigError, "the option is wrong"),
        ("unavailable", UnavailableError, "the model is not here"),
        ("unknown", UnknownNameError, "no thing is named 'a'"),
    ],
)
def test_an_error_that_is_no_samples_fault_comes_out_as_it_is(tmp_path, workers, kind, error, said):
    with pytest.raises(error, match=said) as raised:
        run(tmp_path / "run", Local(workers), ["refuses"], options={"refuses": {"kind": kind}})
    assert type(raised.value) is error


def test_an_error_in_a_thread_comes_out_and_the_run_resumes(tmp_path):
    @metric("moody", needs=("generated_answer",), version="1", placement="thread")
    def moody(sample):
        if sample.id == "s30" and broken:
            raise UnavailableError("not today")
        return 1.0

    broken = True
    with pytest.raises(UnavailableError, match="not today"):
        run(tmp_path / "broken", Local(3), ["moody", "cider"])
    broken = False
    resume(tmp_path / "broken")
    run(tmp_path / "whole", Inline(), ["moody", "cider"])
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


def test_errors_survive_the_way_between_processes():
    problems = [Problem(code="TYPE", message="not a list", id="7")]
    for error in (InputError(problems, 40), UnknownNameError("metric", "cidr", ["cider"]), ConfigError("x")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_an_exception_that_cannot_travel_is_no_dead_process(tmp_path):
    with pytest.raises(RuntimeError, match="OddError: an odd error"):
        run(tmp_path / "run", Local(2), ["odd_corpus"])


@pytest.mark.parametrize("metrics", [["cider", "bleu"], ["rarity"]])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_run_resumes_to_the_same_bytes(tmp_path, metrics, error):
    def stop(stage, done, total):
        if stage == "scoring" and done > 20:
            raise error

    config = overlaid(None, metrics=metrics, plugins=[PLUGIN])
    plan, source = planned(config, samples(), None)
    with pytest.raises(error):
        execute.start(plan, source, tmp_path / "broken", executor=Local(3), progress=stop)
    assert multiprocessing.active_children() == []
    resume(tmp_path / "broken")
    run(tmp_path / "whole", Inline(), metrics)
    assert content(tmp_path / "broken") == content(tmp_path / "whole")
