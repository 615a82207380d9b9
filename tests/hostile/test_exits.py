"""Metrics that end the process: `score` fails with a message, and a resumed run isolates the sample."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from multimodal_eval import evaluate, load_run
from multimodal_eval.core.errors import MetricError
from tests.cli.command_line import called
from tests.hostile.campaign import EVERY
from tests.hostile.plugins import BAD, COUNT, aggregating, data_file, for_the_bad_sample, plugin

EXITS = ["sys.exit()", "sys.exit(0)", "sys.exit(None)", "sys.exit(5)", "sys.exit('over')", "exit()", "raise SystemExit"]
PLACES = {
    "sample": (for_the_bad_sample("sys.exit(0)"), f"while scoring the sample '{BAD}'"),
    "thread": (for_the_bad_sample("sys.exit(0)", ", placement='thread'"), f"while scoring the sample '{BAD}'"),
    "model": (for_the_bad_sample("sys.exit(0)", ", placement='model'"), f"while scoring the sample '{BAD}'"),
    "batch": (
        "def batch(samples): sys.exit(0)\n@metric('m', version='1', batch=batch)\ndef m(sample): return 1.0\n",
        "while scoring 12 samples from '0' on",
    ),
    "import": ("sys.exit(0)\n", "while being imported"),
    "corpus": (
        "def corpus(samples): sys.exit(0)\n"
        "@metric('m', version='1', corpus=corpus)\ndef m(sample, corpus=None): return 1.0\n",
        "while gathering its corpus statistics",
    ),
    "open": (
        "class M(Metric):\n    name = 'm'\n    def open(self, state): sys.exit(0)\nregister(M())\n",
        "while being opened",
    ),
    "aggregate": (aggregating("sys.exit(0)"), "while aggregating its scores"),
}
DEATHS = {
    "os._exit(0)": "os._exit(0)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "ctypes.string_at(0)",
}
PLACEMENTS = ["process", "thread", "model"]


def _arguments(folder: Path, text: str) -> list[str]:
    file = plugin(folder, text)
    return ["score", str(data_file(folder)), "--metrics", "m", "--plugin", str(file), "-o", str(folder / "run")]


def _started(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "multimodal_eval.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("place", PLACES)
def test_an_exit_is_an_error_wherever_it_happens(tmp_path: Path, place: str) -> None:
    text, doing = PLACES[place]
    done = called(*_arguments(tmp_path, text), "--fail-under", "m=0.1")
    assert done.returncode == 1
    assert "EXIT: " in done.stderr
    assert "called sys.exit(0)" in done.stderr
    assert doing in done.stderr
    assert not (tmp_path / "run" / "results.json").exists()


@pytest.mark.parametrize("statement", EXITS)
def test_every_exit_code_is_an_error(tmp_path: Path, statement: str) -> None:
    done = called(*_arguments(tmp_path, for_the_bad_sample(statement)))
    assert done.returncode == 1
    assert done.stderr.startswith("error: EXIT: m called sys.exit(")


def test_an_exit_in_python_is_an_exception(tmp_path: Path) -> None:
    file = plugin(tmp_path, for_the_bad_sample("sys.exit(0)"))
    with pytest.raises(MetricError, match=r"EXIT: m called sys.exit\(0\)"):
        evaluate(data_file(tmp_path), metrics=["m"], plugins=[str(file)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0\n", "failed while being imported: ZeroDivisionError: division by zero (plugin.py:6)"),
        ("def (\n", "failed while being imported: SyntaxError: invalid syntax (plugin.py, line 6)"),
        (aggregating("raise ValueError('why')"), "m failed while aggregating its scores: ValueError: why (plugin.py"),
    ],
)
def test_other_failures_outside_of_samples_are_errors(tmp_path: Path, text: str, message: str) -> None:
    done = called(*_arguments(tmp_path, text))
    assert done.returncode == 1
    assert done.stderr.startswith("error: FAILED: ")
    assert message in done.stderr


@pytest.mark.parametrize("text", ["os._exit(0)\n", for_the_bad_sample("os._exit(0)", ", placement='thread'")])
def test_a_silent_end_of_the_process_has_a_message(tmp_path: Path, text: str) -> None:
    done = _started(*_arguments(tmp_path, text), "--fail-under", "m=0.1")
    assert done.returncode == 1
    assert done.stderr.startswith("error: EXIT: code that this command called has ended it, by os._exit(0).")


def test_a_child_of_a_metric_may_end_as_it_likes(tmp_path: Path) -> None:
    forks = "child = os.fork()\n    if not child: os._exit(0)\n    assert os.waitpid(child, 0)[1] == 0"
    done = _started(*_arguments(tmp_path, for_the_bad_sample(forks)))
    assert done.returncode == 0, done.stderr
    assert "EXIT" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("death", "placement"), [*product(DEATHS, PLACEMENTS)] if EVERY else [*zip(DEATHS, PLACEMENTS, strict=True)]
)
def test_a_resumed_run_isolates_the_sample_that_kills_its_process(tmp_path: Path, death: str, placement: str) -> None:
    arguments = _arguments(tmp_path, for_the_bad_sample(DEATHS[death], f", placement='{placement}'"))
    first = _started(*arguments, "--workers", "1")
    assert first.returncode != 0
    assert not (tmp_path / "run" / "results.json").exists()
    again = _started("score", "--resume", str(tmp_path / "run"), "--plugin", arguments[5], "--fail-under", "m=0.1")
    assert again.returncode == 0, again.stderr
    run = load_run(tmp_path / "run")
    assert (run["m"]["n_scored"], run["m"]["unscored"]) == (COUNT - 1, {"error": 1})
    assert not (tmp_path / "run" / "scratch").exists()
    rows = {row["id"]: row["m:status"] for row in run.scores().to_pylist()}
    assert [name for name, status in rows.items() if status != "ok"] == [BAD]


@pytest.mark.slow
def test_a_corpus_that_kills_its_process_is_an_error_when_resumed(tmp_path: Path) -> None:
    text = (
        "def corpus(samples): os.kill(os.getpid(), signal.SIGKILL)\n"
        "@metric('m', version='1', corpus=corpus, placement='thread')\ndef m(sample, corpus=None): return 1.0\n"
    )
    arguments = _arguments(tmp_path, text)
    assert _started(*arguments).returncode == -9
    again = _started("score", "--resume", str(tmp_path / "run"), "--plugin", arguments[5])
    assert again.returncode == 1
    assert "a process crashed while gathering the corpus statistics" in again.stderr


def test_an_orderly_end_leaves_no_mark(tmp_path: Path) -> None:
    done = called(*_arguments(tmp_path, for_the_bad_sample("sys.exit(0)")))
    assert done.returncode == 1
    assert not list((tmp_path / "run").glob("scratch/*"))


def test_a_debug_variable_shows_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "MMEVAL_DEBUG", "1")
    done = called(*_arguments(tmp_path, aggregating("raise ValueError('why')")))
    assert "Traceback" in done.stderr
    assert "ValueError: why" in done.stderr


def test_a_bug_is_named_as_one_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise LookupError("of ours")

    monkeypatch.setattr("multimodal_eval.evaluation.metrics_registry.list_available", fail)
    done = called("ls", "metrics")
    assert done.returncode == 1
    assert done.stderr.startswith("error: BUG: LookupError: of ours\n")
    assert "MMEVAL_DEBUG=1" in done.stderr
    assert "Traceback" not in done.stderr
