"""The viewer follows real runs in other processes: worker processes, Ray, a model that answers, a judge."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.generate.server import Behaviour, Reply, Server, user_text
from tests.judges.server import Leanings, judge_script
from tests.report.viewer.viewed import client

pytest.importorskip("duckdb")
ROOT = Path(__file__).parents[3]
PATIENCE = 600.0  # seconds
pytestmark = pytest.mark.slow


@contextmanager
def started(kind: str, folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.report.viewer.gated_run", kind, str(folder), *arguments]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(process: subprocess.Popen[str] | None, page: Callable[[], str], *texts: str) -> str:
    """The page, as soon as it has all texts."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        text = page()
        if all(expected in text for expected in texts):
            return text
        if process is not None and process.poll() not in (None, 0):
            assert process.stderr is not None
            pytest.fail(process.stderr.read())
        time.sleep(0.1)
    pytest.fail(f"{texts} are not in {text}")


def shown(folder: Path, address: str) -> Callable[[], str]:
    browser = client(folder)

    def page() -> str:
        text = browser.get(address).text
        return re.sub(r"<[^>]+>|\s+", " ", text.replace("</bdi>", "").replace("<bdi>", ""))

    return page


@pytest.mark.parametrize("kind", ["local", pytest.param("ray", marks=pytest.mark.ray)])
def test_scoring_is_followed_on_every_engine(tmp_path: Path, kind: str):
    if kind == "ray":
        pytest.importorskip("ray")
    gate, runs = tmp_path / "gate", tmp_path / "runs"
    with started(kind, runs / "live", str(gate)) as process:
        wait_for(process, shown(runs, "/run/live"), "scoring", "12 of 24", "2 of 4 parts are committed", "gated_words")
        wait_for(process, shown(runs, "/"), "scoring", "12 of 24")
        assert (runs / "live" / "progress.json").exists()
        gate.touch()
        assert process.wait(PATIENCE) == 0
    wait_for(None, shown(runs, "/run/live"), "Histograms")
    assert not (runs / "live" / "progress.json").exists()


class Gate:
    """A server that answers the first samples, and the others when the gate opens."""

    def __init__(self, usual: Callable[[dict[str, Any], int], Reply]) -> None:
        self.is_open = False
        self._usual = usual

    def reply(self, body: dict[str, Any], attempt: int) -> Reply:
        number = re.search(r"(?:question|answer) (\d+)\b", user_text(body))
        assert number is not None
        if int(number[1]) >= 12 and not self.is_open:
            return Reply(fault="rate_limit")
        return self._usual(body, attempt)


@pytest.mark.parametrize(
    ("kind", "usual"),
    [("generating", lambda body, attempt: Reply("answer 1")), ("judging", judge_script(Leanings()))],
)
def test_a_model_that_is_asked_is_followed_with_its_failures(tmp_path: Path, kind: str, usual: Any):
    gate, runs = Gate(usual), tmp_path / "runs"
    with (
        Server(Behaviour(script=gate.reply, retry_after="0.5")) as server,
        started(kind, runs / "live", "none", server.url) as process,
    ):
        texts = (kind, "12 of 24", "2 of 4 parts are committed", "HTTP 429")
        wait_for(process, shown(runs, "/run/live"), *texts)
        wait_for(process, shown(runs, "/"), kind, "12 of 24", "HTTP 429")
        gate.is_open = True
        assert process.wait(PATIENCE) == 0
    wait_for(None, shown(runs, "/run/live"), "Histograms")


def test_a_killed_run_is_not_polled_and_says_so(tmp_path: Path):
    runs = tmp_path / "runs"
    with started("local", runs / "live", str(tmp_path / "gate")) as process:
        wait_for(process, shown(runs, "/run/live"), "scoring", "12 of 24")
    wait_for(None, shown(runs, "/run/live"), "interrupted", "has ended without a word", "12 of 24", "--resume")
    assert "hx-get" not in client(runs).get("/progress/live").text
    assert "every 2s" not in client(runs).get("/").text
