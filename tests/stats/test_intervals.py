from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.estimates import function_of_sums
from multimodal_eval.stats.intervals import (
    cluster_error,
    interval,
    interval_of_equal_values,
    standard_error,
    t_interval,
    wilson_bounds,
)
from multimodal_eval.stats.special import stdtrit

# Miller 2024; statsmodels' OLS on a constant with cov_type="cluster" gives the same (checked below).
SCORES = np.array([1, 1, 0, 0, 1, 0, 1, 1, 1, 0], dtype=float)
CLUSTERS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 3])


def test_the_published_vector():
    estimate = mean_estimate(Rows(SCORES))
    assert estimate.value == 0.6
    assert standard_error(estimate.influence) == pytest.approx(0.1632993, abs=5e-8)
    assert standard_error(estimate.influence, CLUSTERS) == pytest.approx(0.1346601, abs=5e-8)


def test_clusters_agree_with_statsmodels():
    from statsmodels.regression.linear_model import OLS

    fitted = OLS(SCORES, np.ones(10)).fit(cov_type="cluster", cov_kwds={"groups": CLUSTERS, "use_correction": False})
    correction = np.sqrt(4 / 3)  # C / (C - 1)
    assert standard_error(SCORES - 0.6, CLUSTERS) == pytest.approx(fitted.bse[0] * correction, rel=1e-12)


def test_the_interval_equals_scipys_t_interval():
    from scipy import stats

    interval = t_interval(mean_estimate(Rows(SCORES)))
    low, high = stats.t.interval(0.95, 9, loc=SCORES.mean(), scale=stats.sem(SCORES))
    assert (interval.low, interval.high) == (pytest.approx(low), pytest.approx(high))
    assert interval.method == "95% t interval, 10 samples"


def test_clusters_set_the_degrees_of_freedom():
    clusters = np.repeat([0, 1, 2, 3, 4], 2)  # of equal size: the standard error of Miller, 4 degrees of freedom
    interval, error = t_interval(mean_estimate(Rows(SCORES)), clusters), standard_error(SCORES - 0.6, clusters)
    assert interval.high == pytest.approx(0.6 + 2.7764451 * error, abs=1e-6)  # t(.975, 4 df)
    assert interval.method == "95% t interval, 5 clusters"


def test_the_variance_over_uneven_clusters_is_cr2_with_the_freedom_of_bell_and_mccaffrey():
    # By matrices: residuals e = M y with M = I - 11'/n, adjusted by A_c = (I - H_cc)^(-1/2) within each cluster, and
    # G = (a_c' M L), a_c = A_c 1 on the rows of c, L L' the covariance with the correlation rho within clusters.
    random = np.random.default_rng(8)
    codes = np.repeat([0, 1, 2, 3, 4, 5], [1, 2, 9, 4, 1, 3])
    values = random.normal(size=6)[codes] + random.normal(size=20)
    n, same = 20, codes[:, None] == codes
    residuals = values - values.mean()
    project = np.eye(n) - 1 / n
    rows = []
    for code in range(6):
        members = codes == code
        block = np.eye(members.sum()) - 1 / n
        power = np.linalg.eigh(block)
        adjusted = power.eigenvectors @ np.diag(power.eigenvalues**-0.5) @ power.eigenvectors.T
        row = np.zeros(n)
        row[members] = adjusted @ np.ones(members.sum())
        rows.append(row)
    result = cluster_error(residuals, codes)
    assert result.stderr == pytest.approx(np.sqrt(sum((row @ residuals) ** 2 for row in rows)) / n)
    sizes, means = np.bincount(codes), np.bincount(codes, weights=values) / np.bincount(codes)
    between = (sizes * (means - values.mean()) ** 2).sum() / 5
    within = ((values - means[codes]) ** 2).sum() / 14
    shared = (between - within) / ((20 - (sizes**2).sum() / 20) / 5)
    rho = shared / (shared + within)
    covariance = (1 - rho) * np.eye(n) + rho * same
    middle = np.stack(rows) @ project @ covariance @ project @ np.stack(rows).T
    assert result.freedom == pytest.approx(np.trace(middle) ** 2 / (middle**2).sum())
    assert 1 < result.freedom < 5


def test_one_sample_or_one_cluster_has_no_interval():
    assert t_interval(mean_estimate(Rows(SCORES[:1]))).stderr is None
    only = t_interval(mean_estimate(Rows(SCORES)), np.zeros(10, dtype=np.int64))
    assert (only.stderr, only.low, only.method) == (None, None, "no interval: 1 cluster")


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_clusters_of_one_sample_change_nothing(values):
    influence = mean_estimate(Rows(np.array(values))).influence
    assert standard_error(influence, np.arange(len(values)) * 3) == standard_error(influence)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30), st.randoms())
def test_a_mean_does_not_depend_on_the_order(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert mean_estimate(Rows(np.array(values))).value == mean_estimate(Rows(np.array(shuffled))).value


def macro_f1(rows: Rows, classes: int = 3):
    """Statistics per row: hit, gold and predicted, one-hot by class. F_k = 2 TP_k / (gold_k + predicted_k)."""

    def split(sums):
        return sums[:classes], sums[classes : 2 * classes] + sums[2 * classes :]

    def value(sums):
        hits, sizes = split(sums)
        return float(np.mean(2 * hits / sizes))

    def gradient(sums):
        hits, sizes = split(sums)
        on_size = -2 * hits / sizes**2 / classes
        return np.concatenate([2 / sizes / classes, on_size, on_size])

    return function_of_sums(rows, value, gradient)


def macro_f1_stats(gold, predicted, classes=3):
    one_hot = np.eye(classes)
    hits = one_hot[gold] * (np.array(gold) == np.array(predicted))[:, None]
    return np.hstack([hits, one_hot[gold], one_hot[predicted]])


GOLD = [int(label) for label in "0001112222"]
PREDICTED = [int(label) for label in "0011122202"]


def test_macro_f1_is_a_function_of_sums():
    from sklearn.metrics import f1_score

    stats = macro_f1_stats(GOLD, PREDICTED)
    estimate = macro_f1(Rows(np.zeros(10), stats))
    assert estimate.value == pytest.approx(f1_score(GOLD, PREDICTED, average="macro"), abs=1e-12)
    assert estimate.value == pytest.approx(0.6944444, abs=5e-8)
    # SE = sqrt(sum psi^2) / n, before the small-sample factor
    assert np.sqrt(np.sum(estimate.influence**2)) / 10 == pytest.approx(0.1469771, abs=5e-8)


def test_influence_values_are_the_derivative_by_row_weight():
    stats = macro_f1_stats(GOLD, PREDICTED)
    rows = Rows(np.zeros(10), stats)
    estimate, step = macro_f1(rows), 1e-6
    for row in range(10):
        heavier = stats.sum(axis=0) + step * stats[row]
        hits, sizes = heavier[:3], heavier[3:6] + heavier[6:]
        change = (np.mean(2 * hits / sizes) - estimate.value) / step
        assert 10 * change == pytest.approx(estimate.influence[row], abs=1e-4)


def test_missing_statistics_are_an_error():
    with pytest.raises(ValueError, match="needs per-sample statistics"):
        function_of_sums(Rows(SCORES), lambda sums: 0.0, lambda sums: sums)


def test_shares_have_wilsons_interval():
    from statsmodels.stats.proportion import proportion_confint

    estimate = mean_estimate(Rows(SCORES))
    wilson = interval(estimate, values=SCORES)
    low, high = proportion_confint(6, 10, method="wilson")
    assert (wilson.low, wilson.high) == (pytest.approx(low), pytest.approx(high))
    assert wilson.method == "95% Wilson interval, 10 samples"


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_right_or_all_wrong_is_not_certain(value):
    values = np.full(10, value)
    plain = interval(mean_estimate(Rows(values)), values=values)
    # Wilson's interval at p = 0: z^2 / (n + z^2) = 3.8415 / 13.8415
    assert plain.high - plain.low == pytest.approx(3.8415 / 13.8415, abs=1e-4)
    clustered = interval(mean_estimate(Rows(values)), np.repeat(np.arange(5), 2), values=values)
    assert clustered.high - clustered.low > plain.high - plain.low


def test_clusters_of_equal_share_are_not_certain():
    # SE is 0 up to rounding in both cases: each cluster counts as one sample
    for pattern in ([1.0, 0.0], [1.0, 0.0, 0.0]):
        values = np.tile(pattern, 50)
        codes = np.repeat(np.arange(50), len(pattern))
        result = interval(mean_estimate(Rows(values)), codes, values=values)
        assert result.high - result.low > 0.2


def test_a_large_cluster_is_mentioned():
    codes = np.concatenate([np.zeros(150, dtype=np.int64), np.repeat(np.arange(1, 51), 3)])
    result = interval(mean_estimate(Rows(np.random.default_rng(1).random(300))), codes)
    assert result.method == "95% t interval, 51 clusters, one of them 50% of the samples"


def test_clusters_of_one_sample_give_nearly_wilsons_interval():
    values = np.tile([1.0, 0.0, 1.0], 100)
    estimate = mean_estimate(Rows(values))
    plain, clustered = (interval(estimate, codes, values=values) for codes in (None, np.arange(300)))
    assert clustered.low == pytest.approx(plain.low, abs=5e-4)  # t instead of z, n - 1 instead of n
    assert clustered.method == "95% Wilson interval, 300 clusters"


def test_other_values_keep_the_t_interval():
    values = np.array([0.0, 1.0, 0.5])
    assert interval(mean_estimate(Rows(values)), values=values).method.startswith("95% t interval")


def test_simulated_coverage():
    """95% of the intervals cover the truth; bench/inference.py runs the full simulation."""
    chooser = np.random.default_rng(93)
    inside = clustered_inside = 0
    for _ in range(600):
        skewed = chooser.beta(1, 4, size=100)
        result = interval(mean_estimate(Rows(skewed)))
        inside += result.low <= 0.2 <= result.high
        effects = np.repeat(chooser.normal(0, 1, 50), 4) + chooser.normal(0, 1, 200)
        result = interval(mean_estimate(Rows(effects)), np.repeat(np.arange(50), 4))
        clustered_inside += result.low <= 0 <= result.high
    assert 0.925 <= inside / 600 <= 0.975  # the standard deviation is .009
    assert 0.925 <= clustered_inside / 600 <= 0.975


@pytest.mark.parametrize(("low", "high"), [(1.0, 5.0), (0.0, 10.0)])
def test_ends_of_a_scale_are_no_shares(low, high):
    values = np.full(20, 1.0)
    lowest = interval(replace(mean_estimate(Rows(values)), bounds=(low, high)), values=values)
    other = 3.8415 / 23.8415  # the share of other values, which may be as far away as the bounds
    ends = (1 - other * (1 - low), 1 + other * (high - 1))
    assert (lowest.low, lowest.high) == pytest.approx(ends, abs=1e-4)


@pytest.mark.parametrize("clusters", [25, 80])
@pytest.mark.parametrize(("share", "spread"), [(0.9, 3), (0.9, 1), (0.97, 1)])
def test_uneven_clusters_near_a_bound_are_covered(clusters, share, spread):
    """92.5% and less with pseudo-values of clusters of mean size; 84 to 92% where bad clusters are rare."""
    chooser = np.random.default_rng(clusters)
    inside, truth = 0, 0.8 * share + 0.1
    for _ in range(400):
        codes = np.repeat(np.arange(clusters), chooser.geometric(0.2, clusters))
        means = chooser.beta(spread * share, spread * (1 - share), clusters)
        values = 0.8 * means[codes] + 0.2 * chooser.random(len(codes))
        result = interval(bounded(values), codes, values=values)
        inside += result.low <= truth <= result.high
    assert inside / 400 >= 0.92  # at least 93.3% in 10,000 draws


def test_the_pseudo_values_of_clusters_near_a_bound():
    # Sizes 1, 1, 2 with means 1, .9, 1: p = .975, residual sums .025, -.075, .05, n = 4.
    values, codes = np.array([1.0, 0.9, 1.0, 1.0]), np.array([0, 1, 2, 2])
    variance = (0.025**2 / 0.75 + 0.075**2 / 0.75 + 0.05**2 / 0.5) / 16
    # and .0325 sqrt(3) of a cluster at 0 and at 1, whose squared size is (1 + 1 + 4) / 3
    variance += 0.0325 * 3**0.5 * (0.975**2 + 0.025**2) * 2 / 16
    over = cluster_error(values - 0.975, codes)
    ends = wilson_bounds(0.975, 0.975 * 0.025 / variance, stdtrit(over.freedom, 0.975))
    result = interval(bounded(values), codes, values=values)
    assert (result.low, result.high) == pytest.approx(ends)
    assert result.method == "95% Wilson interval of a mean, 3 clusters"


def test_an_interval_ends_at_the_bounds_of_the_estimate():
    values = Rows(np.array([0.0, 0.5, 1.0]))
    free = t_interval(mean_estimate(values))
    assert (free.low, free.high) == (pytest.approx(-0.7421, abs=1e-4), pytest.approx(1.7421, abs=1e-4))
    share = t_interval(replace(mean_estimate(values), bounds=(0.0, 1.0)))
    assert (share.value, share.stderr, share.low, share.high) == (free.value, free.stderr, 0, 1)
    above = t_interval(replace(mean_estimate(values), bounds=(0.0, None)))
    assert (above.low, above.high) == (0, free.high)


def test_the_bounds_of_a_difference():
    first, second = (replace(mean_estimate(Rows(np.array([0.5, 0.5]))), bounds=ends) for ends in ((0, 1), (2, 5)))
    assert first.minus(second).bounds == (-5, -1)
    assert second.minus(first).bounds == (1, 5)
    assert first.minus(replace(second, bounds=(2, None))).bounds == (None, -1)
    assert first.minus(replace(second, bounds=(None, 5))).bounds == (-5, None)


def test_errors_that_are_factors_have_an_interval_above_zero():
    values = np.array([1.0, 4.0])
    # mean 2.5, SE 1.5, t(1) = 12.7062: 2.5 * exp(± 12.7062 * 1.5 / 2.5)
    factor = t_interval(replace(mean_estimate(Rows(values)), multiplies=True))
    assert factor.low == pytest.approx(2.5 * np.exp(-12.706204736 * 0.6))
    assert factor.high == pytest.approx(2.5 * np.exp(12.706204736 * 0.6))
    assert factor.method == "95% t interval of the logarithm, 2 samples"


def bounded(values: np.ndarray):
    return replace(mean_estimate(Rows(values)), bounds=(0.0, 1.0))


def test_equal_values_are_not_certain():
    # At most z^2 / (6 + z^2) = 3.8415 / 9.8415 = 0.3903 of all pairs are not ties: 0.5 ± 0.3903 / 2.
    ties = np.full(6, 0.5)
    estimate = interval(bounded(ties), values=ties)
    assert (estimate.low, estimate.high) == pytest.approx((0.304833, 0.695167), abs=1e-6)
    assert estimate.method == "95% Wilson interval of the share of other values, all values equal, 6 samples"
    clusters = np.array([0, 0, 1, 1, 2, 2])
    assert interval(bounded(ties), clusters, values=ties).low < estimate.low


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_values_at_a_bound_have_wilsons_interval(value):
    values = np.full(9, value)
    share, equal = interval(bounded(values), values=values), interval_of_equal_values(bounded(values))
    assert (equal.low, equal.high) == pytest.approx((share.low, share.high))


def test_equal_values_without_bounds_have_no_interval():
    values = np.full(6, 0.5)
    assert interval(mean_estimate(Rows(values)), values=values).method == "no interval: 6 samples that do not vary"


@pytest.mark.parametrize("shares", [(0.0, 0.95, 0.05), (0.01, 0.97, 0.02), (0.02, 0.9, 0.08)])  # of losses, ties, wins
@pytest.mark.parametrize("count", [6, 20])
def test_win_rates_with_few_decided_pairs_have_coverage(shares, count):
    # Without a width for equal values, the intervals of these win rates hold in 20 to 80% of all cases.
    random = np.random.default_rng(count)
    draws = random.choice([0.0, 0.5, 1.0], size=(1000, count), p=shares)
    mean = shares[1] / 2 + shares[2]
    held = 0
    for values in draws:
        estimate = interval(bounded(values), values=values)
        held += estimate.low <= mean <= estimate.high
    assert held / len(draws) > 0.92
