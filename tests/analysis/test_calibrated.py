"""Scores and differences that human labels correct, and what is said about the labels."""

from __future__ import annotations

from math import fsum, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from multimodal_eval.analysis.calibrated import calibrated, corrected_estimates, label_notes, why_not_corrected
from multimodal_eval.analysis.human_labels import HumanLabels
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.intervals import t_interval
from multimodal_eval.stats.paired import Comparison, compare_pairs
from multimodal_eval.stats.randomization import all_pairs

NAN = float("nan")


def labels(values, probability=None):
    ratings = np.array(values, dtype=np.float64)
    ratings = ratings if ratings.ndim == 2 else ratings[:, None]
    chance = None if probability is None else np.array(probability, dtype=np.float64)
    return HumanLabels("rating", ratings, chance, "0123456789ab")


def compared(judges, humans, clusters=None) -> list[Comparison]:
    estimates = corrected_estimates(judges, humans, clusters)
    assert estimates is not None
    return compare_pairs(estimates, all_pairs(len(judges)), clusters, rounds=999)


def test_value_worked_out_by_hand():
    # The judge gives 1 to 5. lambda = cov / ((1 + n/N) var f) with n = N = 4:
    # verdicts of labelled samples 5 4 2 1 (mean 3), labels 4 4 1 1 (mean 2.5); cov = (2*1.5 + 1*1.5 + 1*1.5 + 2*1.5)/4
    # = 2.25; the variance of all verdicts 5 4 2 1 5 5 3 3 (mean 3.5) is 16/7; lambda = 2.25 / (2 * 16/7) = .4921875.
    # theta = mean label + lambda (mean of the other verdicts - mean verdict) = 2.5 + .4921875 * (4 - 3).
    judge = np.array([5.0, 4, 2, 1, 5, 5, 3, 3])
    human = labels([4, 4, 1, 1, NAN, NAN, NAN, NAN])
    result = calibrated(judge, human)
    assert result.value == pytest.approx(2.5 + 0.4921875)
    assert (result.labels, result.column) == (4, "rating")
    assert result.signature == "ppi++|v:1|human:rating|labels:0123456789ab"


def test_unscored_samples_are_left_out():
    judge, human = np.array([5.0, 4, 2, 1, 5, 5, 3, 3]), labels([4, 4, 1, 1, NAN, NAN, NAN, NAN])
    more = calibrated(np.array([*judge, NAN, NAN]), labels([4, 4, 1, 1, NAN, NAN, NAN, NAN, 5, NAN]))
    assert more == calibrated(judge, human)


def test_few_labels_of_a_slice_give_no_value():
    result = calibrated(np.ones(20), labels([1.0] * 9 + [NAN] * 11), minimum=10)
    assert result.value is None
    assert result.method == "no calibrated value: 9 human labels, and 10 are needed"
    nothing = calibrated(np.ones(2), labels([NAN, NAN]), minimum=10)
    assert nothing.method == "no calibrated value: 0 human labels"


def test_a_difference_of_rates_is_not_a_rate():
    """60 samples of two systems: the labels are the same, or the second alone is right on one."""
    rates = HumanLabels("human", np.array([[1.0], [0.0]] * 30), None, "digest", False, (0.0, 1.0))
    gained = HumanLabels("human", np.array([[1.0], [1.0]] + [[1.0], [0.0]] * 29), None, "digest", False, (0.0, 1.0))
    judge = np.array([1.0, 0.0] * 30)
    (same,) = compared((judge, judge), (rates, rates))
    # All differences are 0: by Wilson, at most 3.8415 / 63.8415 of all samples differ, in either direction.
    ends = pytest.approx((-0.06017, 0.06017), abs=1e-5)
    assert (same.difference.value, (same.difference.low, same.difference.high), same.p_value) == (0, ends, 1)
    (alone,) = compared((judge, judge), (rates, gained))
    assert alone.difference.value == pytest.approx(1 / 60)
    assert alone.p_value == 1  # one gain of 60: with either sign, the difference is as far from 0
    assert alone.difference.low <= 0 <= alone.difference.high


def test_equal_labels_have_an_interval_with_a_width_between_bounds_or_none():
    judge, human = np.array([4.0, 5.0] * 20), np.full((40, 1), 4.0)
    bounded = calibrated(judge, HumanLabels("human", human, None, "digest", False, (1.0, 5.0)))
    # t(39) = 2.0227: the share 4.0913 / 44.0913 = .09279 of other values, between 1 and 5.
    ends = pytest.approx(4 - 3 * 0.09279, abs=1e-4), pytest.approx(4 + 0.09279, abs=1e-4)
    assert (bounded.value, bounded.low, bounded.high) == (4, *ends)
    unbounded = calibrated(judge, HumanLabels("human", human, None, "digest"))
    assert (unbounded.low, unbounded.high) == (None, None)
    assert unbounded.method.startswith("no interval: 40 labels that do not vary")


def test_a_correction_beyond_a_bound_leaves_an_interval():
    judge = np.array([9.0, 9.1, 9.2, 9.3, 9.4] + [9.9] * 200)
    human = np.concatenate([judge[:5] + 0.6, np.full(200, NAN)])[:, None]
    shifted = calibrated(judge, HumanLabels("human", human, None, "digest", False, (0.0, 9.6)))
    assert (shifted.value, shifted.high) == (9.6, 9.6)
    assert shifted.low < 9.6


def test_probabilities_are_part_of_the_signature():
    weighted = labels([4, 4, 1, 1, NAN], [0.5, 0.5, 1, 1, NAN])
    assert calibrated(np.array([5.0, 4, 2, 1, 5]), weighted).signature.endswith("|weights:inverse")


numbers = st.floats(-10, 10).map(lambda value: round(value, 3))


@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=40))
def test_with_labels_of_all_samples_it_is_their_mean(rows):
    judge, human = (np.array(column) for column in zip(*rows, strict=True))
    result = calibrated(judge, labels(human))
    assert result.value == pytest.approx(fsum(human) / len(human), abs=1e-12)


@given(st.lists(numbers, min_size=20, max_size=60), st.integers(5, 15))
def test_a_judge_that_equals_people_makes_labels_worth_more(verdicts, count):
    judge = np.array(verdicts)
    assume(np.ptp(judge[:count]) > 0.1)
    human = np.where(np.arange(len(judge)) < count, judge, NAN)
    result = calibrated(judge, labels(human))
    alone = t_interval(mean_estimate(Rows(judge[:count])))
    assert alone.stderr is not None
    assert result.stderr is not None
    # Divided by the degrees of freedom less one for lambda, it is at most that of the labels alone.
    assert result.stderr <= alone.stderr * sqrt((count - 1) / (count - 2)) + 1e-9


def test_a_difference_of_two_runs():
    # The same samples are labelled: it is the mean of differences, with differences of verdicts as judge.
    first, second = np.array([1.0, 2, 3, 4, 5, 1]), np.array([2.0, 2, 5, 4, 5, 3])
    # Differences of verdicts 1 0 2 0 (mean .75) and 0 2, of labels 1 0 1 1 (mean .75). lambda minimises the squares of
    # 1.5 ((label - .75) - lambda (verdict - .75)) and of -3 lambda (1 - verdict): 2.25 * .75 / (2.25 * 2.75 + 9 * 2).
    (result,) = compared((first, second), (labels([1, 1, 3, 4, NAN, NAN]), labels([2, 1, 4, 5, NAN, NAN])))
    power = 2.25 * 0.75 / (2.25 * 2.75 + 9 * 2)
    assert result.difference.value == pytest.approx(0.75 + power * (1 - 0.75))
    assert result.difference.method == "no interval: 4 labels, too few for a test"


def test_the_runs_of_a_comparison_share_the_weight_of_the_judge():
    """So that the differences of three runs add up, with any samples labelled, and few labels show little."""
    random = np.random.default_rng(1)
    judges = random.random((3, 200))
    humans = [labels(np.where(random.random(200) < 0.2, (judge > 0.3).astype(float), NAN)) for judge in judges]
    clusters = np.arange(200) // 4
    first, both, second = compared(list(judges), humans, clusters)
    assert first.difference.value + second.difference.value == pytest.approx(both.difference.value)
    assert "labelled clusters" in first.difference.method


def test_a_corrected_difference_stays_within_its_bounds():
    """Labels that differ by as much as they can, and verdicts by less: lambda leads beyond the bounds."""
    random = np.random.default_rng(2)
    judges = [random.random(60), 0.9 * random.random(60)]
    people = np.where(np.arange(60) < 20, 1.0, NAN)[:, None]
    humans = [HumanLabels("human", people * end, None, "digest", False, (0.0, 1.0)) for end in (1, 0)]
    (result,) = compared(judges, humans)
    assert result.difference.value == -1
    assert -1 == result.difference.low < result.difference.high < 0
    assert result.p_value < 0.05


def test_differences_that_labels_cannot_correct():
    values = np.array([1.0, 2, 3, 4]), np.array([2.0, 2, 5, 4])
    few = labels([NAN] * 4), labels([1, 2, 4, NAN])
    assert corrected_estimates(values, few) is None
    assert why_not_corrected("ab", few) == "not corrected: a run has fewer than 3 human labels of the compared samples"
    drawn = labels([1, 2, 3, NAN], [0.5, 0.5, 1, NAN]), labels([1, 2, 3, NAN], [0.5, 1, 1, NAN])
    assert corrected_estimates(values, drawn) is None
    assert why_not_corrected("ab", drawn).endswith("chose samples for labelling with different probabilities")
    assert why_not_corrected("ab", [None, drawn[0]]).startswith("no human labels in a")
    assert why_not_corrected("ab", [None, None]) is None


def notes(values, human, clusters=None):
    return list(label_notes("good", np.array(values, dtype=np.float64), human, clusters))


def test_few_and_unused_labels_are_told():
    few, wide = notes([1, 0, 1, NAN], labels([1, 0, NAN, 1]))
    assert few == "good: 1 of 3 human labels are of unscored samples and are not used"
    assert wide.startswith("good: only 2 human labels are used: the calibrated interval is wide. Label at least 30")


def test_labels_that_are_not_a_random_part_are_told():
    verdicts = np.r_[np.tile([1.0, 1, 1, 0], 10), np.tile([1.0, 0, 0, 0], 40)]
    chosen = np.where(np.arange(200) < 40, verdicts, NAN)
    (note,) = notes(verdicts, labels(chosen))
    assert "the labelled samples differ from the others (mean score 0.7500 and 0.2500, p < 0.001)" in note
    assert "human_weight" in note
    assert notes(verdicts, labels(chosen, np.full(200, 0.2))) == []
    spread = np.where(np.arange(200) % 20 < 4, verdicts, NAN)
    assert notes(verdicts, labels(spread)) == []


def test_several_annotators():
    pairs = np.array([[1.0, 1], [0, 0], [1, 0], [0, NAN], [NAN, NAN]] * 10)
    table = labels(pairs)
    assert np.array_equal(table.values[:5], [1, 0, 0.5, 0, NAN], equal_nan=True)
    lines = notes(np.tile([1.0, 0, 1, 0, 1], 10), table)
    assert any("2 annotators, 30 samples with several labels, Krippendorff's alpha 0.3" in line for line in lines)
    apart = labels(np.array([[1.0, NAN], [NAN, 0]] * 20))
    assert "no sample was labelled by two annotators" in notes(np.tile([1.0, 0], 20), apart)[-1]
