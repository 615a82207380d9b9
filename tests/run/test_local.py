"""All cores give the bytes that one gives; what dies, fails or is interrupted leaves nothing behind."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from multimodal_eval import Sample, evaluate, load_run, metric, resume
from multimodal_eval.core.errors import (
    ConfigError,
    InputError,
    Problem,
    RunFolderError,
    UnavailableError,
    UnknownNameError,
)
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.metrics_registry import TASK_METRICS
from multimodal_eval.run import execute, isolation
from multimodal_eval.run import plan as planning
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.engine import local, processes
from multimodal_eval.run.engine.base import AHEAD, Inline, Recipe, in_order
from multimodal_eval.run.engine.local import Local
from multimodal_eval.run.evaluate import planned
from multimodal_eval.run.plan import make_plan

PLUGIN = str(Path(__file__).with_name("plugin.py"))
POISON = str(Path(__file__).with_name("poison.py"))
FMEAN = {"meteor": {"variant": "fmean"}}
MIXTURES = {
    "threads": (["cider", "cider_d", "bleu", "meteor"], FMEAN),
    "processes": (["rarity", "corpus_precision", "chair_i"], {}),
    "mixed": (["cider", "rarity", "exact_match", "meteor"], FMEAN),
}


def samples(count=60, **answers):
    nouns = ["dog", "cat", "bird", "horse", "kite"]
    return [
        Sample(
            id=f"s{number}",
            references=[f"a {nouns[number % 5]} runs on street {number}", f"the {nouns[number % 3]} by a car"],
            generated_answer=answers.get(f"s{number}", f"a {nouns[number % 3]} runs" if number % 7 else None),
            group=f"g{number // 2}",
        )
        for number in range(count)
    ]


@pytest.fixture(autouse=True)
def many_parts(monkeypatch):
    monkeypatch.setattr(planning, "PART_SIZE", 7)
    monkeypatch.setattr(planning, "PART_SIZE_WITH_MODEL", 7)


@pytest.fixture(autouse=True)
def nothing_is_left_running():
    before = {thread.ident for thread in threading.enumerate()}
    yield
    assert multiprocessing.active_children() == []
    assert [thread for thread in threading.enumerate() if thread.ident not in before and not thread.daemon] == []


def run(path, executor, metrics, data=None, options=None, **settings):
    config = overlaid(None, metrics=metrics, plugins=[PLUGIN, POISON], options=options or {}, **settings)
    plan, source = planned(config, samples() if data is None else data, None)
    execute.start(plan, source, path, executor=executor)
    return load_run(path)


def content(path):
    """All of a run folder but run.json, which holds times."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != "run.json"
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


def test_a_death_in_a_process_with_threads_is_made_up_for(tmp_path):
    fuse = tmp_path / "fuse"
    options = {"native_killed_once": {"fuse": str(fuse)}}
    data = samples(64, s17="kill")
    run(tmp_path / "whole", Inline(), ["native_killed_once"], data=data, options=options)
    fuse.touch()
    run(tmp_path / "killed", Local(8), ["native_killed_once"], data=data, options=options)
    assert not fuse.exists()
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_poison_is_found_in_a_process_with_threads(tmp_path):
    found = run(tmp_path / "run", Local(8), ["native_exits", "bleu"], data=samples(64, s17="please exit"))
    assert statuses(found, "native_exits")["s17"] == DIED
    assert found["native_exits"]["unscored"] == {"error": 1, "missing_input": 10}
    assert found["bleu"]["unscored"] == {"missing_input": 10}


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


# Samples that no process survives


def statuses(found, name):
    table = found.scores().to_pylist()
    return {row["id"]: (row[f"{name}:status"], row[f"{name}:reason"]) for row in table}


DIED = ("error", "the process that scored this sample died, each time")


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(planning, "PART_SIZE", 3)


def test_samples_that_no_process_survives_are_errors_and_the_others_are_scored(tmp_path, small_parts):
    bad = {"s0": "exit", "s1": "please exit", "s9": "the exit"}  # the first, two in a part; the last, all of a part
    found = run(tmp_path / "two", Local(2), ["exits", "cider"], data=samples(10, **bad))
    silent = ("missing_input", "no generated_answer")
    assert found.info.parts == [3, 3, 3, 1]
    assert statuses(found, "exits") == {
        f"s{number}": DIED if f"s{number}" in bad else silent if number == 7 else ("ok", None) for number in range(10)
    }
    assert statuses(found, "cider") == {f"s{number}": silent if number == 7 else ("ok", None) for number in range(10)}
    assert found["exits"]["unscored"] == {"error": 3, "missing_input": 1}
    assert not (tmp_path / "two" / "scratch").exists()
    assert (tmp_path / "two" / "lint.json").exists()
    run(tmp_path / "three", Local(3), ["exits", "cider"], data=samples(10, **bad))
    assert content(tmp_path / "three") == content(tmp_path / "two")


def test_a_process_killed_once_changes_nothing(tmp_path):
    fuse = tmp_path / "fuse"
    options = {"killed_once": {"fuse": str(fuse)}}
    data = samples(29, s17="kill")
    run(tmp_path / "whole", Inline(), ["killed_once", "rarity"], data=data, options=options)
    fuse.touch()
    run(tmp_path / "killed", Local(2), ["killed_once", "rarity"], data=data, options=options)
    assert not fuse.exists()
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_a_process_killed_from_outside_changes_nothing(tmp_path):
    options = {"slow_words": {"pause": 0.02}}
    killed = []

    def kill(stage, done, total):
        if stage == "scoring" and done > 20 and not killed:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    plan, source = planned(overlaid(None, metrics=["slow_words"], plugins=[PLUGIN], options=options), samples(), None)
    execute.start(plan, source, tmp_path / "killed", executor=Local(2), progress=kill)
    assert killed
    assert not list(tmp_path.rglob("*.partial"))
    run(tmp_path / "whole", Inline(), ["slow_words"], options=options)
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_what_dies_of_no_single_sample_is_refused_and_this_process_lives(tmp_path, small_parts):
    data = samples(7, s0="kill", s1="kill")
    with pytest.raises(RunFolderError, match=r"part 0 cannot be scored.*no sample of it does that by itself"):
        run(tmp_path / "run", Local(2), ["killed_by_two"], data=data)


def test_too_many_are_refused_and_a_repaired_metric_goes_on(tmp_path, monkeypatch, small_parts):
    monkeypatch.setattr(isolation, "MOST_POISONED", 1)
    plugin = tmp_path / "ill.py"
    ill = Path(POISON).read_text()
    plugin.write_text(ill)
    data = samples(9, s3="kill", s4="kill", s5="kill")
    for name in ("killed", "killed_undeclared"):
        plugin.write_text(ill)
        plan, source = planned(overlaid(None, metrics=[name], plugins=[str(plugin)]), data, None)
        with pytest.raises(RunFolderError, match=rf"part 1: over 1 samples .* with {name}\. .*repair it"):
            execute.start(plan, source, tmp_path / name, executor=Local(2))
        plugin.write_text(ill.replace("os.kill(", "print("))
        if name == "killed":  # the version says that it is still the same metric
            assert resume(tmp_path / name, plugins=[plugin])[name]["unscored"] == {"missing_input": 2}
        else:  # its code is part of the signature
            with pytest.raises(RunFolderError, match="Start a new run"):
                resume(tmp_path / name, plugins=[plugin])


def test_a_dead_process_while_fitting_is_refused(tmp_path):
    plugin = tmp_path / "corpus.py"
    plugin.write_text(
        "import os\nfrom multimodal_eval import metric\n"
        "def corpus(samples):\n    os._exit(1)\n"
        "@metric('deadly', version='1', corpus=corpus)\ndef deadly(sample, corpus=None):\n    return 1.0\n"
    )
    plan, source = planned(overlaid(None, metrics=["deadly"], plugins=[str(plugin)]), samples(29), None)
    with pytest.raises(RunFolderError, match="a process died while gathering the corpus statistics"):
        execute.start(plan, source, tmp_path / "run", executor=Local(2))
    assert not (tmp_path / "run").exists()


# The process around them


def script(tmp_path, pause, body=""):
    """One that is not guarded by `if __name__ == "__main__"`, as people write them."""
    file = tmp_path / "script.py"
    file.write_text(
        textwrap.dedent(f"""
        from pathlib import Path
        from multimodal_eval import Sample
        from multimodal_eval.run import execute, plan as planning
        from multimodal_eval.run.config import overlaid
        from multimodal_eval.run.evaluate import planned
        from multimodal_eval.run.engine.local import Local

        planning.PART_SIZE = 7
        with open({str(tmp_path / "ran")!r}, "a") as log:
            log.write("once")
        data = [Sample(id=str(number), generated_answer="a b") for number in range(60)]
        settings = dict(metrics=["slow_words"], plugins=[{PLUGIN!r}], options={{"slow_words": {{"pause": {pause}}}}})
        plan, source = planned(overlaid(None, **settings), data, None)
        execute.start(plan, source, Path({str(tmp_path / "run")!r}), executor=Local(2))
        """)
    )
    return [sys.executable, str(file)]


def test_a_script_without_a_guard_runs_once(tmp_path):
    done = subprocess.run(script(tmp_path, 0), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ran").read_text() == "once"
    assert load_run(tmp_path / "run")["slow_words"]["value"] == 2


def test_runs_in_several_threads_leave_the_script_as_it_was():
    main = vars(sys.modules["__main__"])
    before = main["__spec__"], main.get("__file__")
    both = threading.Barrier(2)

    def hide():
        both.wait()
        with processes._main_hidden():
            time.sleep(0.02)

    second = threading.Thread(target=hide)
    second.start()
    both.wait()
    time.sleep(0.01)  # it is inside by now, and will leave first
    with processes._main_hidden():
        time.sleep(0.03)
    second.join()
    assert (main["__spec__"], main.get("__file__")) == before


def wait_for(condition, seconds=60):
    for _ in range(seconds * 50):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never happened")


def children_of(pid):
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_one_that_started_them(tmp_path, how):
    parent = subprocess.Popen(script(tmp_path, 0.05), stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: len(list((tmp_path / "run" / "scores").glob("*.parquet"))) > 1)
    children = children_of(parent.pid)
    assert len(children) >= 2
    if how == signal.SIGINT:
        os.killpg(parent.pid, how)  # what Ctrl-C in a terminal does
    else:
        os.kill(parent.pid, how)
    _, said = parent.communicate(timeout=60)
    assert parent.returncode != 0
    wait_for(lambda: not any(map(is_running, children)))
    if how == signal.SIGINT:
        assert said.rstrip().endswith("KeyboardInterrupt")
        assert "Process Spawn" not in said
    assert resume(tmp_path / "run", plugins=[PLUGIN])["slow_words"]["value"] == 2


def test_a_process_that_may_have_no_children_does_it_all(tmp_path):
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    child = context.Process(target=run, args=(tmp_path / "run", Local(2), ["rarity"]), daemon=True)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert load_run(tmp_path / "run")["rarity"]["n_scored"] == 51


def test_evaluate_takes_all_cores(monkeypatch, tmp_path):
    taken = []
    monkeypatch.setattr(local, "cores", lambda: 3)
    monkeypatch.setattr(local, "_in_threads", lambda worker, work, items, workers: taken.append(workers) or ())
    with pytest.raises(ValueError, match="zip"):
        evaluate(samples(), metrics=["bleu"], output=tmp_path / "run")
    assert taken == [3]
