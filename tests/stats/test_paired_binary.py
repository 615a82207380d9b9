"""The score test of paired shares: against McNemar's test and a likelihood that is maximised numerically."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from statsmodels.stats.contingency_tables import mcnemar

from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.paired import compare
from multimodal_eval.stats.paired_binary import PairedCounts, score_interval, score_statistic, score_test


def estimate(values):
    return mean_estimate(Rows(np.asarray(values, float)))


def by_likelihood(n, b, c, theta):
    """z(theta) with the probability of c that maximises the likelihood."""

    def loss(q):
        rest = 1 - 2 * q - theta
        terms = [(b, q + theta), (c, q), (n - b - c, rest)]
        return -sum(count * np.log(max(chance, 1e-300)) for count, chance in terms if count)

    low, high = max(0.0, -theta), (1 - theta) / 2
    q = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-13}).x
    return (b - c - n * theta) / sqrt(n * (2 * q + theta - theta**2))


@pytest.mark.parametrize(("n", "b", "c"), [(50, 12, 2), (20, 3, 1), (200, 10, 10), (44, 1, 0)])
@pytest.mark.parametrize("theta", [-0.2, 0.05, 0.3])
def test_the_statistic_equals_the_maximised_likelihoods(n, b, c, theta):
    assert score_statistic(PairedCounts(n, b, c), theta) == pytest.approx(by_likelihood(n, b, c, theta), rel=1e-4)


@pytest.mark.parametrize(("b", "c"), [(12, 2), (3, 1), (10, 10), (5, 0)])
def test_the_test_of_no_difference_is_mcnemars(b, c):
    expected = mcnemar([[20, b], [c, 10]], exact=False, correction=False).pvalue
    assert score_test(PairedCounts(30 + b + c, b, c)) == pytest.approx(expected, rel=1e-9)


def test_no_differing_sample_by_hand():
    # With b = c = 0, z(theta)^2 = n theta / (1 - theta) for theta > 0: the interval ends at z^2 / (n + z^2)
    z = 1.959964
    low, high = score_interval(PairedCounts(100, 0, 0), z)
    assert (low, high) == pytest.approx((-(z**2) / (100 + z**2), z**2 / (100 + z**2)), rel=1e-6)


@given(st.integers(1, 60), st.data())
def test_test_and_interval_never_contradict_each_other(n, data):
    b = data.draw(st.integers(0, n))
    c = data.draw(st.integers(0, n - b))
    first = [0] * b + [1] * c + [1] * (n - b - c)
    second = [1] * b + [0] * c + [1] * (n - b - c)
    (result,) = compare([estimate(first)], [estimate(second)])
    if n == 1:
        assert result.p_value is None
        return
    figure = result.difference
    assert -1 <= figure.low < figure.high <= 1
    assert figure.low <= figure.value <= figure.high
    assert (result.p_value < 0.05) == (not figure.low <= 0 <= figure.high)


def test_clusters_of_copies_are_one_sample_each():
    random = np.random.default_rng(3)
    first, second = random.integers(0, 2, (2, 25))
    (alone,) = compare([estimate(first)], [estimate(second)])
    clusters = np.repeat(np.arange(25), 8)
    (copies,) = compare([estimate(np.repeat(first, 8))], [estimate(np.repeat(second, 8))], clusters)
    # The design effect is 8 * 25 / 24, and the quantile that of t: the interval is a little wider.
    width = alone.difference.high - alone.difference.low
    assert width < copies.difference.high - copies.difference.low < 1.1 * width
