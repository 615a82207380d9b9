from __future__ import annotations

import numpy as np
import pytest

from multimodal_eval.stats.ppi_logistic import ppi_logistic
from tests.stats import ppi_data

NAN = float("nan")


def test_an_intercept_alone_is_the_logit_of_the_mean():
    # 30 of 40 labels are 1, and lambda is 0: beta = log(3), with standard error 1 / sqrt(40 * .75 * .25) up to 40/39.
    human = np.array([1.0] * 30 + [0] * 10 + [NAN] * 10)
    coefficients = ppi_logistic(np.ones((50, 1)), np.ones(50), human, power=0)
    (interval,) = coefficients.intervals
    assert interval.value == pytest.approx(np.log(3))
    assert interval.stderr == pytest.approx(np.sqrt(1 / 7.5 * 40 / 39))
    assert interval.high == pytest.approx(np.log(3) + 2.0226909200367604 * np.sqrt(1 / 7.5 * 40 / 39))  # t with 39
    assert (coefficients.power, coefficients.labels) == (0, 40)


def test_the_judge_narrows_the_intervals():
    features, human, judge = ppi_data.regression(200, 2000)
    human[200:] = NAN
    alone, both = (ppi_logistic(features, judge, human, power=power) for power in (0.0, None))
    assert both.power > 0.3
    for with_judge, without in zip(both.intervals, alone.intervals, strict=True):
        assert with_judge.stderr < without.stderr
    assert both.intervals[0].method == "95% PPI++ interval of a coefficient, 200 labels"


def test_clusters_of_equal_samples_count_once():
    features, human, judge = ppi_data.regression(200, 800)
    human[200:] = NAN
    alone = ppi_logistic(features, judge, human, power=0.5)
    twice = ppi_logistic(
        np.repeat(features, 2, axis=0), np.repeat(judge, 2), np.repeat(human, 2),
        clusters=np.repeat(np.arange(1000), 2), power=0.5,
    )  # fmt: skip
    for clustered, single in zip(twice.intervals, alone.intervals, strict=True):
        assert clustered.value == pytest.approx(single.value)
        assert clustered.stderr == pytest.approx(single.stderr)
        assert clustered.low == pytest.approx(single.low)


@pytest.mark.parametrize(
    ("features", "human", "message"),
    [
        (np.ones((4, 1)), np.array([1.0, 0, NAN]), "one row of features"),
        (np.full((4, 1), NAN), np.array([1.0, 0, NAN, NAN]), "finite"),
        (np.ones((4, 2)), np.array([1.0, 0, NAN, NAN]), "more labelled samples"),
        (np.ones((6, 2)), np.array([1.0, 0, 1, 1, NAN, NAN]), "linearly dependent"),
        (np.ones((6, 1)), np.array([1.0, 1, 1, 1, NAN, NAN]), "converge|perfectly"),
    ],
)
def test_bad_input(features, human, message):
    with pytest.raises(ValueError, match=message):
        ppi_logistic(features, np.ones(len(human)), human)
