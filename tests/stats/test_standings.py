"""Ranks of many systems: max-T randomization, checked against all flips, with ranges of ranks."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.paired import compare, standings
from multimodal_eval.stats.stratified import Strata, stratified_mean


def systems(*shifts, count=40, noise=0.1):
    """Systems with the given mean differences that share the difficulty of the samples."""
    random = np.random.default_rng(11)
    difficulty = random.random(count)
    return [difficulty + shift + random.normal(0, noise, count) for shift in shifts]


def ranked(values, clusters=None, **settings):
    return standings([mean_estimate(Rows(np.asarray(system, float))) for system in values], clusters, **settings)


def all_flips(values, strata=None):
    """p of every pair by all flips: the share in which the largest |sum| / length of any pair is as large."""
    table = np.stack(values)
    weights = np.ones(table.shape[1]) if strata is None else strata
    pairs = [(0, 1), (0, 2), (1, 2)]
    parts = np.stack([(table[b] - table[a]) * weights for a, b in pairs])
    parts /= np.sqrt((parts**2).sum(axis=1, keepdims=True))
    flips = np.array(list(product((-1, 1), repeat=table.shape[1])))
    largest = np.abs(flips @ parts.T).max(axis=1)
    return {pair: np.mean(largest >= abs(part.sum()) - 1e-12) for pair, part in zip(pairs, parts, strict=True)}


def test_p_values_equal_those_of_all_flips():
    values = systems(0.0, 0.02, 0.3, count=12)
    expected = all_flips(values)
    result = ranked(values)
    assert result.p_values == pytest.approx(expected)
    assert result.ranks == [2, 2, 1]
    assert result.ranges == [(2, 3), (2, 3), (1, 1)]
    assert ranked(values, higher_is_better=False).ranks == [1, 1, 3]


def test_strata_weight_the_parts_of_their_samples():
    values = systems(0.0, 0.1, 0.2, count=12)
    codes = np.array([0] * 8 + [1] * 4)
    strata = Strata(codes, ("x", "y"), (0.3, 0.7))
    result = standings([stratified_mean(each, None, strata) for each in values])
    assert result.p_values == pytest.approx(all_flips(values, np.array([0.3 / 8] * 8 + [0.7 / 4] * 4)))
    assert result.small_strata == ((1, 4),)


def test_two_systems_are_compared_as_by_compare():
    values = systems(0.0, 0.05)
    (expected,) = compare(*[[mean_estimate(Rows(each))] for each in values])
    assert ranked(values).comparisons[0, 1] == expected


def test_the_correction_can_remove_a_difference_in_rank():
    values = systems(0.0, 0.055)
    assert ranked(values).ranks == [2, 1]
    third = [*values, systems(0.0, 0.0, 0.03)[2]]
    assert ranked(third).ranks == [1, 1, 1]
    assert ranked(third).p_values[0, 1] > ranked(values).p_values[0, 1]


def test_p_and_interval_agree_for_all_pairs():
    random = np.random.default_rng(2)
    for _ in range(20):
        values = random.normal(0, 0.1, (5, 30)) + random.normal(0, 0.06, (5, 1))
        for comparison in ranked(values, rounds=999).comparisons.values():
            figure = comparison.difference
            assert (comparison.p_value < 0.05) == (not figure.low <= 0 <= figure.high)


def test_ties_share_a_rank_and_the_next_rank_is_skipped():
    result = ranked(systems(0.5, 0.51, 0.0, 0.9))
    assert result.ranks == [2, 2, 4, 1]
    assert result.ranges == [(2, 3), (2, 3), (4, 4), (1, 1)]


def test_the_level_decides_significance():
    values = systems(0.0, 0.055)
    assert ranked(values, level=0.95).ranks == [2, 1]
    assert ranked(values, level=0.99).ranks == [1, 1]


def test_identical_systems_and_p_values_that_are_never_0():
    (values,) = systems(0.0)
    result = ranked([values, values.copy(), values + 0.25])
    assert result.p_values[0, 1] == 1
    assert result.p_values[0, 2] == pytest.approx(1 / 10_001)
    assert result.ranks == [2, 2, 1]


def test_three_of_three_against_none_claim_nothing():
    result = ranked([[0, 0, 0], [1, 1, 1], [0, 1, 0]])
    assert result.p_values[0, 1] == 0.25  # + + + and - - - of eight flips
    assert result.ranks == [1, 1, 1]
    assert result.comparisons[0, 1].difference.low == -1.0


def test_one_system():
    result = ranked(systems(0.0))
    assert (result.ranks, result.ranges, result.p_values) == ([1], [(1, 1)], {})


def test_one_sample_has_no_test():
    result = ranked([np.array([0.1]), np.array([0.9])])
    assert (result.ranks, result.ranges, result.p_values) == ([None, None], [None, None], {(0, 1): None})


def test_clusters_are_flipped_as_a_whole():
    values = systems(0.0, 0.05, 0.1, noise=0.2)
    clusters = np.repeat(np.arange(10), 4)
    by_cluster = [each.reshape(10, 4).sum(axis=1) for each in values]
    assert ranked(values, clusters).p_values == pytest.approx(all_flips(by_cluster))


def test_a_stratum_without_a_weight_is_ignored():
    a, b, c = systems(0.0, 0.04, 0.1, count=20)
    codes = np.array([0] * 8 + [1] * 12)
    estimates = [stratified_mean(values, None, Strata(codes, ("x", "y"), (0.0, 1.0))) for values in (a, b, c)]
    assert standings(estimates).p_values == pytest.approx(all_flips([each[8:] for each in (a, b, c)]))


def test_a_stratum_with_one_cluster_has_no_test():
    codes = np.array([0] * 39 + [1])
    strata = Strata(codes, ("x", "y"), (0.5, 0.5))
    result = standings([stratified_mean(values, None, strata) for values in systems(0.0, 0.9, 0.5)])
    assert (result.ranks, result.small_strata) == ([None] * 3, ((1, 1),))
    assert set(result.p_values.values()) == {None}


@pytest.mark.parametrize("shift", [1 / 6, 0.9])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (None, None)])
def test_equal_differences_among_several_have_a_width(shift, bounds):
    # The statistic of six equal differences is sqrt(6) for every theta but the difference itself.
    values = np.array([0.0, 0.05, 0.1, 0.0, 0.1, 0.05])
    systems = [values, values + shift, values[::-1] / 3]
    result = standings([replace(mean_estimate(Rows(each)), bounds=bounds) for each in systems])
    figure, p_value = result.comparisons[0, 1].difference, result.p_values[0, 1]
    if bounds == (None, None):
        assert (figure.low, figure.method) == (None, "no interval: 6 samples that do not vary")
        return
    assert -1 <= figure.low < shift < figure.high <= 1
    assert (p_value < 0.05) == (figure.low > 0)
