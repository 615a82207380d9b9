"""Runs in a real Trackio store, in processes of their own, since Trackio reads its folder once. Needs [trackio]."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from multimodal_eval.interop.trackers.content import run_values
from tests.interop.trackers.tracker_runs import answered, tracker

tracker("trackio")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Trackio and its libraries


@pytest.fixture
def run(tmp_path):
    return answered(tmp_path / "first")


def python(code, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
    )
    assert done.returncode == 0, done.stderr
    return done


READ = """
import json, sys
from trackio.sqlite_storage import SQLiteStorage
project, name = sys.argv[1:]
print(json.dumps(SQLiteStorage.get_logs(project, name), default=str))
"""
EXPORT = "from multimodal_eval.cli.main import main; main()"


def logs(store, project, name):
    return json.loads(python(READ, project, name, TRACKIO_DIR=store).stdout.splitlines()[-1])


def test_a_run_in_a_folder(run, tmp_path):
    store = tmp_path / "store"
    # An address of the user is not used: the folder is on this machine.
    done = python(EXPORT, "export", run.path, "--to", "trackio", "-o", store, TRACKIO_SERVER_URL="http://127.0.0.1:9")
    assert "trackio show --project multimodal-eval" in done.stderr
    assert done.stdout == f"written: {store}\n"
    (logged,) = logs(store, "multimodal-eval", "first")
    assert {name: logged[name] for name in run_values(run)} == run_values(run)
    assert len(logged["samples"]["_value"]) == 8
    sizes = {path.stat().st_size for path in store.rglob("blobs/**/*") if path.is_file()}
    assert (run.path / "report.html").stat().st_size in sizes


def test_the_folder_of_the_process_is_kept(run, tmp_path):
    code = """
import sys, trackio
from multimodal_eval import MultimodalEvalError
from multimodal_eval.interop.export.registry import export
try:
    export(sys.argv[1], "trackio", sys.argv[2])
except MultimodalEvalError as error:
    print(error)
"""
    done = python(code, run.path, tmp_path / "other", TRACKIO_DIR=tmp_path / "store")
    assert "Trackio already uses" in done.stdout


def test_the_active_run_gets_scores(tmp_path):
    code = """
import json, trackio
from multimodal_eval import compute
from multimodal_eval.interop.callbacks.log_scores import log_scores, active_trackers
from multimodal_eval.interop.trackers.content import flat_values
scores = compute(predictions=["a dog", "cat"], references=["a dog", "a cat"], metrics=["exact_match"])
assert not active_trackers()
trackio.init(project="training", name="fit", embed=False, auto_log_cpu=False, auto_log_gpu=False)
assert log_scores(scores, step=7, prefix="val_") == ("trackio",)
trackio.finish()
print()
print(json.dumps(flat_values(scores, "val_")))
"""
    done = python(code, TRACKIO_DIR=tmp_path / "store")
    expected = json.loads(done.stdout.splitlines()[-1])
    (logged,) = logs(tmp_path / "store", "training", "fit")
    assert {name: logged[name] for name in expected} == expected
    assert logged["step"] == 7
