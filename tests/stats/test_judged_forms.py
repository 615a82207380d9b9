"""Choices, labels and systems: values worked out by hand, and standard errors against simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from multimodal_eval.stats.correlation import paired_difference
from multimodal_eval.stats.intervals import standard_error
from multimodal_eval.stats.judged_forms import (
    auroc,
    choice_accuracies,
    resampled_difference,
    resampled_figure,
    system_ranks,
)


def test_a_tie_counts_half_or_as_wrong():
    computed = choice_accuracies(np.array([1.0, -1.0, 0.0, 2.0]), [""] * 4)
    assert {name: each.value for name, each in computed.items()} == {"accuracy": 2.5 / 4, "strict": 2 / 4}


def test_every_category_weighs_the_same():
    # a: 1 of 1; b: 1, 0 and a half of 3
    computed = choice_accuracies(np.array([1.0, 1.0, -1.0, 0.0]), ["a", "b", "b", "b"])
    assert computed["a"].value == 1
    assert computed["b"].value == 0.5
    assert computed["accuracy"].value == 0.75
    assert computed["strict"].value == pytest.approx((1 + 1 / 3) / 2)
    plain = choice_accuracies(np.array([1.0, 1.0, -1.0, 0.0]), ["a", "b", "b", "b"], by_category=False)
    assert (plain["accuracy"].value, plain["b"].value) == (2.5 / 4, 0.5)


def test_the_error_of_a_share_is_that_of_a_mean():
    margins = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    computed = choice_accuracies(margins, [""] * 5)["accuracy"]
    assert standard_error(computed.influence) == pytest.approx((margins > 0).std(ddof=1) / np.sqrt(5))


def test_auroc_against_scipy():
    rng = np.random.default_rng(1)
    values, right = rng.integers(0, 9, 60).astype(float), rng.random(60) < 0.4
    u = stats.mannwhitneyu(values[right], values[~right]).statistic
    assert auroc(right, values).value == pytest.approx(u / (right.sum() * (~right).sum()))
    assert auroc(np.ones(60, bool), values).reason == "all captions are right"


def test_the_error_of_auroc_against_a_simulation():
    rng = np.random.default_rng(2)
    computed = []
    for _ in range(300):
        right = np.arange(120) < 50
        computed.append(auroc(right, rng.normal(size=120) + right))
    spread = np.std([each.value for each in computed])
    assert np.mean([standard_error(each.influence) for each in computed]) == pytest.approx(spread, rel=0.15)


def battles(strengths, count, rng):
    first, second = rng.integers(0, len(strengths), (2, count))
    first, second = first[first != second], second[first != second]
    chance = 1 / (1 + np.exp(np.array(strengths)[second] - np.array(strengths)[first]))
    return (first, second), (rng.random(len(first)) < chance).astype(float)


def test_systems_in_the_same_order():
    systems, share = battles([0, 1, 2, 3], 400, np.random.default_rng(3))
    images = np.arange(len(share))
    computed = system_ranks(systems, images, share, share, 4)
    assert {name: pytest.approx(each.value) for name, each in computed.items()} == dict.fromkeys(computed, 1)
    reversed_ = system_ranks(systems, images, share, 1 - share, 4)
    assert reversed_["system_spearman"].value == pytest.approx(-1)
    assert computed["system_tau_b"].value == 1
    figure = resampled_figure(computed["system_spearman"])
    assert (figure.low, figure.high) == (1, 1)


def test_systems_that_a_metric_confuses():
    rng = np.random.default_rng(4)
    systems, share = battles([0.0, 0.3, 0.6, 3.0], 400, rng)
    noise = (rng.random(len(share)) < 0.5).astype(float)
    images = np.arange(len(share)) // 2
    good, bad = (system_ranks(systems, images, share, metric, 4)["system_pearson"] for metric in (share, noise))
    figure = resampled_figure(bad)
    assert -1 <= figure.low < figure.value < figure.high <= 1
    difference = resampled_difference(good, bad)
    assert difference.value == pytest.approx(good.value - bad.value)
    assert difference.low <= difference.value <= difference.high
    assert 0 < difference.p_value < 1
    assert resampled_difference(good, good).p_value == 1


def test_two_systems_have_no_order():
    systems, share = battles([0, 1], 20, np.random.default_rng(5))
    computed = system_ranks(systems, np.arange(len(share)), share, share, 2)
    assert computed["system_tau_b"].reason == "2 systems have no order to compare"


def test_paired_accuracies():
    rng = np.random.default_rng(6)
    margins = rng.normal(0.5, 1, 200)
    close, far = (choice_accuracies(margins + spread * rng.normal(size=200), [""] * 200) for spread in (0.1, 3))
    difference = paired_difference(close["accuracy"], far["accuracy"])
    assert difference.value == pytest.approx(close["accuracy"].value - far["accuracy"].value)
    assert difference.p_value < 0.01
