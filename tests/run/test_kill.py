from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_killed_runs_resume_to_identical_results():
    command = [sys.executable, "-m", "tests.run.kill_and_resume", "8", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "every resumed run identical" in done.stdout
