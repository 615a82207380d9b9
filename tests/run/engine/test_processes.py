"""Worker processes and the process that starts them: scripts without a main guard, signals, daemons."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from multimodal_eval import evaluate, load_run, resume
from tests.parts import started_with_part_size, workers_on
from tests.run.local_runs import PLUGIN, run, samples
from tests.run.processes import is_running

pytestmark = pytest.mark.usefixtures("many_parts", "nothing_is_left_running")


def script(tmp_path):
    """A script without `if __name__ == "__main__"`. It scores four parts, and the others when no file "hold" exists."""
    file = tmp_path / "script.py"
    file.write_text(
        textwrap.dedent(f"""
        from pathlib import Path
        from multimodal_eval import Sample, evaluate
        {started_with_part_size(7)}

        with open({str(tmp_path / "ran")!r}, "a") as log:
            log.write("once")
        answers = ["a b"] * 28 + ["a held"] * 32
        data = [Sample(id=str(number), generated_answer=answer) for number, answer in enumerate(answers)]
        options = {{"slow_words": {{"hold": {str(tmp_path / "hold")!r}}}}}
        settings = dict(metrics=["slow_words"], plugins=[{PLUGIN!r}], options=options)
        evaluate(data, output=Path({str(tmp_path / "run")!r}), workers=2, **settings)
        """)
    )
    return [sys.executable, str(file)]


def test_a_script_without_a_main_guard_runs_once(tmp_path):
    done = subprocess.run(script(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ran").read_text() == "once"
    assert load_run(tmp_path / "run")["slow_words"]["value"] == 2


def wait_for(condition, seconds=600):
    for _ in range(seconds * 50):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("timed out")


def children_of(pid):
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_worker_processes_end_with_their_parent(tmp_path, how):
    (tmp_path / "hold").touch()
    parent = subprocess.Popen(script(tmp_path), stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: len(list((tmp_path / "run" / "scores").glob("*.parquet"))) > 1)
    children = children_of(parent.pid)
    assert len(children) >= 2
    if how == signal.SIGINT:
        os.killpg(parent.pid, how)  # as Ctrl-C in a terminal
    else:
        os.kill(parent.pid, how)
    _, stderr = parent.communicate(timeout=600)
    assert parent.returncode != 0
    wait_for(lambda: not any(map(is_running, children)))
    if how == signal.SIGINT:
        assert stderr.rstrip().endswith("KeyboardInterrupt")
        assert "Process Spawn" not in stderr
    (tmp_path / "hold").unlink()
    assert resume(tmp_path / "run", plugins=[PLUGIN])["slow_words"]["value"] == 2


def test_a_daemon_process_scores_without_children(tmp_path):
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    child = context.Process(target=run, args=(tmp_path / "run", 2, ["rarity"]), daemon=True)
    child.start()
    child.join(600)
    assert child.exitcode == 0
    assert load_run(tmp_path / "run")["rarity"]["n_scored"] == 51


def test_evaluate_uses_all_cores(monkeypatch, tmp_path):
    used = workers_on(monkeypatch, 3)
    with pytest.raises(ValueError, match="zip"):
        evaluate(samples(), metrics=["bleu"], output=tmp_path / "run")
    assert used == [3]
