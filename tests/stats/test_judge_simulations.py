"""The simulations of bench/judge_calibration.py in small: seeds are fixed, and bounds are wide."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

BENCH = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "judge_calibration.py"))
CLUSTERED, CONFIDENT, JUDGES = BENCH["CLUSTERED"], BENCH["CONFIDENT"], BENCH["JUDGES"]
COUNT = 100


@pytest.mark.parametrize("labels", [100, 1000])
@pytest.mark.parametrize("name", JUDGES)
def test_corrected_intervals_cover_the_truth_and_naive_ones_do_not(name, labels):
    # The first simulations also compare the array versions with the package's functions. 95 of 100 intervals should
    # cover; 88 are 3 standard deviations fewer.
    sums = BENCH["simulated"](name, labels, 0, COUNT)
    assert sums["naive"][0] < 20
    for method in ("labels", "PPI", "PPI++", *(["Rogan-Gladen"] if "Rogan-Gladen" in sums else [])):
        assert 88 <= sums[method][0] <= 100, method
    assert sums["PPI++"][1] < sums["labels"][1]


@pytest.mark.parametrize("name", [*CLUSTERED, *CONFIDENT])
def test_clusters_and_draws(name):
    sums = BENCH["simulated_one_by_one"](name, 300, 0, COUNT)
    for method, (covered, _) in sums.items():
        assert covered < 20 if method == "naive" else covered >= 88, method
    if name in CONFIDENT:
        assert sums["active"][1] < sums["uniform"][1]
        assert sums["active after a pilot"][1] < sums["uniform"][1]
