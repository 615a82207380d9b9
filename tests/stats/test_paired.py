"""Paired comparisons: vectors, oracles, and what the randomization must keep to."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from multimodal_eval._native import flipped_sums
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.paired import compare, detectable_effect, holm, randomization_p_values, ranks, sample_size


def estimate(values):
    return mean_estimate(Rows(np.array(values, dtype=float)))


def test_the_published_sample_size():
    # alpha .05, power .8, delta .03, omega^2 1/9, no variance of answers
    assert sample_size(0.03, 1 / 9) == pytest.approx(968.9975, abs=5e-5)


def test_sample_size_counts_answers_drawn_anew():
    # (1.959964 + .841621)^2 = 7.848880; spread .1 + .2/4 + .3/2 = .3; effect .1: 7.848880 * .3 / .01
    found = sample_size(0.1, 0.1, variance_a=0.2, answers_a=4, variance_b=0.3, answers_b=2)
    assert found == pytest.approx(7.848880 * 30, rel=1e-6)


def test_a_detectable_effect_needs_the_samples_there_are():
    # SE = omega / sqrt(n), so n = (z + z)^2 omega^2 / MDE^2 gives n back
    n, omega = 400, 0.5
    effect = detectable_effect(omega / np.sqrt(n))
    assert sample_size(effect, omega**2) == pytest.approx(n)
    assert detectable_effect(1.0, 1_000_000) == pytest.approx(detectable_effect(1.0), rel=1e-5)
    assert detectable_effect(1.0, 5) > detectable_effect(1.0, 50) > detectable_effect(1.0)


def test_too_few_samples_can_show_nothing():
    # Five differences of one sign have p = 2/2^5 = .0625 at best
    (found,) = compare([estimate([0] * 3)], [estimate([0.1, 0.2, 0.15])])
    assert (found.detectable, found.needed) == (None, None)
    assert found.p_value > 0.2


def test_a_constant_difference_needs_the_fewest_samples():
    values = np.linspace(0, 1, 20)
    (found,) = compare([estimate(values)], [estimate(values + 0.1)])
    assert found.needed == 6
    (noise,) = compare([estimate(values)], [estimate(values + 1e-17)])
    assert noise.needed is None


def test_every_sign_pattern_is_as_likely():
    sums = flipped_sums(np.array([[1.0], [2.0], [4.0]]), 80_000, 1)[:, 0]
    values, counts = np.unique(sums, return_counts=True)
    assert values.tolist() == [-7, -5, -3, -1, 1, 3, 5, 7]
    assert counts.min() > 9_500  # 10,000 each; the standard deviation is 94


def test_signs_are_independent_between_units():
    units = np.eye(70)  # a column a unit: beyond one machine word
    signs = flipped_sums(units, 20_000, 3)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    correlation = np.corrcoef(signs.T) - np.eye(70)
    assert np.abs(correlation).max() < 0.035  # 5 standard deviations of 1/sqrt(20,000)
    assert np.abs(signs.mean(axis=0)).max() < 0.035


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_threads_change_no_bit(threads):
    values = np.random.default_rng(1).normal(size=(1000, 5))
    assert flipped_sums(values, 333, 9, threads).tobytes() == flipped_sums(values, 333, 9, 1).tobytes()


def test_other_seeds_draw_other_signs():
    values = np.random.default_rng(1).normal(size=(100, 1))
    assert not np.array_equal(flipped_sums(values, 50, 1), flipped_sums(values, 50, 2))


@given(st.lists(st.integers(-8, 8), min_size=1, max_size=9))
def test_p_values_are_those_of_all_sign_patterns(differences):
    patterns = np.array(list(product((-1, 1), repeat=len(differences)))) @ np.array(differences)
    exact = np.mean(np.abs(patterns) >= abs(sum(differences)))
    (found,) = randomization_p_values([np.array(differences, dtype=float)], rounds=4000)
    assert found == pytest.approx(exact, abs=0.045)  # 5 standard deviations at p = .5


def test_a_system_against_itself():
    values = estimate([0.1, 0.5, 0.9])
    (found,) = compare([values], [values])
    assert (found.difference.value, found.p_value, found.needed) == (0.0, 1.0, None)


def test_whole_clusters_change_places():
    # Twenty copies of one cluster's difference are one observation: nothing can be shown with two clusters
    a, b = estimate([0.0] * 40), estimate([1.0] * 40)
    clusters = np.repeat([0, 1], 20)
    (alone,), (clustered,) = compare([a], [b]), compare([a], [b], clusters)
    assert alone.p_value == pytest.approx(1 / 10_001)
    assert clustered.p_value == pytest.approx(0.5, abs=0.03)  # ++ and -- of four patterns


def test_the_difference_of_means_is_scipys_paired_t():
    from scipy import stats

    chooser = np.random.default_rng(4)
    a, b = chooser.normal(size=50), chooser.normal(0.4, 1, size=50)
    (found,) = compare([estimate(a)], [estimate(b)])
    theirs = stats.ttest_rel(b, a).confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))
    assert found.p_value == pytest.approx(stats.ttest_rel(b, a).pvalue, abs=0.02)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_as_statsmodels(p_values):
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected.tolist(), abs=1e-12)


def test_holm_leaves_unknown_p_values_out():
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]


def test_ranks_with_ties():
    # 0 is better than 2 alone; 1 differs from nobody
    better = np.zeros((3, 3), dtype=bool)
    better[0, 2] = True
    assert ranks(better) == [1, 1, 2]
