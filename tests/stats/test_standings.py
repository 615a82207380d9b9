"""Ranks of many systems: p-values equal scipy's with Holm's correction, and ties share a rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t, ttest_ind, ttest_rel

from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.paired import standings
from multimodal_eval.stats.stratified import Strata, stratified_mean


def systems(*shifts, count=40, noise=0.1):
    """Systems with the given mean differences that share the difficulty of the samples."""
    random = np.random.default_rng(11)
    difficulty = random.random(count)
    return [difficulty + shift + random.normal(0, noise, count) for shift in shifts]


def ranked(values, clusters=None, **settings):
    return standings([mean_estimate(Rows(system)) for system in values], clusters, **settings)


def test_p_values_are_holm_corrected_paired_t_tests():
    a, b, c = values = systems(0.0, 0.03, 0.3)
    raw = {(0, 1): ttest_rel(a, b).pvalue, (0, 2): ttest_rel(a, c).pvalue, (1, 2): ttest_rel(b, c).pvalue}
    # Holm: the smallest times 3, the next times 2, the largest unchanged, and none below the previous one.
    smallest, middle, largest = sorted(raw, key=raw.get)
    expected = {smallest: 3 * raw[smallest]}
    expected[middle] = max(expected[smallest], 2 * raw[middle])
    expected[largest] = max(expected[middle], raw[largest])
    result = ranked(values)
    assert result.p_values == pytest.approx({pair: min(1, p) for pair, p in expected.items()}, rel=1e-9)
    assert raw[largest] > 0.05  # a and b cannot be distinguished
    assert result.ranks == [2, 2, 1]
    assert ranked(values, higher_is_better=False).ranks == [1, 1, 3]


def test_the_correction_can_remove_a_difference_in_rank():
    # A p-value can be significant for one pair, but not for three: Holm multiplies the smallest of three by 3.
    values = systems(0.0, 0.055)
    pair = ttest_rel(*values).pvalue
    assert 0.0167 < pair < 0.05
    assert ranked(values).ranks == [2, 1]
    third = [*values, (values[0] + values[1]) / 2]  # the same t for all three pairs
    assert ranked(third).ranks == [1, 1, 1]
    assert ranked(third).p_values[0, 1] == pytest.approx(3 * pair, rel=1e-6)


def test_ties_share_a_rank_and_the_next_rank_is_skipped():
    result = ranked(systems(0.5, 0.51, 0.0, 0.9))
    assert result.ranks == [2, 2, 4, 1]


def test_the_level_decides_significance():
    values = systems(0.0, 0.055)
    assert ranked(values, level=0.95).ranks == [2, 1]
    assert ranked(values, level=0.99).ranks == [1, 1]


def test_identical_systems():
    (values,) = systems(0.0)
    result = ranked([values, values.copy(), values + 0.25])
    assert result.p_values[0, 1] == 1
    assert result.p_values[0, 2] == 0  # a constant difference
    assert result.ranks == [2, 2, 1]


def test_one_system():
    result = ranked(systems(0.0))
    assert (result.ranks, result.p_values) == ([1], {})


def test_one_sample_has_no_test():
    result = ranked([np.array([0.1]), np.array([0.9])])
    assert (result.ranks, result.p_values) == ([None, None], {(0, 1): None})


def test_clusters_are_the_units():
    a, b = systems(0.0, 0.05, noise=0.2)
    clusters = np.repeat(np.arange(10), 4)
    p_value = ranked([a, b], clusters).p_values[0, 1]
    # For clusters of equal size, this is the t test of their means.
    by_cluster = ttest_rel(a.reshape(10, 4).mean(axis=1), b.reshape(10, 4).mean(axis=1)).pvalue
    assert p_value == pytest.approx(by_cluster, rel=1e-9)
    assert p_value != pytest.approx(ttest_rel(a, b).pvalue, rel=1e-3)


def test_strata_by_hand():
    a, b = systems(0.0, 0.04)
    codes = np.array([0] * 10 + [1] * 30)
    weights = (0.7, 0.3)
    strata = Strata(codes, ("x", "y"), weights)
    result = standings([stratified_mean(values, None, strata) for values in (a, b)])
    parts = [(b - a)[codes == code] for code in (0, 1)]
    value = sum(weight * part.mean() for weight, part in zip(weights, parts, strict=True))
    heavy, light = (weight**2 * part.var(ddof=1) / len(part) for weight, part in zip(weights, parts, strict=True))
    freedom = (heavy + light) ** 2 / (heavy**2 / 9 + light**2 / 29)  # Satterthwaite's
    assert 9 < freedom < 38
    assert result.p_values[0, 1] == pytest.approx(2 * t.sf(abs(value) / (heavy + light) ** 0.5, freedom), rel=1e-9)


def test_two_strata_equal_welchs_test():
    # One system is the negative of the other, with opposite signs in the second stratum, so the test compares the
    # means of the strata.
    a, _ = systems(0.0, 0.0)
    codes = np.array([0] * 12 + [1] * 28)
    estimates = [
        stratified_mean(np.where(codes == 0, sign * a, -sign * a) / 2, None, Strata(codes, ("x", "y"), (0.5, 0.5)))
        for sign in (1, -1)
    ]
    expected = ttest_ind(a[codes == 0], a[codes == 1], equal_var=False).pvalue
    assert standings(estimates).p_values[0, 1] == pytest.approx(expected, rel=1e-9)


def test_a_stratum_without_a_weight_is_ignored():
    a, b = systems(0.0, 0.04)
    codes = np.array([0] * 20 + [1] * 20)
    estimates = [stratified_mean(values, None, Strata(codes, ("x", "y"), (0.0, 1.0))) for values in (a, b)]
    assert standings(estimates).p_values[0, 1] == pytest.approx(ttest_rel(a[20:], b[20:]).pvalue, rel=1e-9)


def test_a_stratum_with_one_cluster_has_no_test():
    codes = np.array([0] * 39 + [1])
    strata = Strata(codes, ("x", "y"), (0.5, 0.5))
    result = standings([stratified_mean(values, None, strata) for values in systems(0.0, 0.9)])
    assert (result.ranks, result.p_values) == ([None, None], {(0, 1): None})


def test_a_heavy_stratum_with_few_clusters_has_few_false_alarms():
    # Two systems that differ only by noise, 2,000 times. With clusters minus strata (28) as the degrees of freedom,
    # more than 10 % of the differences would be significant.
    random = np.random.default_rng(3)
    strata = Strata(np.repeat([0, 1], [26, 4]), ("light", "heavy"), (0.2, 0.8))
    rounds = 2000
    significant = 0
    for _ in range(rounds):
        first, second = (stratified_mean(values, None, strata) for values in random.normal(size=(2, 30)))
        significant += standings([first, second]).p_values[0, 1] < 0.05
    assert significant / rounds < 0.065
