from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.stats.rogan_gladen import corrected_rate, rogan_gladen

NAN = float("nan")

# p, q0, q1, n, m0, m1, level, low, high: from the package of Lee et al. (llm-judge-reporting), as recorded in the tests
# of its port to R (jansim/LLM-judge-repoRting, tests/testthat/fixtures/confidence_interval.csv).
PUBLISHED = [
    (0.4, 0.7, 0.9, 1000, 200, 200, 0.95, 0.05635072484160894, 0.2627330257859588),
    (0.5, 0.8, 0.8, 500, 100, 100, 0.95, 0.3799746588561528, 0.6200253411438469),
    (0.62, 0.85, 0.93, 2000, 150, 350, 0.95, 0.5544774781496563, 0.6456327845409667),
    (0.1, 0.95, 0.6, 300, 50, 80, 0.9, 0.0, 0.17813731660303905),
    (0.9, 0.6, 0.99, 10000, 1000, 1000, 0.99, 0.8273348478706124, 0.8686713102464316),
    (0.3333, 0.777, 0.888, 123, 45, 67, 0.8, 0.012521172499902977, 0.2816724189695818),
    (1.0, 1.0, 1.0, 50, 10, 10, 0.95, 0.9043143636617791, 1.0),
]


@pytest.mark.parametrize(("p", "q0", "q1", "n", "m0", "m1", "level", "low", "high"), PUBLISHED)
def test_the_published_interval(p, q0, q1, n, m0, m1, level, low, high):
    interval = corrected_rate(p, n, q1, m1, q0, m0, level=level).interval
    assert interval is not None
    assert interval.low == pytest.approx(low, abs=1e-12)
    assert interval.high == pytest.approx(high, abs=1e-12)
    assert interval.value == pytest.approx(min(max((p + q0 - 1) / (q0 + q1 - 1), 0), 1))


def samples(true_positive: int, false_negative: int, false_positive: int, true_negative: int, ones: int, zeros: int):
    """Labelled samples by the verdict and the label, and unlabelled ones by the verdict."""
    judge = [1.0] * true_positive + [0.0] * false_negative + [1.0] * false_positive + [0.0] * true_negative
    human = [1.0] * (true_positive + false_negative) + [0.0] * (false_positive + true_negative)
    judge += [1.0] * ones + [0.0] * zeros
    return np.array(judge), np.array(human + [NAN] * (ones + zeros))


def test_a_separate_calibration_set():
    # Sensitivity 90/100, specificity 35/50; the judge's rate elsewhere is 400/1000: theta = (.4 + .7 - 1) / .6.
    judge, human = samples(90, 10, 15, 35, 400, 600)
    estimate = rogan_gladen(judge, human, separate=True)
    assert (estimate.sensitivity, estimate.specificity) == (0.9, 0.7)
    assert (estimate.positives, estimate.negatives) == (100, 50)
    assert estimate == corrected_rate(0.4, 1000, 0.9, 100, 0.7, 50)
    assert estimate.interval is not None
    assert estimate.interval.value == pytest.approx(1 / 6)
    assert estimate.interval.method == "95% Rogan-Gladen interval, 150 labels"


def test_labels_of_a_random_part_count_in_the_rate_and_narrow_the_interval():
    judge, human = samples(90, 10, 15, 35, 445, 405)  # the rate of all is 550/1000
    estimate = rogan_gladen(judge, human)
    assert estimate.interval is not None
    assert estimate.interval.value == pytest.approx((0.55 - 0.3) / 0.6)
    independent = corrected_rate(0.55, 1000, 0.9, 100, 0.7, 50).interval
    assert independent is not None
    assert estimate.interval.stderr < independent.stderr


def test_a_judge_at_chance_is_not_corrected():
    judge, human = samples(5, 5, 5, 5, 30, 70)
    estimate = rogan_gladen(judge, human)
    assert estimate.interval is None
    assert (estimate.sensitivity, estimate.specificity) == (0.5, 0.5)
    assert "not better than chance" in estimate.warnings[0]


def test_labels_of_one_class_only():
    judge, human = samples(9, 1, 0, 0, 30, 70)
    estimate = rogan_gladen(judge, human)
    assert (estimate.interval, estimate.specificity) == (None, None)
    assert estimate.warnings == ("no human label is 0: the judge's errors on such samples are not known",)


def test_doubts():
    # Few labels of a class; hardly better than chance; a rate above 1 by the correction.
    judge, human = samples(18, 12, 4, 5, 600, 400)
    few = rogan_gladen(judge, human)
    assert few.warnings[0].startswith("only 9 labels of one class")
    assert "not clearly better than chance" in few.warnings[1]
    judge, human = samples(80, 20, 10, 90, 1900, 100)
    outside = rogan_gladen(judge, human)
    assert outside.interval is not None
    assert outside.interval.value == 1
    assert "outside 0 to 1" in outside.warnings[-1]


def test_clusters_widen_the_interval():
    judge, human = samples(90, 10, 15, 35, 445, 405)
    codes = np.arange(1000)
    alone, same = rogan_gladen(judge, human), rogan_gladen(judge, human, clusters=codes)
    assert alone.interval is not None
    assert same.interval is not None
    assert same.interval.stderr == pytest.approx(alone.interval.stderr)
    grouped = rogan_gladen(judge, human, clusters=codes // 10)
    assert grouped.interval is not None
    assert grouped.interval.stderr > 1.5 * alone.interval.stderr


def test_weights_of_labels():
    # A false positive with probability 1/2 counts twice: specificity 8 / (8 + 2 * 2).
    judge, human = samples(9, 1, 2, 8, 40, 40)
    probability = np.where((judge == 1) & (human == 0), 0.5, 1.0)
    assert rogan_gladen(judge, human, probability=probability).specificity == pytest.approx(8 / 12)


def test_other_values_are_an_error():
    with pytest.raises(ValueError, match="0 or 1"):
        rogan_gladen(np.array([0.5, 1]), np.array([1, NAN]))
    with pytest.raises(ValueError, match="every sample has a label"):
        rogan_gladen(np.array([0.0, 1]), np.array([1.0, 0]), separate=True)


@given(st.integers(5, 50), st.integers(0, 20), st.integers(0, 20), st.integers(5, 50), st.integers(1, 99))
def test_swapping_both_classes_mirrors_the_estimate(hits, misses, alarms, rejections, ones):
    judge, human = samples(hits, misses, alarms, rejections, ones, 100 - ones)
    estimate, mirrored = rogan_gladen(judge, human).interval, rogan_gladen(1 - judge, 1 - human).interval
    if estimate is None or mirrored is None:
        assert estimate == mirrored
        return
    assert mirrored.value == pytest.approx(1 - estimate.value)
    assert mirrored.low == pytest.approx(1 - estimate.high, abs=1e-9)
    assert mirrored.stderr == pytest.approx(estimate.stderr)
