"""The simulations of bench/judge_calibration.py in small: seeds are fixed, and bounds are wide."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

BENCH = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "judge_calibration.py"))
CLUSTERED, CONFIDENT, JUDGES = BENCH["CLUSTERED"], BENCH["CONFIDENT"], BENCH["JUDGES"]
COUNT = 50


@pytest.mark.parametrize("labels", [100, 1000])
@pytest.mark.parametrize("name", JUDGES)
def test_corrected_intervals_cover_the_truth_and_naive_ones_do_not(name, labels):
    # 47.5 of 50 intervals should cover; 43 are 3 standard deviations fewer.
    sums = BENCH["simulated"](name, labels, 0, COUNT)
    assert sums["naive"][0] < 10
    for method in ("labels", "PPI", "PPI++", *(["Rogan-Gladen"] if "Rogan-Gladen" in sums else [])):
        assert 43 <= sums[method][0] <= COUNT, method
    assert sums["PPI++"][1] < sums["labels"][1]


@pytest.mark.parametrize("name", [*CLUSTERED, *CONFIDENT])
def test_clusters_and_draws(name):
    sums = BENCH["simulated"](name, 300, 0, COUNT)
    for method, (covered, _) in sums.items():
        assert covered < 10 if method == "naive" else covered >= 43, method
    if name in CONFIDENT:
        assert sums["active"][1] < sums["uniform"][1]
        assert sums["active after a pilot"][1] < sums["uniform"][1]
