from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_killed_runs_resume_to_identical_results():
    script = Path(__file__).with_name("kill_and_resume.py")
    done = subprocess.run([sys.executable, str(script), "8", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "every resumed run identical" in done.stdout
