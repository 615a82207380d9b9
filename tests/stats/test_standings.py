"""Many systems against each other: the tests are scipy's, the correction is Holm's, and ties share a rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t, ttest_ind, ttest_rel

from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.standings import standings
from multimodal_eval.stats.stratified import Strata, stratified_mean


def systems(*shifts, count=40, noise=0.1):
    """Systems that are apart by so much on average, and share how hard a sample is."""
    random = np.random.default_rng(11)
    hard = random.random(count)
    return [hard + shift + random.normal(0, noise, count) for shift in shifts]


def ranked(values, clusters=None, **settings):
    return standings([mean_estimate(Rows(own)) for own in values], clusters, **settings)


def test_three_systems_are_scipys_paired_t_tests_corrected_after_holm():
    a, b, c = values = systems(0.0, 0.03, 0.3)
    raw = {(0, 1): ttest_rel(a, b).pvalue, (0, 2): ttest_rel(a, c).pvalue, (1, 2): ttest_rel(b, c).pvalue}
    # Holm: the smallest times 3, the next times 2, the largest as it is, and none below one before.
    smallest, middle, largest = sorted(raw, key=raw.get)
    wanted = {smallest: 3 * raw[smallest]}
    wanted[middle] = max(wanted[smallest], 2 * raw[middle])
    wanted[largest] = max(wanted[middle], raw[largest])
    found = ranked(values)
    assert found.p_values == pytest.approx({pair: min(1, p) for pair, p in wanted.items()}, rel=1e-9)
    assert raw[largest] > 0.05  # a and b cannot be told apart
    assert found.ranks == [2, 2, 1]
    assert ranked(values, higher_is_better=False).ranks == [1, 1, 3]


def test_a_correction_can_cost_a_rank():
    # One pair may be better by a p that three pairs are not: Holm multiplies the smallest of three by 3.
    values = systems(0.0, 0.055)
    pair = ttest_rel(*values).pvalue
    assert 0.0167 < pair < 0.05
    assert ranked(values).ranks == [2, 1]
    third = [*values, (values[0] + values[1]) / 2]  # the same t for all three pairs
    assert ranked(third).ranks == [1, 1, 1]
    assert ranked(third).p_values[0, 1] == pytest.approx(3 * pair, rel=1e-6)


def test_ties_share_a_rank_and_the_next_has_as_many_before_it():
    found = ranked(systems(0.5, 0.51, 0.0, 0.9))
    assert found.ranks == [2, 2, 4, 1]


def test_level_decides_who_is_better():
    values = systems(0.0, 0.055)
    assert ranked(values, level=0.95).ranks == [2, 1]
    assert ranked(values, level=0.99).ranks == [1, 1]


def test_identical_systems():
    (own,) = systems(0.0)
    found = ranked([own, own.copy(), own + 0.25])
    assert found.p_values[0, 1] == 1
    assert found.p_values[0, 2] == 0  # always the same distance: no chance is left
    assert found.ranks == [2, 2, 1]


def test_one_system():
    found = ranked(systems(0.0))
    assert (found.ranks, found.p_values) == ([1], {})


def test_one_sample_tells_nothing():
    found = ranked([np.array([0.1]), np.array([0.9])])
    assert (found.ranks, found.p_values) == ([None, None], {(0, 1): None})


def test_clusters_are_the_units():
    a, b = systems(0.0, 0.05, noise=0.2)
    clusters = np.repeat(np.arange(10), 4)
    found = ranked([a, b], clusters).p_values[0, 1]
    # Clusters of one size: the t test of their means.
    by_cluster = ttest_rel(a.reshape(10, 4).mean(axis=1), b.reshape(10, 4).mean(axis=1)).pvalue
    assert found == pytest.approx(by_cluster, rel=1e-9)
    assert found != pytest.approx(ttest_rel(a, b).pvalue, rel=1e-3)


def test_strata_by_hand():
    a, b = systems(0.0, 0.04)
    codes = np.array([0] * 10 + [1] * 30)
    weights = (0.7, 0.3)
    own = Strata(codes, ("x", "y"), weights)
    found = standings([stratified_mean(values, None, own) for values in (a, b)])
    parts = [(b - a)[codes == code] for code in (0, 1)]
    value = sum(weight * part.mean() for weight, part in zip(weights, parts, strict=True))
    one, two = (weight**2 * part.var(ddof=1) / len(part) for weight, part in zip(weights, parts, strict=True))
    freedom = (one + two) ** 2 / (one**2 / 9 + two**2 / 29)  # Satterthwaite's
    assert 9 < freedom < 38
    assert found.p_values[0, 1] == pytest.approx(2 * t.sf(abs(value) / (one + two) ** 0.5, freedom), rel=1e-9)


def test_strata_of_weights_by_size_are_welchs_test():
    # One system is minus the other, and the second stratum's sign is turned: the strata's means are compared.
    a, _ = systems(0.0, 0.0)
    codes = np.array([0] * 12 + [1] * 28)
    both = [
        stratified_mean(np.where(codes == 0, sign * a, -sign * a) / 2, None, Strata(codes, ("x", "y"), (0.5, 0.5)))
        for sign in (1, -1)
    ]
    wanted = ttest_ind(a[codes == 0], a[codes == 1], equal_var=False).pvalue
    assert standings(both).p_values[0, 1] == pytest.approx(wanted, rel=1e-9)


def test_a_stratum_without_a_weight_counts_for_nothing():
    a, b = systems(0.0, 0.04)
    codes = np.array([0] * 20 + [1] * 20)
    both = [stratified_mean(values, None, Strata(codes, ("x", "y"), (0.0, 1.0))) for values in (a, b)]
    assert standings(both).p_values[0, 1] == pytest.approx(ttest_rel(a[20:], b[20:]).pvalue, rel=1e-9)


def test_a_stratum_with_one_cluster_leaves_no_telling():
    codes = np.array([0] * 39 + [1])
    own = Strata(codes, ("x", "y"), (0.5, 0.5))
    found = standings([stratified_mean(values, None, own) for values in systems(0.0, 0.9)])
    assert (found.ranks, found.p_values) == ([None, None], {(0, 1): None})


def test_a_heavy_stratum_with_few_clusters_is_not_better_by_chance():
    # Two systems that are the same but for noise, 2,000 times. With as many degrees of freedom as clusters less strata
    # (28) one of them would be called better in over 10 %.
    random = np.random.default_rng(3)
    own = Strata(np.repeat([0, 1], [26, 4]), ("light", "heavy"), (0.2, 0.8))
    rounds = 2000
    better = 0
    for _ in range(rounds):
        one, two = (stratified_mean(values, None, own) for values in random.normal(size=(2, 30)))
        better += standings([one, two]).p_values[0, 1] < 0.05
    assert better / rounds < 0.065
