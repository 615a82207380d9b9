from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.stats.ppi import ppi_difference, ppi_mean

NAN = float("nan")

# Four labelled samples and four others.
JUDGE = np.array([1.0, 1, 0, 0, 1, 1, 1, 0])
HUMAN = np.array([1.0, 0, 0, 0, NAN, NAN, NAN, NAN])


def test_values_worked_out_by_hand():
    # Classical PPI: .75 + mean(0, -1, 0, 0) = .5. The variance of the rectifier is 3/16, that of the verdicts 3/16:
    # SE^2 = (3/16) / 4 + (3/16) / 4 = 3/32.
    classical = ppi_mean(JUDGE, HUMAN, power=1, asymptotic=True)
    assert classical.interval.value == pytest.approx(0.5)
    assert classical.interval.stderr == pytest.approx(sqrt(3 / 32))
    assert classical.interval.high == pytest.approx(0.5 + 1.959963984540054 * sqrt(3 / 32))
    assert classical.labels == 4
    # Labels alone: mean .25 with SE^2 = (3/16) / 4, so with this judge 4 labels are worth 4 * (3/64) / (3/32) = 2.
    assert classical.worth == pytest.approx(2)
    # PPI++: cov = mean(y f) - mean(y) mean(f) = 1/4 - 1/8 = 1/8; var of all verdicts = (5 - 25/8) / 7 = 15/56;
    # lambda = (1/8) / (2 * 15/56) = 7/30; theta = 1/4 + (7/30) (3/4 - 1/2).
    tuned = ppi_mean(JUDGE, HUMAN)
    assert tuned.power == pytest.approx(7 / 30)
    assert tuned.interval.value == pytest.approx(1 / 4 + 7 / 120)
    assert tuned.interval.method == "95% PPI++ Wilson interval, 4 labels"


def test_few_labels_get_a_t_interval_with_degrees_of_freedom_for_lambda():
    # The rectifier 1, 0, 0, 0 less 7/30 of the verdicts 1, 1, 0, 0: its squares around the mean, divided by 4 - 2.
    # A scale of 0 to 10 instead of 0 and 1: not a rate.
    rectifier = HUMAN[:4] - 7 / 30 * JUDGE[:4]
    labelled = ((rectifier - rectifier.mean()) ** 2).sum() / 2 / 4
    unlabelled = (7 / 30) ** 2 * (3 / 16) / 4
    interval = ppi_mean(10 * JUDGE, 10 * HUMAN).interval
    assert interval.method == "95% PPI++ interval, 4 labels"
    assert interval.stderr == pytest.approx(10 * sqrt(labelled + unlabelled))
    assert interval.high is not None
    # The 97.5 % quantile of Student's t with 2 degrees of freedom is 4.302652729911275.
    assert interval.high - interval.value == pytest.approx(43.02652729911275 * sqrt(labelled + unlabelled))


def test_a_rate_has_wilsons_interval_with_the_effective_number_of_labels():
    # 40 labels: the judge is wrong three times in both directions, so no disagreement is added.
    judge = np.array([1.0] * 20 + [0] * 20 + [1, 0] * 30)
    human = np.array([0.0] * 3 + [1] * 17 + [1] * 3 + [0] * 17 + [NAN] * 60)
    # mean .5, cov = 17/40 - 1/4 = .175, lambda = .175 / (1 + 40/60) / (25/99) = .4158
    power = 0.175 / (5 / 3) / (25 / 99)
    rectifier = human[:40] - power * judge[:40]
    variance = rectifier.var() / 38 + power**2 * 0.25 / 60
    effective, t = 0.25 / variance, 2.0243941645751362  # Student's t with 38 degrees of freedom
    half = t * sqrt(0.25 / effective + t**2 / (4 * effective**2)) / (1 + t**2 / effective)
    interval = ppi_mean(judge, human).interval
    assert interval.stderr == pytest.approx(sqrt(variance))
    assert (interval.low, interval.high) == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))
    # With two errors in each direction half an error of each is added: label 1, verdict 0, and the reverse.
    fewer = np.array([0.0] * 2 + [1] * 18 + [1] * 2 + [0] * 18 + [NAN] * 60)
    centre = 0.5 - 0.5 * 0.5
    before = (fewer[:40] - 0.5 * judge[:40]).var() / 39 + 0.25 * 0.25 / 60
    added = 0.5 * ((1 - centre) ** 2 + (-0.5 - centre) ** 2) / 40**2
    assert ppi_mean(judge, fewer, power=0.5).interval.stderr == pytest.approx(sqrt(before + added))


def test_labels_that_all_agree_do_not_make_the_judge_perfect():
    judge = np.tile([1.0, 0], 500)
    human = np.where(np.arange(1000) < 100, judge, NAN)
    interval = ppi_mean(judge, human).interval
    assert interval.low is not None
    assert interval.high is not None
    # 100 labels without a disagreement exclude error rates above about 3 % ("rule of three"), not above 1 %.
    assert 0.03 < interval.high - interval.low < 0.09


def test_a_rate_stays_within_0_and_1():
    # The judge is right in the labelled samples but says 1 more often elsewhere: .8 + .9 (1 - .5) is above 1.
    judge = np.array([1.0] * 5 + [0] * 5 + [1] * 20)
    human = np.array([1.0] * 8 + [0, 0] + [NAN] * 20)
    interval = ppi_mean(judge, human, power=0.9).interval
    assert interval.value == 1
    assert interval.high == 1
    assert ppi_mean(judge, human, power=0.9, asymptotic=True).interval.value == pytest.approx(1.25)
    same = ppi_mean(judge, np.where(np.isnan(human), NAN, 1.0)).interval
    assert (same.value, same.stderr, same.high) == (1, 0, 1)
    assert same.low == pytest.approx(1 - 2.2621571627409915**2 / (10 + 2.2621571627409915**2))  # p = 1, n = 10


def test_one_label_has_no_interval_and_two_ignore_the_judge():
    single = ppi_mean(JUDGE, np.where(np.arange(8) < 1, HUMAN, NAN))
    assert (single.interval.value, single.interval.low, single.power) == (1, None, 0)
    assert single.interval.method == "no interval: 1 label"
    two = ppi_mean(JUDGE, np.where(np.arange(8) < 2, HUMAN, NAN))
    assert (two.interval.value, two.power) == (0.5, 0)
    assert two.interval.low is not None


def test_clusters_add_influence_values():
    # The labelled samples are one cluster each, twice the same: as many clusters as samples before, the same interval.
    twice = [np.repeat(JUDGE, 2), np.repeat(HUMAN, 2)]
    alone = ppi_mean(JUDGE, HUMAN, power=0.5)
    clustered = ppi_mean(*twice, clusters=np.repeat(np.arange(8), 2), power=0.5)
    assert clustered.interval.value == pytest.approx(alone.interval.value)
    assert clustered.interval.stderr == pytest.approx(alone.interval.stderr)
    assert clustered.interval.low == pytest.approx(alone.interval.low)
    assert clustered.interval.method == "95% PPI Wilson interval, 4 labelled clusters"


def test_equal_probabilities_change_lambda_only_by_its_scale():
    # The weighted form averages the verdicts of all samples: lambda there is lambda * (n + N) / N here.
    even = ppi_mean(JUDGE, HUMAN, power=0.25)
    weighted = ppi_mean(JUDGE, HUMAN, probability=np.full(8, 0.3), power=0.5)
    assert weighted.interval.value == pytest.approx(even.interval.value)


def test_weights_undo_unequal_probabilities():
    # Sample 0 was drawn with probability 1/2 and counts 2; the others were certain. The labels are 1, 0, 0, 0.
    probability = np.array([0.5, 1, 1, 1, NAN, NAN, NAN, NAN])
    assert ppi_mean(JUDGE, HUMAN, probability=probability, power=0).interval.value == pytest.approx(2 / 5)


def test_a_difference_of_runs_is_the_mean_of_differences():
    judge_b, human_b = 1 - JUDGE, np.where(np.isnan(HUMAN), NAN, 1.0)
    difference = ppi_difference(JUDGE, HUMAN, judge_b, human_b)
    assert difference == ppi_mean(judge_b - JUDGE, human_b - HUMAN)


def test_a_difference_of_runs_with_labels_of_different_samples():
    # Without the judge: b has labels 1, 1 of samples 4 and 5, a those above. The variances of both means add.
    human_b = np.array([NAN, NAN, NAN, NAN, 1, 0, 1, 0.0])
    difference = ppi_difference(JUDGE, HUMAN, 1 - JUDGE, human_b, power=0)
    assert difference.interval.value == pytest.approx(0.5 - 0.25)
    assert difference.interval.stderr == pytest.approx(sqrt((3 / 16 + 1 / 4) / 3))
    assert difference.labels == 4


@pytest.mark.parametrize(
    ("judge", "human", "probability", "message"),
    [
        (JUDGE, HUMAN[:4], None, "one label or NaN per verdict"),
        (np.where(JUDGE > 0, NAN, 0), HUMAN, None, "finite"),
        (JUDGE, np.full(8, NAN), None, "no sample has a human label"),
        (JUDGE, HUMAN, np.zeros(8), "above 0"),
        (JUDGE, HUMAN, np.full(8, 1.5), "at most 1"),
    ],
)
def test_bad_input(judge, human, probability, message):
    with pytest.raises(ValueError, match=message):
        ppi_mean(judge, human, probability=probability)


values = st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.booleans()), min_size=4, max_size=30)


@given(values)
def test_labels_of_all_samples_give_their_mean(rows):
    judge, human = (np.array([row[column] for row in rows]) for column in (0, 1))
    estimate = ppi_mean(judge, human)
    assert estimate.power == 0
    assert estimate.interval.value == pytest.approx(human.mean(), abs=1e-12)
    assert estimate.worth == pytest.approx(len(human))


@given(values, st.floats(-3, 3))
def test_a_constant_added_to_the_judge_changes_nothing(rows, constant):
    judge, human = (np.array([row[column] for row in rows]) for column in (0, 1))
    human[[not row[2] for row in rows]] = NAN
    human[:3] = 1, 2, 4
    before, after = ppi_mean(judge, human, power=0.7), ppi_mean(judge + constant, human, power=0.7)
    assert after.interval.value == pytest.approx(before.interval.value, abs=1e-9)
    assert after.interval.stderr == pytest.approx(before.interval.stderr, abs=1e-9)


def test_the_correction_for_a_finite_population():
    judge, human = np.array([1.0, 0, 1, 0, 1, 0, 1, 1]), np.array([1.0, 0, 0, 1, np.nan, np.nan, np.nan, np.nan])
    # Without a judge: half of the samples are labelled, so the variance s^2/n is halved. s^2 = 1/3, n = 4.
    whole = ppi_mean(judge * 3.5, human * 3.5, power=0, finite=True).interval
    assert whole.stderr == pytest.approx(3.5 * sqrt((1 / 3) / 4 / 2))
    alone = ppi_mean(judge[:4] * 3.5, human[:4] * 3.5, finite=True).interval
    assert (alone.low, alone.value, alone.high) == (1.75, 1.75, 1.75)
    assert alone.method == "exact: all 4 samples have a label"
    random, hits = np.random.default_rng(5), 0
    for _ in range(300):
        truth = (random.random(300) < 0.6).astype(float)
        verdicts = np.where(random.random(300) < 0.8, truth, 1 - truth)
        labels = np.where(random.permutation(300) < 150, truth, np.nan)
        interval = ppi_mean(verdicts, labels, finite=True).interval
        hits += interval.low <= truth.mean() <= interval.high
    assert 0.91 <= hits / 300 <= 0.98  # 99.6 % without the correction
    with pytest.raises(ValueError, match="simple random sample"):
        ppi_mean(judge, human, probability=np.full(8, 0.5), finite=True)
