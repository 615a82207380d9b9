"""Weighted sums over strata: standard errors, intervals and paired tests."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats import stratified
from multimodal_eval.stats.intervals import interval, t_interval
from multimodal_eval.stats.paired import compare
from multimodal_eval.stats.stratified import Strata, mean_of_clusters, stratified_interval, stratified_mean

# Two strata. x: clusters (.2, .4), (1), (.6, .6, .9); y: clusters (0, .5), (.75).
VALUES = np.array([0.2, 0.4, 1.0, 0.6, 0.6, 0.9, 0.0, 0.5, 0.75])
CLUSTERS = np.array([7, 7, 3, 5, 5, 5, 1, 1, 2])
CODES = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])


def strata(codes, weights):
    return Strata(np.asarray(codes), tuple("abcdefgh"[: len(weights)]), tuple(weights))


def by_stratum(values, clusters, codes):
    """The cluster means of each stratum."""
    return [
        [values[clusters == cluster].mean() for cluster in np.unique(clusters[codes == code])]
        for code in np.unique(codes)
    ]


def by_hand(values, clusters, codes, weights):
    """sum w_j mean_j and sqrt(sum w_j^2 s_j^2 / N_j)."""
    means = by_stratum(values, clusters, codes)
    value = sum(weight * np.mean(stratum) for weight, stratum in zip(weights, means, strict=True))
    variance = sum(
        weight**2 * np.var(stratum, ddof=1) / len(stratum) for weight, stratum in zip(weights, means, strict=True)
    )
    return value, sqrt(variance)


def test_the_value_by_hand():
    # x: (.3 + 1 + .7) / 3 = 2/3, y: (.25 + .75) / 2 = .5; .3 * 2/3 + .7 * .5 = .55
    estimate = stratified_mean(VALUES, CLUSTERS, strata(CODES, (0.3, 0.7)))
    assert estimate.value == pytest.approx(0.55, abs=1e-15)
    assert np.mean(estimate.influence) == pytest.approx(0, abs=1e-15)
    assert np.mean(estimate.contributions) == pytest.approx(0.55, abs=1e-15)


def test_the_standard_error_by_hand():
    # s_x^2 = ((.3 - 2/3)^2 + (1 - 2/3)^2 + (.7 - 2/3)^2) / 2 = 37/300, s_y^2 = .125
    # .09 * 37/900 + .49 * .125 / 2 = .0037 + .030625
    result = interval(stratified_mean(VALUES, CLUSTERS, strata(CODES, (0.3, 0.7))), CLUSTERS)
    assert result.stderr == pytest.approx(sqrt(0.0037 + 0.030625), rel=1e-12)
    assert result.method == "95% percentile bootstrap within strata, 2,000 resamples, 5 clusters in 2 strata"
    assert by_hand(VALUES, CLUSTERS, CODES, (0.3, 0.7)) == pytest.approx((result.value, result.stderr), rel=1e-12)


@st.composite
def samples(draw):
    """Values, clusters and strata; each stratum has at least two clusters."""
    values, clusters, codes, cluster = [], [], [], 0
    count = draw(st.integers(1, 4))
    for code in range(count):
        for _ in range(draw(st.integers(2, 4))):
            cluster_values = draw(st.lists(st.floats(0, 1), min_size=1, max_size=4))
            values += cluster_values
            clusters += [cluster] * len(cluster_values)
            codes += [code] * len(cluster_values)
            cluster += 1
    shares = np.array(draw(st.lists(st.floats(0.05, 1), min_size=count, max_size=count)))
    return np.array(values), np.array(clusters), np.array(codes), tuple((shares / shares.sum()).tolist())


@given(samples())
def test_the_standard_error_follows_the_formula(drawn):
    values, clusters, codes, weights = drawn
    result = interval(stratified_mean(values, clusters, strata(codes, weights)), clusters)
    assert (result.value, result.stderr) == pytest.approx(by_hand(values, clusters, codes, weights), abs=1e-9)
    if result.low is None:  # nothing varies
        assert result.stderr == 0
        return
    assert result.low <= result.high
    assert values.min() - 1e-9 <= result.low
    assert result.high <= values.max() + 1e-9


@given(samples(), st.randoms(use_true_random=False))
def test_the_order_of_clusters_does_not_change_the_interval(drawn, chance):
    values, clusters, codes, weights = drawn
    # Clusters are reordered and renumbered; the rows of each cluster keep their order.
    names = np.unique(clusters).tolist()
    chance.shuffle(names)
    rows = np.concatenate([np.flatnonzero(clusters == name) for name in names])
    renamed = np.array([names.index(name) for name in clusters[rows].tolist()])
    first = interval(stratified_mean(values, clusters, strata(codes, weights)), clusters)
    second = interval(stratified_mean(values[rows], renamed, strata(codes[rows], weights)), renamed)
    assert first == second


def test_one_stratum_with_clusters_of_one_is_the_mean():
    plain = t_interval(mean_estimate(Rows(VALUES)))
    for clusters in (None, np.arange(9), np.arange(9)[::-1] * 2):
        estimate = mean_of_clusters(VALUES, clusters)
        result = interval(estimate, clusters)
        assert estimate.value == plain.value
        assert result.stderr == pytest.approx(plain.stderr, rel=1e-12)
        np.testing.assert_allclose(estimate.influence, VALUES - plain.value, atol=1e-15)
    assert interval(mean_of_clusters(VALUES, None)).method.endswith("2,000 resamples, 9 samples")


def test_a_cluster_counts_once_regardless_of_its_size():
    # Cluster means 1 and 0: their mean is 0.5.
    clusters = np.array([0] + [1] * 9)
    assert mean_of_clusters(np.array([1.0] + [0.0] * 9), clusters).value == 0.5


def test_a_stratum_with_a_single_cluster_has_no_interval():
    codes = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    clusters = np.array([7, 7, 3, 5, 5, 5, 1, 1, 1])
    weighted = interval(stratified_mean(VALUES, clusters, strata(codes, (0.3, 0.7))), clusters)
    assert (weighted.stderr, weighted.low, weighted.high) == (None, None, None)
    assert weighted.method == "no interval: 4 clusters in 2 strata, one of which has a single cluster"
    unweighted = interval(stratified_mean(VALUES, clusters, strata(codes, (1.0, 0.0))), clusters)
    # x alone: 37/300 / 3
    assert unweighted.stderr == pytest.approx(sqrt(37 / 900), rel=1e-12)
    assert unweighted.method.endswith("resamples, 3 clusters")
    alone = interval(mean_of_clusters(VALUES, np.zeros(9, dtype=np.int64)), np.zeros(9, dtype=np.int64))
    assert alone.method == "no interval: 1 cluster"


def test_a_stratum_without_a_weight_changes_nothing():
    with_it = stratified_mean(VALUES, CLUSTERS, strata(CODES, (1.0, 0.0)))
    rows = CODES == 0
    without = mean_of_clusters(VALUES[rows], CLUSTERS[rows])
    first, second = interval(with_it, CLUSTERS), interval(without, CLUSTERS[rows])
    assert (first.value, first.low, first.high) == pytest.approx((second.value, second.low, second.high))
    assert first.stderr == pytest.approx(second.stderr, rel=1e-12)


def test_a_stratum_with_a_weight_needs_a_sample():
    some = strata(CODES[:6], (0.3, 0.7))
    assert some.empty() == ["b"]
    with pytest.raises(ConfigError, match="a weight but no sample: b"):
        stratified_mean(VALUES[:6], CLUSTERS[:6], some)
    assert strata(CODES[:6], (1.0, 0.0)).empty() == []
    assert strata(CODES, (0.3, 0.7)).of(CODES == 1).empty() == ["a"]


def test_a_cluster_in_two_strata_is_refused():
    with pytest.raises(ConfigError, match="a group of samples must be in one stratum"):
        stratified_mean(VALUES, np.zeros(9, dtype=np.int64), strata(CODES, (0.3, 0.7)))


# The bootstrap.


def drawn_contest(random, sizes=(12, 15, 9, 20)):
    """Skewed cluster means: exponential, with a different scale in each stratum."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return random.exponential(0.2 + codes / 4), codes


WEIGHTS = (0.1, 0.2, 0.3, 0.4)


def plain_bootstrap(values, codes, weights, rounds, random):
    """Rao and Wu, one resample at a time: the mean of N - 1 drawn clusters."""
    sampled = np.zeros(rounds)
    for code, weight in enumerate(weights):
        stratum = values[codes == code]
        sampled += weight * np.array([random.choice(stratum, len(stratum) - 1).mean() for _ in range(rounds)])
    return sampled


def test_the_interval_matches_a_plain_bootstrap():
    values, codes = drawn_contest(np.random.default_rng(5))
    result = interval(stratified_mean(values, None, strata(codes, WEIGHTS)))
    sampled = plain_bootstrap(values, codes, WEIGHTS, 4000, np.random.default_rng(6))
    low, high = np.quantile(sampled, [0.025, 0.975])
    assert np.std(sampled) == pytest.approx(result.stderr, rel=0.05)
    assert (result.low, result.high) == (
        pytest.approx(low, abs=0.2 * result.stderr),
        pytest.approx(high, abs=0.2 * result.stderr),
    )
    assert result.high - result.value > result.value - result.low  # skewed, as the values are


def test_the_level_sets_the_width():
    values, codes = drawn_contest(np.random.default_rng(5))
    estimate = stratified_mean(values, None, strata(codes, WEIGHTS))
    narrow, wide = (stratified_interval(estimate, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert narrow.method.startswith("50% ")


@pytest.mark.parametrize("large", [10_000, 100])
def test_many_clusters_give_the_normal_interval(monkeypatch, large):
    monkeypatch.setattr(stratified, "LARGE", large)  # with 100, the normal approximation is used
    random = np.random.default_rng(1)
    codes = np.repeat([0, 1], 400)
    result = interval(stratified_mean(random.random(800), None, strata(codes, (0.5, 0.5))))
    half = 1.959964 * result.stderr
    assert (result.value - result.low, result.high - result.value) == pytest.approx((half, half), rel=0.08)


def test_strata_of_one_size_are_drawn_independently():
    # The same values in four strata. Shared draws would make the interval twice as wide: 4 s instead of sqrt(4 s^2),
    # both divided by 4.
    random = np.random.default_rng(2)
    values = random.random(30)
    estimate = stratified_mean(np.tile(values, 4), None, strata(np.repeat(np.arange(4), 30), (0.25,) * 4))
    four, single = interval(estimate), interval(mean_of_clusters(values, None))
    assert four.stderr == pytest.approx(single.stderr / 2, rel=1e-12)
    assert four.high - four.low == pytest.approx(2 * 1.96 * four.stderr, rel=0.1)
    assert single.high - single.low == pytest.approx(2 * 1.96 * single.stderr, rel=0.1)


def test_resamples_of_small_strata_have_the_variance_of_the_formula():
    # N draws of N = 3 clusters would have 2/3 of the variance.
    effects = np.array([-0.5, 0.1, 0.4])
    sampled = stratified._resampled(effects, 0)
    assert np.var(sampled) == pytest.approx(stratified._variance(effects), rel=0.08)
    assert np.mean(sampled) == pytest.approx(0, abs=0.05)


def test_intervals_cover_the_truth():
    random = np.random.default_rng(0)
    sizes = (12, 15, 9, 20)
    truth = sum(weight * (0.3 + code / 10) for code, weight in enumerate(WEIGHTS))
    covered = 0
    for _ in range(200):
        codes = np.repeat(np.arange(4), sizes)
        shape = 0.3 + codes / 10
        values = random.beta(4 * shape, 4 * (1 - shape))
        result = interval(stratified_mean(values, None, strata(codes, WEIGHTS)))
        covered += result.low <= truth <= result.high
    assert 0.88 <= covered / 200 <= 0.99


# Differences.


def two_systems():
    random = np.random.default_rng(8)
    first = random.random(24)
    second = np.clip(first + random.normal(0.05, 0.2, 24), 0, 1)
    return first, second, np.repeat(np.arange(12), 2), np.repeat([0, 1, 2], 8)


def test_a_difference_equals_the_estimate_of_the_differences():
    first, second, clusters, codes = two_systems()
    weighted = strata(codes, (0.2, 0.3, 0.5))
    a, b = stratified_mean(first, clusters, weighted), stratified_mean(second, clusters, weighted)
    difference, direct = b.minus(a), stratified_mean(second - first, clusters, weighted)
    assert difference.value == pytest.approx(direct.value, abs=1e-15)
    np.testing.assert_allclose(difference.influence, direct.influence, atol=1e-15)
    np.testing.assert_allclose(difference.contributions, direct.contributions, atol=1e-15)
    assert np.array_equal(difference.strata, direct.strata)
    for estimate in (a, b, difference):
        assert estimate.contributions.mean() == pytest.approx(estimate.value, abs=1e-15)


def test_a_paired_comparison_of_weighted_sums():
    first, second, clusters, codes = two_systems()
    weighted = strata(codes, (0.2, 0.3, 0.5))
    a, b = stratified_mean(first, clusters, weighted), stratified_mean(second, clusters, weighted)
    (comparison,) = compare([a], [b], clusters, rounds=2000)
    value, error = by_hand(second - first, clusters, codes, (0.2, 0.3, 0.5))
    assert comparison.difference.value == pytest.approx(value, abs=1e-12)
    assert comparison.difference.stderr == pytest.approx(error, rel=1e-12)
    assert comparison.difference.method == "95% interval by randomization, 12 clusters within strata"


def test_randomization_flips_the_contributions_of_clusters():
    # All signs of the 12 clusters: 4,096 sums of w_j / N_j * (mean difference of the cluster).
    first, second, clusters, codes = two_systems()
    weights = (0.2, 0.3, 0.5)
    weighted = strata(codes, weights)
    a, b = stratified_mean(first, clusters, weighted), stratified_mean(second, clusters, weighted)
    units = np.array([(second - first)[clusters == c].mean() * weights[c // 4] / 4 for c in range(12)])
    signs = 1 - 2 * ((np.arange(4096)[:, None] >> np.arange(12)) & 1)
    exact = (np.abs(signs @ units) >= abs(units.sum()) - 1e-12).mean()
    (comparison,) = compare([a], [b], clusters)
    assert 0.01 < exact < 0.9
    assert comparison.p_value == exact


def test_equal_values_whose_mean_is_rounded_have_a_width():
    # 0.35 is not a sum of few powers of 2, so that each value differs from the rounded mean.
    strata = Strata(np.arange(10) % 3, ("a", "b", "c"), (0.2, 0.3, 0.5))
    estimate = replace(stratified_mean(np.full(10, 0.35), None, strata), bounds=(0.0, 1.0))
    assert estimate.influence.any()
    figure = stratified_interval(estimate)
    assert 0 < figure.low < 0.35 - 0.1 < 0.35 + 0.1 < figure.high <= 1
