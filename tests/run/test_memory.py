from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def peak(samples):
    script = Path(__file__).with_name("peak_memory.py")
    done = subprocess.run([sys.executable, script, str(samples), "500"], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_five_times_the_samples_take_hardly_more_memory():
    # 48,000 samples more: their notes alone are 140 MB, the n-grams of their references 5 million. What may grow is the
    # table of n-grams that stand in two references or more, and some bytes a sample.
    assert peak(60_000) - peak(12_000) < 60
