"""Several tasks together: averages, differences, and what happens without each task."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest

from multimodal_eval.core.figure import Figure
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.macro import TaskParts, macro_difference, macro_mean, macro_test, over_other_tasks


def parts(*systems, clusters=None, **settings):
    return TaskParts.of([mean_estimate(Rows(np.array(each, float))) for each in systems], clusters, **settings)


def figure(value, low, high, stderr):
    return Figure(value, stderr, low, high, "95% interval")


def test_an_average_has_the_distances_of_its_tasks():
    # below: sqrt(.3^2 + .4^2) / 2 = .25; above: sqrt(.05^2 + .12^2) / 2 = .065; stderr: sqrt(.06^2 + .08^2) / 2 = .05
    mean = macro_mean([figure(0.8, 0.5, 0.85, 0.06), figure(0.6, 0.2, 0.72, 0.08)])
    assert (mean.value, mean.stderr) == (pytest.approx(0.7), pytest.approx(0.05))
    assert (mean.low, mean.high) == (pytest.approx(0.45), pytest.approx(0.765))


def test_an_average_over_a_task_without_an_interval_has_none():
    mean = macro_mean([figure(0.8, 0.5, 0.9, 0.1), figure(0.6, None, None, None)])
    assert (mean.value, mean.low, mean.stderr) == (pytest.approx(0.7), None, None)
    assert mean.method == "no interval: 1 of 2 tasks have none"


def test_each_task_counts_once_whatever_its_size():
    small, large = parts([0, 0], [1, 0]), parts([0] * 100, [0] * 100)
    test = macro_test([small, large])
    difference = macro_difference([small, large], (0, 1), float(test.p_values[0]), test.critical)
    assert difference.differences == (0.5, 0.0)
    assert difference.figure.value == 0.25
    assert [each.value for each in difference.without] == [0.0, 0.5]


def test_the_p_value_is_the_share_of_flips_within_tasks():
    first, second = [0.1, 0.5, 0.3, 0.2], [0.4, 0.9]
    tasks = [parts([0] * 4, first), parts([0] * 2, second)]
    observed = (np.mean(first) + np.mean(second)) / 2
    signs = [np.array(each) for each in product((1, -1), repeat=6)]
    flipped = [(np.mean(each[:4] * first) + np.mean(each[4:] * second)) / 2 for each in signs]
    share = np.mean(np.abs(flipped) >= observed - 1e-12)  # 2 of 64: all as they are, or all flipped
    p_value = float(macro_test(tasks).p_values[0])
    assert share == 2 / 64
    assert p_value == pytest.approx(share, abs=4 * sqrt(share / 10_000))


def test_tasks_of_the_same_size_are_flipped_independently():
    random = np.random.default_rng(0)
    values = random.normal(size=200)
    same = [parts(np.zeros(200), values), parts(np.zeros(200), -values)]  # with equal signs they would always cancel
    test = macro_test(same)
    assert test.p_values[0] == 1.0
    once = [parts(np.zeros(200), values + 0.2), parts(np.zeros(200), values + 0.2)]
    # One sample counted twice would have sqrt(2) times the error of two samples.
    alone = macro_test(once[:1])
    assert macro_test(once).p_values[0] < alone.p_values[0]


def test_the_interval_excludes_zero_exactly_if_p_is_small():
    random = np.random.default_rng(3)
    seen = set()
    for number in range(40):
        tasks = [parts(*(random.random((2, 60)) < [[0.5], [0.62]])) for _ in range(3)]
        test = macro_test(tasks, seed=number)
        difference = macro_difference(tasks, (0, 1), float(test.p_values[0]), test.critical).figure
        excludes = difference.low > 0 or difference.high < 0
        assert excludes == (test.p_values[0] < 0.05)
        seen.add(excludes)
    assert seen == {True, False}


def test_identical_models_have_no_interval():
    tasks = [parts([1, 0, 1], [1, 0, 1]), parts([0, 1], [0, 1])]
    test = macro_test(tasks)
    difference = macro_difference(tasks, (0, 1), float(test.p_values[0]), test.critical).figure
    assert (difference.value, difference.low, test.p_values[0]) == (0.0, None, 1.0)


def test_for_other_tasks_the_tasks_are_the_sample():
    # mean .2, s = .1, t(2; .975) = 4.3027: .2 ± 4.3027 * .1 / sqrt(3)
    difference = over_other_tasks(np.array([0.1, 0.2, 0.3]))
    assert (difference.low, difference.high) == (pytest.approx(-0.0484, abs=1e-4), pytest.approx(0.4484, abs=1e-4))


def test_equal_differences_have_a_width_within_the_bounds():
    # In both tasks, the second system is worse by 1 on every sample, so that the statistic is 4 for every theta.
    tasks = [TaskParts.of([mean_estimate(Rows(np.full(n, value))) for value in (1.0, 0.0)], None) for n in (8, 8)]
    test = macro_test(tasks)
    bounded = macro_difference(tasks, (0, 1), float(test.p_values[0]), test.critical, bounds=(-1.0, 1.0))
    for figure in (bounded.figure, *bounded.without, bounded.other_tasks):
        assert figure.value == -1
        assert figure.low == -1 < figure.high
    assert (test.p_values[0] < 0.05) == (bounded.figure.high < 0)
    unbounded = macro_difference(tasks, (0, 1), float(test.p_values[0]), test.critical)
    assert unbounded.figure.method == "no interval: 16 clusters or samples, whose differences are all equal"
    assert [(each.low, each.high) for each in unbounded.without] == [(None, None)] * 2


def test_intervals_of_few_tasks_end_at_the_bounds():
    tasks = [TaskParts.of([mean_estimate(Rows(np.array(each))) for each in pair], None)
             for pair in (([0.0] * 8, [1.0] * 7 + [0.0]), ([0.0, 0.1] * 4, [0.0, 0.2] * 4))]  # fmt: skip
    test = macro_test(tasks)
    result = macro_difference(tasks, (0, 1), float(test.p_values[0]), test.critical, bounds=(-1.0, 1.0))
    for figure in (result.figure, *result.without, result.other_tasks):
        assert -1 <= figure.low < figure.high <= 1
