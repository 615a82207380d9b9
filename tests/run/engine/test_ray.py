from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from multimodal_eval import Engine, evaluate, metric, rescore, resume
from multimodal_eval.core.errors import (
    ClusterError,
    ConfigError,
    InputError,
    RunFolderError,
    UnavailableError,
    UnknownNameError,
)
from multimodal_eval.data.readers import splits
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.run.engine.ray import RayExecutor
from multimodal_eval.run.steps.read import Read
from multimodal_eval.run.steps.score import CRASHED
from tests.parts import set_part_size, started_with_part_size
from tests.run.kill_and_resume import START, content
from tests.run.processes import descendants, is_running

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.ray

CRASHING_WORDS, PLUGIN = (str(Path(__file__).parents[1] / name) for name in ("crashing_words.py", "plugin.py"))
PART = 6
PROGRESS = re.compile(r"scoring \w+: .*\n")  # of a slow machine
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}


def rows(count, offset=0):
    nouns = ("dog", "cat", "bird", "horse")
    return [
        {
            "id": f"s{number}",
            "references": [f"a {nouns[number % 4]} on a street", f"the {nouns[number % 3]} runs"],
            "generated_answer": " ".join(["a", nouns[(number + offset) % 4], "runs"][: 1 + (number + offset) % 3]),
        }
        for number in range(count)
    ]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    set_part_size(monkeypatch, PART, with_model=PART)


@pytest.fixture(scope="module", autouse=True)
def separate_clusters():
    """A separate folder for the clusters of these tests, so that the user's clusters are not touched."""
    with pytest.MonkeyPatch.context() as patch, short_path() as folder:
        patch.setenv("RAY_TMPDIR", folder)
        yield


def short_path():
    """A temporary folder with a short path, because the paths of sockets are limited."""
    return tempfile.TemporaryDirectory(dir="/tmp", prefix="ray-", ignore_cleanup_errors=True)


@pytest.fixture(scope="module")
def address(separate_clusters):
    """A cluster of two nodes, one of which claims to have a GPU."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    cluster.add_node(num_gpus=1, **NODE)
    yield cluster.address
    cluster.shutdown()


@pytest.fixture
def data(tmp_path):
    return write_rows(rows(24), tmp_path / "data.jsonl")


def write_rows(samples, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in samples))
    return path


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


@pytest.fixture
def short_folder(monkeypatch):
    """The temporary folder of private clusters. A killed cluster leaves files in it."""
    with short_path() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def scored(log):
    """Read and clear the log: (id, process, its parent, its GPUs) per scored sample."""
    file = log / "scored"
    lines = [tuple(line.split()) for line in file.read_text().splitlines()] if file.exists() else []
    file.unlink(missing_ok=True)
    return lines


def crashing(name, log, **options):
    return {"metrics": [name], "plugins": [CRASHING_WORDS], "options": {name: {"log": str(log), **options}}}


def test_a_private_cluster_gives_the_same_bytes_and_is_removed(data, tmp_path, short_folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(PLUGIN, tmp_path)
    settings = {"metrics": ["cider_d", "slow_words", "rarity", "corpus_precision"], "plugins": ["plugin.py"]}
    stages = []
    evaluate(data, output="local", **settings)
    evaluate(data, output="ray", engine="ray", workers=2, progress=lambda *step: stages.append(step), **settings)
    assert content(tmp_path / "ray") == content(tmp_path / "local")
    assert len(list((tmp_path / "ray" / "scores").iterdir())) == 4
    assert [step for step in stages if step[0] == "scoring"] == [("scoring", done, 24) for done in (0, 6, 12, 18, 24)]
    assert not ray.is_initialized()
    assert list(short_folder.iterdir()) == []


def write_files(folder, samples, count):
    folder.mkdir()
    for number in range(count):
        write_rows(samples[number::count], folder / f"part-{number}.jsonl")
    return folder


@pytest.mark.parametrize("is_joined", [False, True])
def test_several_files_are_read_by_tasks(address, tmp_path, monkeypatch, is_joined):
    samples = rows(90)
    answers = [{"id": row["id"], "generated_answer": row["generated_answer"]} for row in samples]
    if is_joined:
        samples = [{"id": row["id"], "references": row["references"]} for row in samples]
    data = write_files(tmp_path / "data", samples, 4)
    predictions = write_files(tmp_path / "predictions", answers, 3) if is_joined else None
    settings = {"metrics": ["cider_d"]}
    local = evaluate(data, predictions, output=tmp_path / "local", **settings)
    monkeypatch.setattr(splits, "SPLIT", 1000)
    monkeypatch.setattr(Read, "task", None)  # in this process, which only plans and sums
    monkeypatch.setattr(FileInput, "parts", None)
    monkeypatch.setattr(FileInput, "describe", None)
    cluster = Engine("ray", address=address)
    distributed = evaluate(data, predictions, output=tmp_path / "ray", engine=cluster, **settings)
    assert content(tmp_path / "ray") == content(tmp_path / "local")
    for field in ("input", "counts", "input_notes", "parts"):
        assert getattr(distributed.info, field) == getattr(local.info, field)


def test_a_duplicate_in_two_files_has_the_same_message(address, tmp_path, monkeypatch):
    monkeypatch.setattr(splits, "SPLIT", 1000)
    data = write_files(tmp_path / "data", [*rows(60), rows(1)[0]], 3)
    refusals = []
    for engine in (Engine("local", workers=1), Engine("ray", address=address)):
        with pytest.raises(InputError) as refusal:
            evaluate(data, metrics=["rouge_l"], output=tmp_path / engine.name, engine=engine)
        refusals.append(str(refusal.value))
        assert not (tmp_path / engine.name).exists()
    assert refusals[0] == refusals[1]


def test_all_nodes_of_a_cluster_work(address, data, log, tmp_path):
    settings = crashing("crashing_words", log)
    evaluate(data, output=tmp_path / "local", **settings)
    scored(log)
    (log / "together").touch()
    evaluate(data, output=tmp_path / "ray", engine=Engine("ray", address=address), **settings)
    lines = scored(log)
    assert sorted(line[0] for line in lines) == sorted(row["id"] for row in rows(24))
    assert len({line[2] for line in lines}) == 2  # the workers of a node are its child processes
    assert content(tmp_path / "ray") == content(tmp_path / "local")


@pytest.mark.parametrize("name", ["crashing_words", "crashing_model"])
def test_a_killed_process_is_replaced(address, data, log, tmp_path, name):
    settings = crashing(name, log, victim="s9", crashes=1)
    (tmp_path / "run.yaml").write_text(json.dumps(settings))
    called = command(data, "--config", tmp_path / "run.yaml", "-o", tmp_path / "ray", "--format", "json", "--no-report")
    finished = subprocess.run(
        [*called, "--engine", f"ray,address={address}"], capture_output=True, text=True, check=True
    )
    assert json.loads(finished.stdout)["metrics"][name]["n_scored"] == 24
    assert PROGRESS.sub("", finished.stderr) == ""  # a recovered crash prints nothing
    assert (log / "crash-0").exists()
    times = [line[0] for line in scored(log)].count("s9")
    assert times == 2
    evaluate(data, output=tmp_path / "local", **settings)  # no more crashes
    assert content(tmp_path / "ray") == content(tmp_path / "local")


@pytest.mark.parametrize("name", ["crashing_words", "crashing_model"])
def test_a_sample_that_crashes_every_process_is_an_error_and_all_others_are_scored(
    address, log, tmp_path, name, monkeypatch
):
    set_part_size(monkeypatch, 4, with_model=4)  # each step of the search starts processes
    data = write_rows(rows(12), tmp_path / "data.jsonl")
    settings = crashing(name, log, victim="s9", crashes=1000)
    run = evaluate(data, output=tmp_path / "ray", engine=Engine("ray", address=address), **settings)
    table = run.scores(["id", f"{name}:status", f"{name}:reason"]).to_pylist()
    statuses = {row["id"]: (row[f"{name}:status"], row[f"{name}:reason"]) for row in table}
    status, reason = statuses.pop("s9")
    assert status == "error"
    assert reason == CRASHED.reason
    assert len(statuses) == 11
    assert set(statuses.values()) == {("ok", None)}
    if name == "crashing_words":  # locally, a model runs in this process and would crash it
        evaluate(data, output=tmp_path / "local", workers=2, **settings)
        assert content(tmp_path / "ray") == content(tmp_path / "local")


def test_a_gpu_is_shared(address, data, log, tmp_path):
    settings = crashing("crashing_model", log)
    evaluate(data, output=tmp_path / "ray", engine=Engine("ray", address=address, gpus_per_worker=0.5), **settings)
    lines = scored(log)
    assert {line[3] for line in lines} == {"0"}
    assert len({line[1] for line in lines}) == 1  # two fit on the node's GPU, but only one on its core


def test_a_missing_gpu_is_an_error_and_not_an_endless_wait(address, data, log, tmp_path):
    with pytest.raises(UnavailableError, match="needs a core and 2 GPUs"):
        evaluate(
            data,
            output=tmp_path / "ray",
            engine=Engine("ray", address=address, gpus_per_worker=2),
            **crashing("crashing_model", log),
        )


def command(*arguments):
    start = f"{started_with_part_size('int(sys.argv[1])', with_model=True)}; {START}"
    return [sys.executable, "-c", start, str(PART), "score", *map(str, arguments)]


def interrupted(signal_number, *arguments, part_of_ray=None):
    """Send a signal to a run, or to a process of its cluster, once two parts are committed.

    Returns its exit status and stderr.
    """
    folder = Path(arguments[arguments.index("-o") + 1])
    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    process = subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=bare)
    while len(list((folder / "scores").glob("part-*.parquet"))) < 2:
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.02)
    if part_of_ray is None:
        process.send_signal(signal_number)
    else:
        (victim,) = (pid for pid, name in descendants(process.pid) if name == part_of_ray)
        os.kill(victim, signal_number)
    _, stderr = process.communicate(timeout=600)
    return process.returncode, stderr.decode()


def wait_until_idle(log):
    """Wait until the processes that scored have ended. They soon notice that their driver is gone."""
    while any(is_running(line.split()[1]) for line in (log / "scored").read_text().splitlines()):
        time.sleep(0.05)


@pytest.mark.parametrize("cluster", ["private", "joined"])
def test_an_interrupted_run_continues_with_any_engine(cluster, address, log, tmp_path, short_folder):
    samples = rows(48)
    data, folder, config = write_rows(samples, tmp_path / "data.jsonl"), tmp_path / "run", tmp_path / "run.yaml"
    config.write_text(json.dumps(crashing("crashing_words", log)))
    plugins = json.loads(config.read_text())["plugins"]
    (log / "held").write_text(" ".join(row["id"] for row in samples[18:]))  # until the run is interrupted
    arguments = (data, "--config", config, "-o", folder, "--engine")
    if cluster == "private":
        code, _ = interrupted(signal.SIGKILL, *arguments, "ray")
        assert code == -signal.SIGKILL
    else:
        code, stderr = interrupted(signal.SIGINT, *arguments, f"ray,address={address}")
        assert code == 130, stderr
        assert f"Continue with: mmeval score --resume {folder}" in stderr
    wait_until_idle(log)
    scored(log)
    (log / "held").unlink()
    before = {path.name: path.stat().st_mtime_ns for path in (folder / "scores").glob("part-*.parquet")}
    left = [number for number in range(8) if f"part-{number:05d}.parquet" not in before]
    assert 0 < len(left) <= 6
    shutil.copytree(folder, tmp_path / "copy")

    resume(folder, plugins=plugins, engine=Engine("ray", address=address))
    todo = sorted(row["id"] for number in left for row in samples[number * PART : (number + 1) * PART])
    assert sorted(line[0] for line in scored(log)) == todo  # each remaining sample once
    assert {name: (folder / "scores" / name).stat().st_mtime_ns for name in before} == before
    resume(tmp_path / "copy", plugins=plugins, engine="local", media_roots=[tmp_path])
    assert sorted(line[0] for line in scored(log)) == todo
    evaluate(data, output=tmp_path / "whole", config=config)
    assert content(folder) == content(tmp_path / "copy") == content(tmp_path / "whole")


@pytest.mark.parametrize("name", ["crashing_words", "crashing_model"])
@pytest.mark.parametrize("part_of_ray", ["raylet", "gcs_server"])
def test_the_death_of_the_cluster_is_an_ordinary_error_and_nothing_is_lost(
    part_of_ray, name, log, tmp_path, short_folder
):
    samples = rows(48)
    data, folder, config = write_rows(samples, tmp_path / "data.jsonl"), tmp_path / "run", tmp_path / "run.yaml"
    config.write_text(json.dumps(crashing(name, log)))
    (log / "held").write_text(" ".join(row["id"] for row in samples[18:]))  # until the cluster is dead
    arguments = (data, "--config", config, "-o", folder, "--engine", "ray", "--workers", "2")
    code, stderr = interrupted(signal.SIGKILL, *arguments, part_of_ray=part_of_ray)
    assert code == 1, stderr
    what = {"raylet": "its node process (raylet)", "gcs_server": "its control process (GCS)"}[part_of_ray]
    error = stderr[stderr.index("error: ") :].splitlines()
    assert error[0].startswith(
        f"error: the private Ray cluster of this run died during the run: {what} does not answer"
    )
    resuming = f"mmeval score --resume {folder} --plugin {CRASHING_WORDS}"
    assert error[1] == f"What was scored so far is kept. After a repair, continue with: {resuming}"
    assert len(error) == 2
    wait_until_idle(log)
    (log / "held").unlink()
    kept = len(list((folder / "scores").glob("part-*.parquet")))
    scored(log)
    resume(folder, plugins=[CRASHING_WORDS], engine="local", media_roots=[tmp_path])
    assert len(scored(log)) == 48 - PART * kept  # each remaining sample once
    evaluate(data, output=tmp_path / "whole", config=config)
    assert content(folder) == content(tmp_path / "whole")


def test_an_error_of_a_task_stays_a_bug_and_one_of_the_cluster_does_not(address):
    errors = ray.exceptions
    with RayExecutor(address=address) as executor:
        for error, kind in (
            (errors.LocalRayletDiedError(), ClusterError),
            (errors.OwnerDiedError("00", None, "x"), ClusterError),
            (errors.RpcError("unavailable"), ClusterError),
            (ConnectionError("lost"), ClusterError),
            (errors.RaySystemError("a result cannot be read"), errors.RaySystemError),
            (errors.RayTaskError("f", "", ConnectionError("of the task")).as_instanceof_cause(), errors.RayTaskError),
            (ZeroDivisionError(), ZeroDivisionError),
        ):
            with pytest.raises(kind), executor._cluster_errors():
                raise error
        executor._vital["its control process (GCS)"] = ("127.0.0.1", 1)  # nothing listens there
        with pytest.raises(ClusterError, match="GCS"), executor._cluster_errors():
            raise errors.RaySystemError("lost")


def test_rescoring_computes_new_metrics(address, data, log, tmp_path):
    evaluate(data, metrics=["rouge_l"], output=tmp_path / "old")
    changes = crashing("crashing_words", log) | {"metrics": ["rouge_l", "cider_d", "crashing_words"]}
    rescore(tmp_path / "old", changes, output=tmp_path / "ray", engine=Engine("ray", address=address))
    rescore(tmp_path / "old", changes, output=tmp_path / "local")
    assert content(tmp_path / "ray") == content(tmp_path / "local")


def test_an_existing_connection_is_used_and_kept(address, tmp_path):
    # Its processes keep running. They must not score the second run with the corpus of the first.
    settings = {"metrics": ["rarity"], "plugins": [PLUGIN]}
    ray.init(address=address, log_to_driver=False)
    try:
        for offset in (0, 1):
            evaluate(rows(14, offset), output=tmp_path / "ray", engine="ray", **settings)
            assert ray.is_initialized()
            evaluate(rows(14, offset), output=tmp_path / "local", **settings)
            assert content(tmp_path / "ray") == content(tmp_path / "local")
            shutil.rmtree(tmp_path / "ray")
            shutil.rmtree(tmp_path / "local")
    finally:
        ray.shutdown()


def test_an_error_in_a_worker_is_the_same_as_in_a_local_run(address, data, log, tmp_path):
    settings = crashing("crashing_words", log, refused="s9")
    refusals = []
    for engine in (Engine("local", workers=1), Engine("ray", address=address)):
        with pytest.raises(UnknownNameError) as refusal:
            evaluate(data, output=tmp_path / engine.name, engine=engine, **settings)
        refusals.append((type(refusal.value), str(refusal.value), refusal.value.known))
    assert refusals[0] == refusals[1]
    assert not ray.is_initialized()


def test_a_node_with_another_metric_version_is_refused(address, data, log, tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_TEST_VERSION", "2")  # in this process, not on the nodes
    settings = crashing("local_words", log)
    with pytest.raises(RunFolderError, match=r"would score with local_words\|v:1.*started with local_words\|v:2"):
        evaluate(data, output=tmp_path / "ray", engine=Engine("ray", address=address), **settings)
    assert scored(log) == []
    resume(tmp_path / "ray")
    evaluate(data, output=tmp_path / "local", **settings)
    assert content(tmp_path / "ray") == content(tmp_path / "local")


def test_invalid_input_starts_no_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(ray, "init", None)
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "generated_answer": 5}\n')
    refusals = []
    for engine in ("local", "ray"):
        with pytest.raises(InputError) as refusal:
            evaluate(tmp_path / "bad.jsonl", metrics=["rouge_l"], output=tmp_path / engine, engine=engine)
        refusals.append(str(refusal.value))
        assert not (tmp_path / engine).exists()
    assert refusals[0] == refusals[1]


def test_a_metric_known_only_to_this_process_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(ray, "init", None)

    @metric("only_here")
    def only_here(sample):
        return 1.0

    with pytest.raises(ConfigError, match=r"only_here.*plug-in file"):
        evaluate(rows(3), metrics=["only_here"], output=tmp_path / "run", engine="ray")
    assert not (tmp_path / "run").exists()


def test_an_unreachable_address_is_reported_before_the_input_is_read(data, tmp_path):
    with pytest.raises(UnavailableError, match=r"the Ray cluster '127\.0\.0\.1:1' cannot be reached"):
        evaluate(data, metrics=["rouge_l"], output=tmp_path / "run", engine=Engine("ray", address="127.0.0.1:1"))
    assert not (tmp_path / "run").exists()


def test_a_run_on_an_fsspec_filesystem(address, data, tmp_path):
    settings = {"metrics": ["cider_d", "rarity"], "plugins": [PLUGIN]}
    local = evaluate(data, output=tmp_path / "local", **settings)
    (tmp_path / "remote").mkdir()
    url = f"dir::file://{tmp_path}/remote/run"  # through fsspec, visible to every process
    remote = evaluate(data, output=url, engine=Engine("ray", address=address), **settings)
    assert remote.results == local.results
    assert remote.scores().equals(local.scores())


def test_a_memory_filesystem_is_refused(address, data):
    with pytest.raises(RunFolderError, match="is in this process"):
        evaluate(data, output="memory://ray/run", engine=Engine("ray", address=address), metrics=["cider_d"])


def test_samples_of_one_image_are_brought_together_as_in_a_local_run(address, tmp_path):
    shared = [{**row, "image": f"{number % 7}.png"} for number, row in enumerate(rows(24))]
    data = write_rows(shared, tmp_path / "shared.jsonl")
    evaluate(data, output=tmp_path / "local", metrics=["cider_d"])
    run = evaluate(data, output=tmp_path / "ray", engine=Engine("ray", address=address), metrics=["cider_d"])
    assert content(tmp_path / "ray") == content(tmp_path / "local")
    assert run["cider_d"]["signature"].endswith("|per:image|errors:default@2")
