"""`mmeval` as a process that is asked to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from multimodal_eval import load_run
from tests.cli.command_line import mmeval

MODEL = """
import os, pathlib, signal, time
from multimodal_eval.generate.registry import FunctionGenerator

def answer(request):
    if request.id == "b" and not pathlib.Path("asked").exists():
        pathlib.Path("asked").touch()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.5)
    return "yes"

def make(name, config):
    model = FunctionGenerator(answer, "ending")
    model.at_once = 1
    return model
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_ignored", [False, True], ids=["", "Ctrl-C is ignored"])
def test_a_run_that_is_terminated_names_the_command_that_continues_it(tmp_path, monkeypatch, is_ignored):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    (tmp_path / "model.py").write_text(MODEL)
    rows = [{"id": name, "question": "Is it?", "references": ["yes"]} for name in "abc"]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "ending.dist-info").mkdir()
    (tmp_path / "ending.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: ending\nVersion: 1\n")
    (tmp_path / "ending.dist-info" / "entry_points.txt").write_text(
        "[multimodal_eval.generators]\nending = model:make\n"
    )
    command = ["run", "data.jsonl", "--model", "ending:x", "--metrics", "exact_match", "-o", "run", "--no-report"]
    done = subprocess.run(
        [sys.executable, "-m", "multimodal_eval", *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if is_ignored else None,
        timeout=600,
    )
    assert done.returncode == 130, done.stderr
    assert "interrupted. Continue with: mmeval run --resume run" in done.stderr
    assert "Traceback" not in done.stderr
    monkeypatch.syspath_prepend(tmp_path)
    mmeval("run", "--resume", "run", "--no-report")
    assert load_run("run").entries["exact_match"].value == 1.0
