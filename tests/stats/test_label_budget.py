from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from multimodal_eval.stats.label_budget import LabelBudget, budget_of, gain
from multimodal_eval.stats.ppi import ppi_mean
from tests.stats import ppi_data

Z = 1.959963984540054


def test_values_worked_out_by_hand():
    # r^2 = .64: SE^2 = .25 (.36 / 100 + .64 / 10,000) = .000916.
    budget = LabelBudget(10_000, 0.25, 0.8)
    assert budget.half_width(100) == pytest.approx(Z * sqrt(0.000916))
    assert budget.alone(100) == pytest.approx(Z * 0.05)
    # 1 / (.0036 + .000064) = 272.9 labels; at most 100 / .36 = 277.8 with infinitely many samples.
    assert budget.worth(100) == pytest.approx(1 / 0.003664)
    # .36 / .64 * 100^2
    assert budget.calls_per_label(100) == pytest.approx(5625)
    assert LabelBudget(10_000, 0.25, 0.0).calls_per_label(100) is None


def test_labels_for_a_width():
    budget = LabelBudget(10_000, 0.25, 0.8)
    assert budget.labels_for(budget.half_width(100)) == 100
    assert budget.labels_for(budget.half_width(100) - 1e-6) == 101
    assert budget.labels_for(budget.half_width(100), gain=0.5) == 50
    # Even labels of all samples give SE = .5 / 100.
    assert budget.labels_for(Z * 0.00499) is None
    assert budget.labels_for(1.0) == 1


def test_clusters_need_more_labels():
    assert LabelBudget(10_000, 0.25, 0.8, 4.0).half_width(100) == pytest.approx(2 * Z * sqrt(0.000916))


def test_the_budget_of_a_pilot_forecasts_its_interval():
    human, judge = ppi_data.scores(400, 4600)
    human[400:] = np.nan
    budget = budget_of(judge, human)
    assert budget is not None
    interval = ppi_mean(judge, human, asymptotic=True).interval
    assert interval.high is not None
    assert budget.half_width(400) == pytest.approx(interval.high - interval.value, rel=0.02)
    assert budget.correlation == pytest.approx(np.corrcoef(human[:400], judge[:400])[0, 1])
    twice = budget_of(np.repeat(judge, 2), np.repeat(human, 2), clusters=np.repeat(np.arange(5000), 2))
    assert twice is not None
    assert twice.design_effect == pytest.approx(2, rel=0.01)


def test_too_few_or_equal_labels():
    judge = np.arange(30.0)
    assert budget_of(judge, np.where(judge < 19, judge % 2, np.nan)) is None
    assert budget_of(judge, np.where(judge < 25, 1.0, np.nan)) is None
    useless = budget_of(np.ones(30), np.where(judge < 25, judge % 2, np.nan))
    assert useless is not None
    assert useless.correlation == 0


def test_gain():
    # Errors 1 and 3, one label: with probabilities 1/4, 3/4 the variance is 4 + 12 = 16, uniformly 2 + 18 = 20.
    assert gain(np.array([1.0, 3]), np.array([0.25, 0.75])) == pytest.approx(0.8)
    assert gain(np.array([1.0, 3]), np.array([0.5, 0.5])) == pytest.approx(1)
