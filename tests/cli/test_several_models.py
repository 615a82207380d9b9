"""`mmeval run` with several models: one run for each, asked at the same time, and one table."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from multimodal_eval import load_run
from multimodal_eval.generate.engine import in_one_loop, run_async
from tests.cli.command_line import mmeval
from tests.generate.server import Behaviour, Reply, Server, user_text


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(number), "question": f"say {number}", "references": [str(number)]} for number in range(12)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return "data.jsonl"


def only_one_is_right(body, earlier):
    return Reply(user_text(body).splitlines()[0].split()[-1] if body["model"] == "right" else "no")


SHARED = ("--metrics", "exact_match", "--no-report", "--concurrency", "4", "-o", "all")


def test_models_at_one_address_share_the_limit_and_get_one_table(data):
    with Server(Behaviour(script=only_one_is_right, latency=0.02, models=("right", "wrong"))) as server:
        models = ("--model", "openai:right", "--model", "openai:wrong", "--base-url", server.url)
        done = mmeval("run", data, *models, *SHARED)
    assert server.most_at_once <= 4
    assert "openai:right is better than openai:wrong over 1 task" in done.stdout
    assert done.stdout.endswith("2 of 2 runs are in all. Compare: mmeval table all\n")
    assert load_run("all/openai_right").entries["exact_match"].value == 1
    assert load_run("all/openai_wrong").entries["exact_match"].value == 0
    again = mmeval("run", data, *models, *SHARED)  # the server is gone: nothing is asked
    assert again.stderr.count("already in all/") == 2
    assert mmeval("table", "all").stdout in again.stdout


def test_a_file_names_models_with_their_settings(data, tmp_path):
    with Server(Behaviour(script=only_one_is_right, models=("right",))) as server:
        settings = {"model": "openai:right", "base_url": server.url, "price": {"input": 1, "output": 2}}
        models = {"short": {**settings, "parameters": {"max_tokens": 7}}, "long": settings}
        (tmp_path / "models.yaml").write_text(json.dumps(models))
        done = mmeval("run", data, "--model", "models.yaml", "--temperature", "0", *SHARED)
        bodies = [json.loads(body) for body in server.bodies.values()]
    limits = [body.get("max_completion_tokens", body.get("max_tokens")) for body in bodies]
    assert limits.count(7) == limits.count(None) == 12
    assert all(body["temperature"] == 0 for body in bodies if "temperature" in body)
    assert "Is short better than long? No difference is shown over 1 task: short - long is 0.0000" in done.stdout
    assert load_run("all/short").info.generation.cost > 0


def test_a_model_that_fails_does_not_stop_the_others(data):
    with Server(Behaviour(script=only_one_is_right, models=("right",))) as server:
        models = ("--model", "openai:right", "--model", "openai:absent", "--base-url", server.url)
        done = mmeval("run", data, *models, *SHARED, code=1)
    assert "error: openai_absent: the endpoint has no model 'absent'" in done.stderr
    assert "! failed: openai_absent. The same command continues with them" in done.stderr
    assert "1 of 2 runs are in all" in done.stdout
    assert load_run("all/openai_right").entries["exact_match"].value == 1


def test_what_several_models_exclude(data, tmp_path):
    twice = mmeval("run", data, "--model", "echo:a", "--model", "echo:a", *SHARED, code=1)
    assert "the model 'echo:a' is named twice" in twice.stderr
    batch = mmeval("run", data, "--model", "echo:a", "--model", "echo:b", "--batch-out", "out", *SHARED, code=2)
    assert "a batch is that of one model" in batch.stderr
    other = mmeval("dialogue", "run", data, data, "--model", "echo:a", "--model", "echo:b", code=2)
    assert "this command asks one model" in other.stderr
    (tmp_path / "models.yaml").write_text("small: {modle: echo}")
    assert (
        "`small` must have a `model`: PROVIDER:NAME"
        in mmeval("run", data, "--model", "models.yaml", *SHARED, code=1).stderr
    )


def test_runs_wait_for_each_other_only_in_one_loop():
    barrier = asyncio.Barrier(2)  # of one event loop: nobody passes alone

    def job(name: str) -> str:
        return f"{name} {run_async(asyncio.wait_for(barrier.wait(), 600)) in (0, 1)}"

    def failing() -> str:
        raise KeyError("c")

    *passed, failed = in_one_loop([partial(job, "a"), partial(job, "b"), failing])
    assert passed == ["a True", "b True"]
    assert isinstance(failed, KeyError)


@pytest.mark.slow
def test_an_interruption_stops_all_models_and_the_same_command_continues(data):
    with Server(Behaviour(script=lambda body, earlier: Reply(fault="hang"), models=("a", "b"))) as server:
        models = ("--model", "openai:a", "--model", "openai:b", "--base-url", server.url)
        more = (*SHARED, "--concurrency", "40")
        command = [sys.executable, "-m", "multimodal_eval", "run", data, *models, *more]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
        while server.requests < 2 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "Traceback" not in err
