"""The power of comparisons, against exact sums and published values; the detectable difference is found again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.paired import compare
from multimodal_eval.stats.power import (
    detectable_effect,
    detectable_share,
    power_of_mean,
    power_of_share,
    sample_size,
    samples_for_share,
)


def estimate(values):
    return mean_estimate(Rows(np.asarray(values, float)))


def test_the_published_sample_size():
    # alpha .05, power .8, delta .03, omega^2 1/9, answers without variance
    assert sample_size(0.03, 1 / 9) == pytest.approx(968.9975, abs=5e-5)


def test_sample_size_with_repeated_answers():
    # (1.959964 + .841621)^2 = 7.848880; spread .1 + .2/4 + .3/2 = .3; effect .1: 7.848880 * .3 / .01
    size = sample_size(0.1, 0.1, variance_a=0.2, answers_a=4, variance_b=0.3, answers_b=2)
    assert size == pytest.approx(7.848880 * 30, rel=1e-6)


def test_the_detectable_effect_is_the_inverse_of_the_sample_size():
    # SE = omega / sqrt(n), so (z + z)^2 omega^2 / MDE^2 = n
    n, omega = 400, 0.5
    effect = detectable_effect(omega / np.sqrt(n))
    assert sample_size(effect, omega**2) == pytest.approx(n)
    assert detectable_effect(1.0, 1_000_000) == pytest.approx(detectable_effect(1.0), rel=1e-5)
    assert detectable_effect(1.0, 5) > detectable_effect(1.0, 50) > detectable_effect(1.0)
    assert power_of_mean(detectable_effect(0.5 / 10, 100), 0.5, 100) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(("n", "gained", "lost"), [(12, 0.4, 0.1), (20, 0.3, 0.05), (25, 0.2, 0.0)])
def test_the_power_of_shares_is_the_sum_over_all_outcomes(n, gained, lost):
    expected = sum(
        multinomial.pmf([b, c, n - b - c], n, [gained, lost, 1 - gained - lost])
        for b in range(n + 1)
        for c in range(n + 1 - b)
        if b - c > 1.959964 * np.sqrt(b + c)
    )
    assert power_of_share(gained, lost, n) == pytest.approx(expected, abs=1e-6)


def test_no_sample_lost_by_hand():
    # b > 1.96 sqrt(b) from b = 4 on: P(Bin(50, p) >= 4) = .8
    effect = detectable_share(0.0, 50)
    assert binom.sf(3, 50, effect) == pytest.approx(0.8, abs=1e-3)
    assert effect > 0.1  # the normal approximation says 0.057 after one differing sample, with a power of 6 %


def test_many_differing_samples_have_the_normal_approximation():
    # Connor: n = (1.959964 sqrt(.3) + .841621 sqrt(.3 - .01))^2 / .01 for psi = .3, theta = .1
    expected = (1.959964 * 0.3**0.5 + 0.841621 * 0.29**0.5) ** 2 / 0.01
    assert samples_for_share(0.2, 0.1) == pytest.approx(expected, rel=0.06)  # a whole number of steps for few samples
    assert samples_for_share(0.11, 0.1) == pytest.approx(
        (1.959964 * 0.21**0.5 + 0.841621 * (0.21 - 1e-4) ** 0.5) ** 2 / 1e-4, rel=1e-4
    )
    assert power_of_share(0.2, 0.1, 1000) == pytest.approx(power_of_share(0.2, 0.1, 1000.4), abs=1e-3)


def test_a_difference_needs_as_many_samples_as_detect_it():
    lost, n = 0.05, 400
    effect = detectable_share(lost, n)
    assert samples_for_share(lost + effect, lost) == pytest.approx(n, rel=0.06)


def test_too_few_samples_have_no_detectable_effect():
    # Five differences with the same sign have p = 2/2^5 = .0625 at best
    (comparison,) = compare([estimate([0.0] * 3)], [estimate([0.1, 0.2, 0.15])])
    assert (comparison.detectable, comparison.needed) == (None, None)
    assert comparison.p_value == 0.25


def test_a_constant_difference_says_nothing_about_power():
    values = np.linspace(0, 1, 20)
    (constant,) = compare([estimate(values)], [estimate(values + 0.1)])
    assert (constant.detectable, constant.difference.low) == (None, None)
    (noise,) = compare([estimate(values)], [estimate(values + 1e-17)])
    assert noise.difference.method == "no interval: identical on 20 samples"
