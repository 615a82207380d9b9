"""Equality with ppi-python. Its values below are from version 0.2.3 on the samples of `ppi_data`, with alpha=.05.

The tests that call the package are skipped unless it is installed (`pip install ppi-python`, which needs numba).
"""

from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval.stats.ppi import ppi_mean
from multimodal_eval.stats.ppi_logistic import ppi_logistic
from tests.stats import ppi_data

MEANS = [  # samples, labels, others, lambda, ppi_mean_pointestimate, ppi_mean_ci
    (ppi_data.scores, 100, 900, None, 2.528673203560997, 2.3535913825299972, 2.7037550245919966),
    (ppi_data.scores, 100, 900, 1, 2.591464596410087, 2.3372948445349153, 2.8456343482852584),
    (ppi_data.scores, 300, 9700, None, 2.561459918184136, 2.4573266614404914, 2.6655931749277806),
    (ppi_data.scores, 300, 9700, 0.5, 2.555057847073929, 2.4490373861539747, 2.661078307993883),
    (ppi_data.verdicts, 100, 900, None, 0.4879397721718861, 0.4146514189857512, 0.561228125358021),
    (ppi_data.verdicts, 300, 9700, None, 0.48936272480500287, 0.4475901798036802, 0.5311352698063255),
    (ppi_data.verdicts, 300, 9700, 1, 0.48584192439862545, 0.4404020311365331, 0.5312818176607178),
]
COEFFICIENTS = [  # labels, others, lambda, ppi_logistic_ci with optimizer_options=OPTIONS
    (200, 800, None, [-0.7581056415808782, 0.6924542586925968], [-0.20194454974734366, 1.262980001981409]),
    (200, 800, 1, [-0.7676686572854458, 0.6722980576034954], [-0.09099395966276558, 1.3906080259781457]),
    (500, 2500, None, [-0.7333398801985475, 0.8362936952729908], [-0.3585702043321063, 1.2116876093990687]),
    (500, 2500, 0.5, [-0.7406995774604973, 0.8358549520930716], [-0.3634097559605688, 1.2146825223034063]),
]
OPTIONS = {"ftol": 1e-30, "gtol": 1e-15, "maxiter": 10_000}  # as precise as its optimizer gets


def hidden(human, labels):
    return np.where(np.arange(len(human)) < labels, human, float("nan"))


@pytest.mark.parametrize(("samples", "labels", "others", "power", "value", "low", "high"), MEANS)
def test_means(samples, labels, others, power, value, low, high):
    human, judge = samples(labels, others)
    interval = ppi_mean(judge, hidden(human, labels), power=power, asymptotic=True).interval
    assert interval.value == pytest.approx(value, abs=1e-12)
    assert interval.low == pytest.approx(low, abs=1e-12)
    assert interval.high == pytest.approx(high, abs=1e-12)


@pytest.mark.parametrize(("labels", "others", "power", "low", "high"), COEFFICIENTS)
def test_logistic_regression(labels, others, power, low, high):
    features, human, judge = ppi_data.regression(labels, others)
    estimate = ppi_logistic(features, judge, hidden(human, labels), power=power, asymptotic=True)
    assert [each.low for each in estimate.intervals] == pytest.approx(low, abs=1e-9)
    assert [each.high for each in estimate.intervals] == pytest.approx(high, abs=1e-9)


def test_the_intervals_for_few_labels_are_wider():
    human, judge = ppi_data.scores(30, 900)
    asymptotic, t = (ppi_mean(judge, hidden(human, 30), asymptotic=each).interval for each in (True, False))
    assert t.value == asymptotic.value
    assert t.high > asymptotic.high


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("power", [None, 0, 0.3, 1])
@pytest.mark.parametrize(("labels", "others"), [(50, 500), (100, 9900), (1000, 1000)])
def test_means_of_random_samples_with_the_package(labels, others, power):
    package = pytest.importorskip("ppi_py")
    rng = np.random.default_rng(labels)
    human = rng.normal(3, 1, labels + others)
    judge = 0.7 * human + rng.normal(0, 1, labels + others)
    parts = human[:labels], judge[:labels], judge[labels:]
    low, high = (float(np.ravel(bound)[0]) for bound in package.ppi_mean_ci(*parts, alpha=0.05, lam=power))
    interval = ppi_mean(judge, hidden(human, labels), power=power, asymptotic=True).interval
    assert (interval.low, interval.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("power", [None, 0.3, 1])
def test_logistic_regression_of_random_samples_with_the_package(power):
    package = pytest.importorskip("ppi_py")
    rng = np.random.default_rng(5)
    features = np.column_stack([np.ones(1500), rng.normal(size=(1500, 2))])
    human = (rng.random(1500) < 1 / (1 + np.exp(-features @ [0.3, 1, -0.5]))).astype(np.float64)
    judge = np.where(rng.random(1500) < 0.2, 1 - human, human)
    parts = features[:400], human[:400], judge[:400], features[400:], judge[400:]
    low, high = package.ppi_logistic_ci(*parts, alpha=0.05, lam=power, optimizer_options=dict(OPTIONS))
    estimate = ppi_logistic(features, judge, hidden(human, 400), power=power, asymptotic=True).intervals
    assert [each.low for each in estimate] == pytest.approx(low, abs=1e-8)  # its optimizer stops near the optimum
    assert [each.high for each in estimate] == pytest.approx(high, abs=1e-8)


@pytest.mark.parametrize(("labels", "others"), [(50, 500), (100, 9900)])
def test_the_estimate_of_truescore(labels, others):
    correct = pytest.importorskip("truescore.correct")
    human, judge = ppi_data.verdicts(labels, others)
    expected = correct.ppi_estimate(judge, human[:labels], np.arange(labels))
    estimate = ppi_mean(judge, hidden(human, labels))
    assert (estimate.interval.value, estimate.power) == (pytest.approx(expected.point), pytest.approx(expected.lambda_))
