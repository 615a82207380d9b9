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
from multimodal_eval.stats.paired import compare, holm, ranks
from multimodal_eval.stats.randomization import flips_of, inverted, randomization_p_values


def estimate(values):
    return mean_estimate(Rows(np.array(values, dtype=float)))


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
    (p_value,) = randomization_p_values([np.array(differences, dtype=float)], rounds=512)
    assert p_value == exact  # as many rounds as patterns: all are enumerated
    (drawn,) = randomization_p_values([np.array([*differences, *[0.0] * 12], dtype=float)], rounds=4000)
    assert drawn == pytest.approx(exact, abs=0.045)  # 5 standard deviations at p = .5


def test_the_interval_has_every_difference_that_the_test_does_not_reject():
    random = np.random.default_rng(5)
    sizes = np.array([1, 1, 2, 7, 3, 1, 4, 2, 1, 9])
    sums = random.normal(0.3, 1, 10) * sizes
    units = np.column_stack([sums / sizes.sum(), sizes / sizes.sum()])
    flips = flips_of(units)
    result = inverted(units[:, 0].sum(), flips.sums[:, 0], flips.sums[:, 1], flips)
    for theta in (result.low, result.high):
        for inside, shifted in (
            (True, theta + (units[:, 0].sum() - theta) * 1e-6),
            (False, theta + (theta - units[:, 0].sum()) * 1e-6),
        ):
            (p_value,) = randomization_p_values([sums - shifted * sizes])
            assert (p_value >= 0.05) == inside


def test_drawn_flips_reject_the_same_differences_as_their_interval():
    # 39 flips and the observed assignment: p is at least .05 if one flip is as far
    units = np.column_stack([np.random.default_rng(2).normal(0.4, 1, 12) / 12, np.full(12, 1 / 12)])
    flips = flips_of(units, rounds=39, seed=4)
    difference, balance = units[:, 0].sum(), flips.sums[:, 1]
    result = inverted(difference, flips.sums[:, 0], balance, flips)
    for theta in (result.low, result.high):
        for inside, shifted in (
            (True, theta + (difference - theta) * 1e-6),
            (False, theta + (theta - difference) * 1e-6),
        ):
            as_far = np.abs(flips.sums[:, 0] - balance * shifted) >= abs(difference - shifted)
            assert ((1 + as_far.sum()) / 40 >= 0.05) == inside
    few = flips_of(units, rounds=18, seed=4)  # p is never below 1 / 19
    assert inverted(difference, few.sums[:, 0], few.sums[:, 1], few).high == np.inf


def test_test_and_interval_never_contradict_each_other():
    random = np.random.default_rng(6)
    for number in range(300):
        n = int(random.integers(6, 60))
        clusters = None if number % 2 else np.sort(random.integers(0, 12, n))
        a, b = random.normal(size=n), random.normal(random.normal(0, 0.5), 1 + 9 * (random.random(n) < 0.05))
        (result,) = compare([estimate(a)], [estimate(b)], clusters, rounds=999, seed=number)
        figure = result.difference
        if figure.low is not None:
            assert (result.p_value < 0.05) == (not figure.low <= 0 <= figure.high)
            assert figure.low < figure.high


def test_a_system_against_itself():
    values = estimate([0.1, 0.5, 0.9])
    (comparison,) = compare([values], [values])
    assert (comparison.difference.value, comparison.p_value, comparison.needed) == (0.0, 1.0, None)
    assert comparison.difference.method == "no interval: identical on 3 samples"


def test_clusters_are_swapped_as_a_whole():
    # Twenty copies of a cluster's difference are one observation; two clusters cannot show a difference
    a, b = estimate([0.0] * 40), estimate([1.0] * 40)
    clusters = np.repeat([0, 1], 20)
    (alone,), (clustered,) = compare([a], [b]), compare([a], [b], clusters)
    assert alone.p_value < 1e-9
    assert clustered.p_value > 0.3
    uneven = estimate(np.linspace(0.5, 1, 40))
    (by_two,) = compare([a], [uneven], clusters)
    assert by_two.p_value == 0.5  # ++ and -- of four patterns


def test_the_difference_of_means_is_close_to_scipys_paired_t():
    from scipy import stats

    chooser = np.random.default_rng(4)
    a, b = chooser.normal(size=50), chooser.normal(0.4, 1, size=50)
    (comparison,) = compare([estimate(a)], [estimate(b)])
    expected = stats.ttest_rel(b, a).confidence_interval(0.95)
    assert (comparison.difference.low, comparison.difference.high) == (
        pytest.approx(expected.low, abs=0.03),
        pytest.approx(expected.high, abs=0.03),
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
