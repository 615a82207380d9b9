"""Variance parts of verdicts: worked out by hand, against REML of statsmodels, and as sums."""

from __future__ import annotations

from math import isclose, sqrt

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from multimodal_eval.stats.variance_parts import variance_parts

nan = float("nan")
verdict_tables = st.tuples(st.integers(2, 8), st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: arrays.arrays(np.float64, shape, elements=st.integers(1, 5).map(float))
)


def test_two_judges_and_two_repetitions_by_hand():
    # Samples x judges, two repetitions each:   judge 1   judge 2    means of the cells   of the sample
    #                                 sample 1   1, 3      2, 2         2, 2                2
    #                                 sample 2   4, 4      5, 7         4, 6                5
    # Means of the judges 3 and 4, of all 3.5.
    # MS_a = 4 ((2-3.5)^2 + (5-3.5)^2) / 1 = 18; MS_b = 4 (.5^2 + .5^2) / 1 = 2
    # MS_c = 2 * 4 * .5^2 / 1 = 2: every cell is .5 from the sum of its sample's and judge's effects
    # MS_e = (1 + 1 + 0 + 0 + 0 + 0 + 1 + 1) / 4 = 1
    # var(e) = 1, var(c) = (2 - 1) / 2 = .5, var(b) = (2 - 2) / 4 = 0, var(a) = (18 - 2) / 4 = 4
    parts = variance_parts(np.array([[[1.0, 3], [2, 2]], [[4, 4], [5, 7]]]))
    assert (parts.samples, parts.judges, parts.repeats, parts.n) == (4.0, 0.5, 1.0, 2)
    # The standard error of the mean of 2 and 5 is 1.5: 1.5^2 = 18 / 8 = 16 / 8 + 2 / 8.
    assert parts.stderr_of_samples == pytest.approx(sqrt(2))
    assert parts.stderr_of_judge == pytest.approx(0.5)


def test_one_judge_and_two_repetitions_by_hand():
    # Sample means 1.5, 3, 4.5, of all 3: MS_a = 2 (2.25 + 0 + 2.25) / 2 = 4.5; MS_e = (.5 + 0 + .5) / 3 = 1/3.
    # var(a) = (4.5 - 1/3) / 2 = 25/12.
    parts = variance_parts(np.array([[[1.0, 2]], [[3, 3]], [[4, 5]]]))
    assert parts.samples == pytest.approx(25 / 12)
    assert parts.repeats == pytest.approx(1 / 3)
    assert parts.judges is None
    assert parts.stderr_of_judge**2 == pytest.approx(1 / 18)  # MS_e / 6


def test_judges_without_repetitions():
    # Rows 1 2, 3 3, 4 6: sample means 1.5, 3, 5, judge means 8/3 and 11/3, of all 19/6.
    # The judges differ by 1, 0 and 2, by 1 on average: the residuals of the rows are 0, ±.5 and ±.5.
    # MS_c = 2 (.25 + .25) / 2 = .5 = var(c) + var(e); MS_b = 3 (1/4 + 1/4) / 1 = 1.5, var(b) = (1.5 - .5) / 3 = 1/3.
    parts = variance_parts(np.array([[[1.0], [2]], [[3], [3]], [[4], [6]]]))
    assert parts.judges == pytest.approx(0.5 + 1 / 3)
    assert parts.repeats is None


def test_repetitions_agree_with_the_mixed_model_of_statsmodels():
    random = np.random.default_rng(4)
    table = random.normal(0, 2, (60, 1, 1)) + random.normal(0, 1, (60, 1, 3))
    groups = np.repeat(np.arange(60), 3)
    fit = sm.MixedLM(table.ravel(), np.ones(180), groups).fit(reml=True)
    parts = variance_parts(table)
    assert parts.samples == pytest.approx(float(fit.cov_re[0, 0]), rel=1e-4)
    assert parts.repeats == pytest.approx(fit.scale, rel=1e-4)


def test_planted_parts_are_recovered():
    random = np.random.default_rng(5)
    n, judges, repeats = 3000, 40, 2
    table = (
        random.normal(0, 1.0, (n, 1, 1))
        + random.normal(0, 0.7, (1, judges, 1))
        + random.normal(0, 0.5, (n, judges, 1))
        + random.normal(0, 0.6, (n, judges, repeats))
    )
    parts = variance_parts(table)
    assert parts.samples == pytest.approx(1.0, rel=0.1)
    assert parts.judges == pytest.approx(0.49 + 0.25, rel=0.3)  # forty judges say little about their variance
    assert parts.repeats == pytest.approx(0.36, rel=0.02)


@given(verdict_tables)
def test_parts_of_the_standard_error_add_up(table):
    parts = variance_parts(table)
    if parts is None:
        assert table.shape[1] * table.shape[2] == 1
        return
    means = table.mean(axis=(1, 2))
    whole = means.var(ddof=1) / len(means)
    assert isclose(parts.stderr_of_samples**2 + parts.stderr_of_judge**2, whole, rel_tol=1e-9, abs_tol=1e-12)
    assert min(parts.samples, parts.judges or 0, parts.repeats or 0) >= 0


@given(verdict_tables)
def test_the_order_of_samples_judges_and_repetitions_changes_nothing(table):
    parts, mirrored = variance_parts(table), variance_parts(table[::-1, ::-1, ::-1])
    if parts is None:
        assert mirrored is None
        return
    for name in ("samples", "judges", "repeats"):
        assert getattr(mirrored, name) == pytest.approx(getattr(parts, name), abs=1e-9)
    for name in ("stderr_of_samples", "stderr_of_judge"):  # roots: rounding moves their squares by about 1e-17
        assert getattr(mirrored, name) ** 2 == pytest.approx(getattr(parts, name) ** 2, abs=1e-12)


def test_incomplete_samples_are_left_out():
    whole = np.array([[[1.0, 3], [2, 2]], [[4, 4], [5, 7]]])
    gap = np.array([[[9.0, nan], [1, 1]]])
    assert variance_parts(np.concatenate([whole, gap])) == variance_parts(whole)


@pytest.mark.parametrize("shape", [(1, 2, 2), (5, 1, 1), (0, 2, 2)])
def test_what_cannot_be_split(shape):
    assert variance_parts(np.ones(shape)) is None


def test_a_judge_without_any_variance():
    parts = variance_parts(np.full((4, 2, 2), 3.0))
    assert (parts.samples, parts.judges, parts.repeats, parts.stderr_of_judge) == (0, 0, 0, 0)
