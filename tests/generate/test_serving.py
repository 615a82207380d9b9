"""A server that is started for a run: a process of its own, which ends with the run, however that ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from multimodal_eval import load_run
from tests.cli.command_line import mmeval
from tests.generate.server import Behaviour, Reply, Server

ROOT = Path(__file__).parents[2]
SERVER = f"{sys.executable} -m tests.generate.server --port {{port}}"


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(number), "question": "Is it?", "references": ["yes"]} for number in range(3)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return "data.jsonl"


def command(data, serve, *more):
    return ("run", data, "--model", "vllm:tiny", "--serve", serve, "--metrics", "exact_match", "--no-report", *more)


def servers() -> list[int]:
    """The processes that this test has started."""
    left = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            here = folder.name.isdecimal() and (folder / "cwd").resolve() == Path.cwd().resolve()
        except OSError:
            continue
        if here and b"tests.generate.server" in words:
            left.append(int(folder.name))
    return left


@pytest.mark.slow
def test_a_server_is_started_for_a_run_and_stopped_after_it(data):
    mmeval(*command(data, f"{SERVER} --constant yes", "-o", "run"))
    run = load_run("run")
    assert run.entries["exact_match"].value == 1
    assert run.info.config.generation.serve == f"{SERVER} --constant yes"
    assert servers() == []


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel of Linux tells the server")
def test_a_server_ends_with_a_run_that_is_killed(data):
    serve = f"{SERVER} --latency 600"
    arguments = [sys.executable, "-m", "multimodal_eval", *command(data, serve, "-o", "run")]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 600
    while not servers() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert servers()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while servers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert servers() == []


def test_a_server_that_does_not_start_shows_its_log(data):
    fails = f"{sys.executable} -c \"import sys; print('no such weights: {{model}} at {{port}}'); sys.exit(7)\""
    done = mmeval(*command(data, fails, "-o", "run"), code=1)
    assert "the server has ended with status 7:\n  no such weights: tiny at " in done.stderr


def test_commands_that_cannot_be_served(data):
    assert "must have {port} in its command" in mmeval(*command(data, "vllm serve x"), code=1).stderr
    absent = mmeval(*command(data, "no-such-program --port {port}"), code=1).stderr
    assert "no-such-program cannot be started: No such file or directory" in absent
    no_server = mmeval("run", data, "--model", "echo", "--serve", "x {port}", "--metrics", "exact_match", code=1)
    assert "`serve` starts a server, and echo is not one" in no_server.stderr


def test_several_addresses_share_the_load_and_one_may_fail(data):
    def busy(body, earlier):
        return Reply("yes")

    rows = [{"id": str(number), "question": f"Is it {number}?", "references": ["yes"]} for number in range(40)]
    Path("many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with Server(Behaviour(script=busy, latency=0.02)) as first, Server(Behaviour(script=busy, latency=0.02)) as second:
        both = ("--base-url", first.url, "--base-url", second.url)
        mmeval(
            "run", "many.jsonl", "--model", "vllm:tiny", *both, "--metrics", "exact_match", "-o", "run", "--no-report"
        )
        assert first.requests + second.requests == 41  # with the small first one
        assert min(first.requests, second.requests) >= 10
    assert load_run("run").info.generation.base_url == f"{first.url},{second.url}"
    with Server(Behaviour(script=busy)) as alive:
        both = ("--base-url", alive.url, "--base-url", first.url)  # which is gone
        mmeval(
            "run", "many.jsonl", "--model", "vllm:tiny", *both, "--metrics", "exact_match", "-o", "one", "--no-report"
        )
    assert load_run("one").entries["exact_match"].n_scored == 40
