"""Weighted sums over strata: their standard error, their interval, and what paired tests make of them."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats import stratified
from multimodal_eval.stats.intervals import interval, t_interval
from multimodal_eval.stats.paired import compare, pseudo_values, randomization_p_values
from multimodal_eval.stats.stratified import Strata, mean_of_clusters, stratified_interval, stratified_mean

# Two strata. x: clusters (.2, .4), (1), (.6, .6, .9); y: clusters (0, .5), (.75).
VALUES = np.array([0.2, 0.4, 1.0, 0.6, 0.6, 0.9, 0.0, 0.5, 0.75])
CLUSTERS = np.array([7, 7, 3, 5, 5, 5, 1, 1, 2])
CODES = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])


def strata(codes, weights):
    return Strata(np.asarray(codes), tuple("abcdefgh"[: len(weights)]), tuple(weights))


def by_stratum(values, clusters, codes):
    """The means of the clusters of each stratum."""
    return [
        [values[clusters == cluster].mean() for cluster in np.unique(clusters[codes == code])]
        for code in np.unique(codes)
    ]


def by_hand(values, clusters, codes, weights):
    """sum w_j mean_j and sqrt(sum w_j^2 s_j^2 / N_j)."""
    means = by_stratum(values, clusters, codes)
    value = sum(weight * np.mean(own) for weight, own in zip(weights, means, strict=True))
    variance = sum(weight**2 * np.var(own, ddof=1) / len(own) for weight, own in zip(weights, means, strict=True))
    return value, sqrt(variance)


def test_the_value_by_hand():
    # x: (.3 + 1 + .7) / 3 = 2/3, y: (.25 + .75) / 2 = .5; .3 * 2/3 + .7 * .5 = .55
    found = stratified_mean(VALUES, CLUSTERS, strata(CODES, (0.3, 0.7)))
    assert found.value == pytest.approx(0.55, abs=1e-15)
    assert np.mean(found.influence) == pytest.approx(0, abs=1e-15)
    assert np.mean(found.contributions) == pytest.approx(0.55, abs=1e-15)


def test_the_standard_error_by_hand():
    # s_x^2 = ((.3 - 2/3)^2 + (1 - 2/3)^2 + (.7 - 2/3)^2) / 2 = 37/300, s_y^2 = .125
    # .09 * 37/900 + .49 * .125 / 2 = .0037 + .030625
    found = interval(stratified_mean(VALUES, CLUSTERS, strata(CODES, (0.3, 0.7))), CLUSTERS)
    assert found.stderr == pytest.approx(sqrt(0.0037 + 0.030625), rel=1e-12)
    assert found.method == "95% percentile bootstrap within strata, 2,000 resamples, 5 clusters in 2 strata"
    assert by_hand(VALUES, CLUSTERS, CODES, (0.3, 0.7)) == pytest.approx((found.value, found.stderr), rel=1e-12)


@st.composite
def samples(draw):
    """Values, clusters and strata; each stratum has two clusters or more."""
    values, clusters, codes, cluster = [], [], [], 0
    count = draw(st.integers(1, 4))
    for code in range(count):
        for _ in range(draw(st.integers(2, 4))):
            own = draw(st.lists(st.floats(0, 1), min_size=1, max_size=4))
            values += own
            clusters += [cluster] * len(own)
            codes += [code] * len(own)
            cluster += 1
    shares = np.array(draw(st.lists(st.floats(0.05, 1), min_size=count, max_size=count)))
    return np.array(values), np.array(clusters), np.array(codes), tuple((shares / shares.sum()).tolist())


@given(samples())
def test_any_standard_error_is_the_formulas(drawn):
    values, clusters, codes, weights = drawn
    found = interval(stratified_mean(values, clusters, strata(codes, weights)), clusters)
    assert (found.value, found.stderr) == pytest.approx(by_hand(values, clusters, codes, weights), abs=1e-9)
    assert found.low <= found.high
    assert values.min() - 1e-9 <= found.low
    assert found.high <= values.max() + 1e-9


@given(samples(), st.randoms(use_true_random=False))
def test_the_order_of_clusters_changes_no_bit(drawn, chance):
    values, clusters, codes, weights = drawn
    # Whole clusters change places, and their numbers: the rows of each keep their order.
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
        found = interval(estimate, clusters)
        assert estimate.value == plain.value
        assert found.stderr == pytest.approx(plain.stderr, rel=1e-12)
        np.testing.assert_allclose(estimate.influence, VALUES - plain.value, atol=1e-15)
    assert interval(mean_of_clusters(VALUES, None)).method.endswith("2,000 resamples, 9 samples")


def test_a_cluster_counts_once_however_long_it_is():
    # 1, and nine times 0: the mean of the clusters' means is a half.
    clusters = np.array([0] + [1] * 9)
    assert mean_of_clusters(np.array([1.0] + [0.0] * 9), clusters).value == 0.5


def test_a_stratum_with_a_single_cluster_has_no_interval():
    codes = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    clusters = np.array([7, 7, 3, 5, 5, 5, 1, 1, 1])
    found = interval(stratified_mean(VALUES, clusters, strata(codes, (0.3, 0.7))), clusters)
    assert (found.stderr, found.low, found.high) == (None, None, None)
    assert found.method == "no interval: 4 clusters in 2 strata, one of which has a single cluster"
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
    with pytest.raises(ConfigError, match="a weight and no sample: b"):
        stratified_mean(VALUES[:6], CLUSTERS[:6], some)
    assert strata(CODES[:6], (1.0, 0.0)).empty() == []
    assert strata(CODES, (0.3, 0.7)).of(CODES == 1).empty() == ["a"]


def test_a_cluster_in_two_strata_is_refused():
    with pytest.raises(ConfigError, match="a group of samples must lie in one stratum"):
        stratified_mean(VALUES, np.zeros(9, dtype=np.int64), strata(CODES, (0.3, 0.7)))


# the bootstrap


def drawn_contest(random, sizes=(12, 15, 9, 20)):
    """Skewed means of clusters: exponential, of another scale in each stratum."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return random.exponential(0.2 + codes / 4), codes


WEIGHTS = (0.1, 0.2, 0.3, 0.4)


def plain_bootstrap(values, codes, weights, rounds, random):
    """Rao and Wu, one resample at a time: N - 1 of N clusters drawn, and the mean of those drawn."""
    sampled = np.zeros(rounds)
    for code, weight in enumerate(weights):
        own = values[codes == code]
        sampled += weight * np.array([random.choice(own, len(own) - 1).mean() for _ in range(rounds)])
    return sampled


def test_the_interval_is_that_of_a_plain_bootstrap():
    values, codes = drawn_contest(np.random.default_rng(5))
    found = interval(stratified_mean(values, None, strata(codes, WEIGHTS)))
    sampled = plain_bootstrap(values, codes, WEIGHTS, 4000, np.random.default_rng(6))
    low, high = np.quantile(sampled, [0.025, 0.975])
    assert np.std(sampled) == pytest.approx(found.stderr, rel=0.05)
    assert (found.low, found.high) == (
        pytest.approx(low, abs=0.2 * found.stderr),
        pytest.approx(high, abs=0.2 * found.stderr),
    )
    assert found.high - found.value > found.value - found.low  # skewed, as the values are


def test_level_sets_the_width():
    values, codes = drawn_contest(np.random.default_rng(5))
    estimate = stratified_mean(values, None, strata(codes, WEIGHTS))
    narrow, wide = (stratified_interval(estimate, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert narrow.method.startswith("50% ")


@pytest.mark.parametrize("large", [10_000, 100])
def test_many_clusters_give_the_normal_interval(monkeypatch, large):
    monkeypatch.setattr(stratified, "LARGE", large)  # the second time strata are drawn as normal at once
    random = np.random.default_rng(1)
    codes = np.repeat([0, 1], 400)
    found = interval(stratified_mean(random.random(800), None, strata(codes, (0.5, 0.5))))
    half = 1.959964 * found.stderr
    assert (found.value - found.low, found.high - found.value) == pytest.approx((half, half), rel=0.08)


def test_strata_of_one_size_are_drawn_independently():
    # The same values in four strata. Draws that they shared would make the interval twice as wide: sqrt(4 s^2) against
    # 4 s, both divided by 4.
    random = np.random.default_rng(2)
    own = random.random(30)
    estimate = stratified_mean(np.tile(own, 4), None, strata(np.repeat(np.arange(4), 30), (0.25,) * 4))
    found, alone = interval(estimate), interval(mean_of_clusters(own, None))
    assert found.stderr == pytest.approx(alone.stderr / 2, rel=1e-12)
    assert found.high - found.low == pytest.approx(2 * 1.96 * found.stderr, rel=0.1)
    assert alone.high - alone.low == pytest.approx(2 * 1.96 * alone.stderr, rel=0.1)


def test_the_resamples_have_the_variance_of_the_formula_where_strata_are_small():
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
        found = interval(stratified_mean(values, None, strata(codes, WEIGHTS)))
        covered += found.low <= truth <= found.high
    assert 0.88 <= covered / 200 <= 0.99


# differences


def two_systems():
    random = np.random.default_rng(8)
    first = random.random(24)
    second = np.clip(first + random.normal(0.05, 0.2, 24), 0, 1)
    return first, second, np.repeat(np.arange(12), 2), np.repeat([0, 1, 2], 8)


def test_a_difference_is_the_estimate_of_the_differences():
    first, second, clusters, codes = two_systems()
    own = strata(codes, (0.2, 0.3, 0.5))
    a, b = stratified_mean(first, clusters, own), stratified_mean(second, clusters, own)
    difference, straight = b.minus(a), stratified_mean(second - first, clusters, own)
    assert difference.value == pytest.approx(straight.value, abs=1e-15)
    np.testing.assert_allclose(difference.influence, straight.influence, atol=1e-15)
    np.testing.assert_allclose(difference.contributions, straight.contributions, atol=1e-15)
    assert np.array_equal(difference.strata, straight.strata)
    for estimate in (a, b, difference):
        assert pseudo_values(estimate).mean() == pytest.approx(estimate.value, abs=1e-15)


def test_a_paired_comparison_of_weighted_sums():
    first, second, clusters, codes = two_systems()
    own = strata(codes, (0.2, 0.3, 0.5))
    a, b = stratified_mean(first, clusters, own), stratified_mean(second, clusters, own)
    (found,) = compare([a], [b], clusters, rounds=2000)
    value, error = by_hand(second - first, clusters, codes, (0.2, 0.3, 0.5))
    assert found.difference.value == pytest.approx(value, abs=1e-12)
    assert found.difference.stderr == pytest.approx(error, rel=1e-12)
    assert "within strata" in found.difference.method


def test_randomization_flips_what_clusters_add_to_the_weighted_sum():
    # Every sign of the 12 clusters: 4,096 sums of w_j / N_j * (mean difference of the cluster).
    first, second, clusters, codes = two_systems()
    weights = (0.2, 0.3, 0.5)
    own = strata(codes, weights)
    difference = stratified_mean(second, clusters, own).minus(stratified_mean(first, clusters, own))
    units = np.array([(second - first)[clusters == c].mean() * weights[c // 4] / 4 for c in range(12)])
    signs = 1 - 2 * ((np.arange(4096)[:, None] >> np.arange(12)) & 1)
    exact = (np.abs(signs @ units) >= abs(units.sum()) - 1e-12).mean()
    (found,) = randomization_p_values([pseudo_values(difference)], clusters, rounds=20_000)
    assert 0.01 < exact < 0.9
    assert found == pytest.approx(exact, abs=0.012)
