from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def peak(samples):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.run.peak_memory", str(samples), "500"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_five_times_the_samples_need_little_more_memory():
    # The notes of the 48,000 additional samples take 140 MB, and their references have 5 million n-grams. Only the
    # table of n-grams in two or more references may grow, and a few bytes per sample.
    assert peak(60_000) - peak(12_000) < 60
