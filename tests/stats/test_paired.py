"""Paired comparisons: published values, values of other packages, and properties of the randomization test."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from multimodal_eval._native import flipped_sums
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.paired import compare, detectable_effect, holm, randomization_p_values, ranks, sample_size


def estimate(values):
    return mean_estimate(Rows(np.array(values, dtype=float)))


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


def test_too_few_samples_have_no_detectable_effect():
    # Five differences with the same sign have p = 2/2^5 = .0625 at best
    (comparison,) = compare([estimate([0] * 3)], [estimate([0.1, 0.2, 0.15])])
    assert (comparison.detectable, comparison.needed) == (None, None)
    assert comparison.p_value > 0.2


def test_a_constant_difference_needs_the_fewest_samples():
    values = np.linspace(0, 1, 20)
    (constant,) = compare([estimate(values)], [estimate(values + 0.1)])
    assert constant.needed == 6
    (noise,) = compare([estimate(values)], [estimate(values + 1e-17)])
    assert noise.needed is None


def test_all_sign_patterns_are_equally_likely():
    sums = flipped_sums(np.array([[1.0], [2.0], [4.0]]), 80_000, 1)[:, 0]
    values, counts = np.unique(sums, return_counts=True)
    assert values.tolist() == [-7, -5, -3, -1, 1, 3, 5, 7]
    assert counts.min() > 9_500  # 10,000 each; the standard deviation is 94


def test_signs_are_independent_between_units():
    units = np.eye(70)  # one column per unit; more units than bits in a machine word
    signs = flipped_sums(units, 20_000, 3)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    correlation = np.corrcoef(signs.T) - np.eye(70)
    assert np.abs(correlation).max() < 0.035  # 5 standard deviations of 1/sqrt(20,000)
    assert np.abs(signs.mean(axis=0)).max() < 0.035


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_threads_do_not_change_the_result(threads):
    values = np.random.default_rng(1).normal(size=(1000, 5))
    assert flipped_sums(values, 333, 9, threads).tobytes() == flipped_sums(values, 333, 9, 1).tobytes()


def test_different_seeds_draw_different_signs():
    values = np.random.default_rng(1).normal(size=(100, 1))
    assert not np.array_equal(flipped_sums(values, 50, 1), flipped_sums(values, 50, 2))


@given(st.lists(st.integers(-8, 8), min_size=1, max_size=9))
def test_p_values_match_all_sign_patterns(differences):
    patterns = np.array(list(product((-1, 1), repeat=len(differences)))) @ np.array(differences)
    exact = np.mean(np.abs(patterns) >= abs(sum(differences)))
    (p_value,) = randomization_p_values([np.array(differences, dtype=float)], rounds=4000)
    assert p_value == pytest.approx(exact, abs=0.045)  # 5 standard deviations at p = .5


def test_a_system_against_itself():
    values = estimate([0.1, 0.5, 0.9])
    (comparison,) = compare([values], [values])
    assert (comparison.difference.value, comparison.p_value, comparison.needed) == (0.0, 1.0, None)


def test_clusters_are_swapped_as_a_whole():
    # Twenty copies of a cluster's difference are one observation; two clusters cannot show a difference
    a, b = estimate([0.0] * 40), estimate([1.0] * 40)
    clusters = np.repeat([0, 1], 20)
    (alone,), (clustered,) = compare([a], [b]), compare([a], [b], clusters)
    assert alone.p_value == pytest.approx(1 / 10_001)
    assert clustered.p_value == pytest.approx(0.5, abs=0.03)  # ++ and -- of four patterns


def test_the_difference_of_means_equals_scipys_paired_t():
    from scipy import stats

    chooser = np.random.default_rng(4)
    a, b = chooser.normal(size=50), chooser.normal(0.4, 1, size=50)
    (comparison,) = compare([estimate(a)], [estimate(b)])
    expected = stats.ttest_rel(b, a).confidence_interval(0.95)
    assert (comparison.difference.low, comparison.difference.high) == (
        pytest.approx(expected.low),
        pytest.approx(expected.high),
    )
    assert comparison.p_value == pytest.approx(stats.ttest_rel(b, a).pvalue, abs=0.02)


@settings(max_examples=20)  # a call of statsmodels takes a tenth of a second
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_equals_statsmodels(p_values):
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected.tolist(), abs=1e-12)


def test_holm_worked_out_by_hand():
    # ascending: .01 * 3, .03 * 2, .04 * 1, and none is below the one before it
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_holm_leaves_unknown_p_values_out():
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]


def test_ranks_with_ties():
    # 0 is better only than 2; 1 differs from neither
    better = np.zeros((3, 3), dtype=bool)
    better[0, 2] = True
    assert ranks(better) == [1, 1, 2]
