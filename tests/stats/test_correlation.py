from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from multimodal_eval.stats import correlation as pairs_module
from multimodal_eval.stats.correlation import (
    COEFFICIENTS,
    Coefficient,
    PairIndex,
    coefficient_interval,
    kendall_tau_b,
    kendall_tau_c,
    paired_difference,
    pearson,
    spearman,
    tie_calibrated_accuracy,
)
from multimodal_eval.stats.intervals import standard_error
from tests.reference.naive_pairs import naive_calibration, naive_counts

# Ten pairs: six concordant, three discordant, one that people tie.
GOLD = [1, 2, 2, 3, 4]
METRIC = [2, 1, 1.5, 5, 3]

grades = st.integers(0, 4).map(float)
values = st.one_of(
    st.integers(0, 6).map(lambda tenths: tenths / 10),  # many ties, and differences with rounding errors
    st.floats(-1e6, 1e6),
)
judged = st.lists(st.tuples(st.one_of(grades, values), values), min_size=2, max_size=24)


def vectors(rows):
    human, metric = np.array(rows, dtype=float).T
    return human, metric


def tied_sample(seed, n=300, levels=5):
    """Human grades and a metric, both with many ties."""
    rng = np.random.default_rng(seed)
    human = rng.integers(0, levels, n).astype(float)
    return human, np.round(human + 3 * rng.normal(size=n))


def test_a_small_example():
    assert kendall_tau_b(GOLD, METRIC).value == pytest.approx(0.316227766, abs=5e-10)
    assert kendall_tau_c(GOLD, METRIC).value == pytest.approx(0.32, abs=1e-15)
    # Six of ten pairs are ordered the same way; the pair that people tie differs by 0.5 in the metric.
    assert tie_calibrated_accuracy(GOLD, METRIC, epsilon=0).value == 0.6
    calibrated = tie_calibrated_accuracy(GOLD, METRIC)
    assert (calibrated.value, calibrated.epsilon) == (0.7, 0.5)


@pytest.mark.parametrize("seed", range(20))
def test_values_equal_scipy(seed):
    human, metric = tied_sample(seed, levels=2 + seed % 5)
    assert kendall_tau_b(human, metric).value == pytest.approx(stats.kendalltau(human, metric).statistic, abs=1e-12)
    tau_c = stats.kendalltau(human, metric, variant="c").statistic
    assert kendall_tau_c(human, metric).value == pytest.approx(tau_c, abs=1e-12)
    assert spearman(human, metric).value == pytest.approx(stats.spearmanr(human, metric).statistic, abs=1e-12)
    assert pearson(human, metric).value == pytest.approx(stats.pearsonr(human, metric).statistic, abs=1e-12)


@given(judged, st.sampled_from([0.0, 0.1, 0.2, 0.30000000000000004, 1.0, 1e7]))
def test_pair_counts_equal_the_naive_counts(rows, epsilon):
    human, metric = vectors(rows)
    counts = PairIndex(human, metric).counts(epsilon)
    columns = (counts.concordant, counts.discordant, counts.tied_human, counts.tied_metric, counts.tied_both)
    assert np.stack(columns, axis=1).tolist() == naive_counts(human.tolist(), metric.tolist(), epsilon)


@pytest.mark.parametrize("at_once", [0, 4, pairs_module.MAX_LISTED])
def test_calibration_equals_exhaustive_search(at_once, monkeypatch):
    monkeypatch.setattr(pairs_module, "MAX_LISTED", at_once)  # if small, the search must split its bins to the end

    @given(judged)
    def check(rows):
        human, metric = vectors(rows)
        assert PairIndex(human, metric).calibrated() == naive_calibration(human.tolist(), metric.tolist())

    check()


def test_calibration_of_three_million_pairs():
    human, metric = tied_sample(1, n=2500, levels=3)
    metric = metric + np.random.default_rng(2).normal(size=2500) / 100
    epsilon, agreeing = PairIndex(human, metric).calibrated()
    left, right = np.triu_indices(2500, 1)
    differences = np.abs(metric[left] - metric[right])
    alike = np.sign(human[left] - human[right]) * np.sign(metric[left] - metric[right]) > 0
    gains = (human[left] == human[right]).astype(int) - alike
    order = np.argsort(differences)
    reached = int(alike.sum()) + np.cumsum(gains[order])
    assert len(differences) > pairs_module.MAX_LISTED
    assert agreeing == reached.max()
    assert epsilon == differences[order][np.argmax(reached)]


def test_a_fixed_tolerance_is_kept():
    accuracy = tie_calibrated_accuracy(GOLD, METRIC, epsilon=1)
    # Within 1: (2,1) (2,1.5) (2,3) (1,1.5); people tie only the last. Concordant: 5 over 2, 1, 1.5 and 3 over 1, 1.5.
    assert (accuracy.value, accuracy.epsilon) == (0.6, 1)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_influence_values_match_the_jackknife(name):
    human, metric = tied_sample(3)
    coefficient = COEFFICIENTS[name](human, metric)
    compute = COEFFICIENTS[name]
    if name == "acc_eq":

        def compute(h, m):
            return tie_calibrated_accuracy(h, m, epsilon=coefficient.epsilon)

    n = len(human)
    without = [compute(np.delete(human, i), np.delete(metric, i)).value for i in range(n)]
    jackknife = (n - 1) * (coefficient.value - np.array(without))
    assert abs(coefficient.influence.mean()) < 1e-12
    assert np.corrcoef(coefficient.influence, jackknife)[0, 1] > 0.9999
    assert standard_error(coefficient.influence) == pytest.approx(
        standard_error(jackknife - jackknife.mean()), rel=0.01
    )


def clustered_sample(rng, clusters, size=5):
    """Grades in clusters, a metric with many zeros and one without."""
    codes = np.repeat(np.arange(clusters), size)
    latent = rng.normal(size=clusters)[codes] + rng.normal(size=len(codes))
    human = np.digitize(latent, [0, 1, 2]).astype(float)
    first = np.maximum(0, latent + rng.normal(size=clusters)[codes] / 2 + 1.5 * rng.normal(size=len(codes)))
    return human, np.round(first, 1), latent + 2 * rng.normal(size=len(codes)), codes


def test_intervals_cover_the_truth():
    rng = np.random.default_rng(11)
    human, first, second, _ = clustered_sample(rng, 3000)
    truth = {name: (f(human, first).value, f(human, second).value) for name, f in COEFFICIENTS.items()}
    covered = dict.fromkeys(COEFFICIENTS, 0)
    differences = dict.fromkeys(COEFFICIENTS, 0)
    for _ in range(100):
        human, first, second, codes = clustered_sample(rng, 40)
        for name, compute in COEFFICIENTS.items():
            left, right = compute(human, first), compute(human, second)
            interval = coefficient_interval(left, codes, share=name == "acc_eq")
            covered[name] += interval.low <= truth[name][0] <= interval.high
            difference = paired_difference(left, right, codes)
            differences[name] += difference.low <= truth[name][0] - truth[name][1] <= difference.high
    # 95 of 100 are expected; fewer than 88 has a probability of 1/250.
    assert min(covered.values()) >= 88, covered
    assert min(differences.values()) >= 88, differences


def test_clusters_widen_the_interval():
    human, metric = tied_sample(5, n=60)
    repeated = kendall_tau_b(np.tile(human, 4), np.tile(metric, 4))
    clusters = np.tile(np.arange(60), 4)
    # Sixty judgments repeated four times count as sixty; tau-b does not change.
    alone = kendall_tau_b(human, metric)
    assert repeated.value == pytest.approx(alone.value, abs=1e-12)
    assert standard_error(repeated.influence, clusters) == pytest.approx(standard_error(alone.influence), rel=0.05)
    assert standard_error(repeated.influence) < standard_error(alone.influence) * 0.55


def test_fishers_z_by_hand():
    coefficient = Coefficient(0.5, np.array([0.3, -0.3, 0.1, -0.1]))
    error = np.sqrt((0.09 + 0.09 + 0.01 + 0.01) * 4 / 3) / 4
    half = stats.t.ppf(0.975, 3) * error / (1 - 0.25)
    interval = coefficient_interval(coefficient)
    assert interval.stderr == pytest.approx(error)
    assert (interval.low, interval.high) == pytest.approx(
        (np.tanh(np.arctanh(0.5) - half), np.tanh(np.arctanh(0.5) + half))
    )
    assert interval.method == "95% Fisher z interval from influence values, 4 clusters"


def test_a_share_stays_between_0_and_1():
    coefficient = Coefficient(0.97, np.array([0.3, -0.3, 0.1, -0.1]))
    interval = coefficient_interval(coefficient, share=True)
    odds, half = np.log(0.97 / 0.03), stats.t.ppf(0.975, 3) * interval.stderr / (0.97 * 0.03)
    assert (interval.low, interval.high) == pytest.approx(
        (1 / (1 + np.exp(half - odds)), 1 / (1 + np.exp(-half - odds)))
    )
    assert 0 < interval.low < 0.97 < interval.high < 1


@pytest.mark.parametrize("name", ["tau_b", "tau_c", "spearman", "pearson"])
def test_a_constant_has_no_correlation(name):
    for human, metric, who in ((GOLD, [3] * 5, "metric's values"), ([2] * 5, METRIC, "human scores")):
        coefficient = COEFFICIENTS[name](human, metric)
        assert coefficient.value is None
        assert who in coefficient.reason
        assert coefficient_interval(coefficient) is None


def test_a_constant_has_an_accuracy():
    assert tie_calibrated_accuracy(GOLD, [3] * 5).value == 0.1  # the one pair that people also tie


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_fewer_than_two_judgments_are_undefined(name):
    for human in ([], [1.0]):
        coefficient = COEFFICIENTS[name](human, human)
        assert coefficient.value is None
        assert "no pair" in coefficient.reason


def test_perfect_agreement_has_no_interval():
    interval = coefficient_interval(kendall_tau_b([1, 2, 3, 4], [1, 2, 3, 4]))
    assert (interval.value, interval.low, interval.high) == (1.0, None, None)
    assert "standard error is 0" in interval.method


def test_one_cluster_has_no_interval():
    tau = kendall_tau_b(GOLD, METRIC)
    assert coefficient_interval(tau, np.zeros(5, dtype=np.int64)).low is None
    assert paired_difference(tau, spearman(GOLD, METRIC), np.zeros(5, dtype=np.int64)).p_value is None


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_a_metric_against_itself(name):
    human, metric = tied_sample(7)
    first, second = COEFFICIENTS[name](human, metric), COEFFICIENTS[name](human, 10 * metric)
    difference = paired_difference(first, second)
    assert (difference.value, difference.p_value) == (0, 1)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_the_difference_equals_a_t_test_of_influence_values(name):
    human, metric = tied_sample(8)
    noisy = metric + np.random.default_rng(9).normal(size=len(metric))
    first, second = COEFFICIENTS[name](human, metric), COEFFICIENTS[name](human, noisy)
    forward, backward = paired_difference(first, second), paired_difference(second, first)
    expected = stats.ttest_1samp(first.value - second.value + first.influence - second.influence, 0)
    assert forward.p_value == pytest.approx(expected.pvalue)
    assert forward.value == -backward.value
    assert forward.p_value == backward.p_value
    assert (forward.low, forward.high) == (-backward.high, -backward.low)


def test_an_undefined_coefficient_has_no_difference():
    difference = paired_difference(kendall_tau_b(GOLD, METRIC), kendall_tau_b(GOLD, [0] * 5))
    assert difference.value is None
    assert "all 0" in difference.method


def test_a_zero_standard_error_has_no_test():
    difference = paired_difference(kendall_tau_b([1, 2, 3], [1, 2, 3]), kendall_tau_b([1, 2, 3], [3, 2, 1]))
    assert (difference.value, difference.p_value) == (2.0, None)


def test_pearson_of_huge_and_tiny_numbers():
    human, metric = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 3.0, 2.0, 5.0])
    expected = stats.pearsonr(human, metric).statistic
    assert pearson(human * 1e300, metric * 1e-300).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("human", "metric", "message"),
    [
        ([1, 2], [1, 2, 3], "same length"),
        ([1, float("nan")], [1, 2], "'human' scores must be finite. Got nan"),
        ([1, 2], [1, float("inf")], "'metric' scores must be finite. Got inf"),
    ],
)
@pytest.mark.parametrize("name", COEFFICIENTS)
def test_bad_vectors_are_refused(name, human, metric, message):
    with pytest.raises(ValueError, match=message):
        COEFFICIENTS[name](human, metric)


@pytest.mark.parametrize("epsilon", [-0.1, float("nan")])
def test_a_bad_tolerance_is_refused(epsilon):
    with pytest.raises(ValueError, match="must be 0 or more"):
        tie_calibrated_accuracy(GOLD, METRIC, epsilon=epsilon)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_the_order_of_the_judgments_does_not_matter(name):
    human, metric = tied_sample(10)
    order = np.random.default_rng(0).permutation(len(human))
    straight, shuffled = COEFFICIENTS[name](human, metric), COEFFICIENTS[name](human[order], metric[order])
    assert shuffled.value == pytest.approx(straight.value, abs=1e-14)
    assert shuffled.influence == pytest.approx(straight.influence[order], abs=1e-12)
