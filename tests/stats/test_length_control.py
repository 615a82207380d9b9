"""Win rates at equal length: the formula of AlpacaEval 2, planted effects, and invariances."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.stats.intervals import interval
from multimodal_eval.stats.length_control import fit_length_model, length_controlled, length_effect

# Preferences and differences of lengths, which may all be far from 0.
pairs = st.tuples(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(-300, 300)), min_size=2, max_size=40),
    st.sampled_from([0, 0, 100, 1000, 10**6]),
).filter(lambda drawn: len({y for y, _ in drawn[0]}) > 1)


def arrays(drawn):
    rows, offset = drawn
    return np.array([y for y, _ in rows]), np.array([float(d + offset) for _, d in rows])


def example():
    """60 pairs without chance: lengths and difficulties by modular arithmetic, graded preferences."""
    i = np.arange(60)
    baseline, model = 100 + (i * 37) % 211, 100 + (i * 53) % 173
    preferences = np.round((i * 29) % 31 / 30 * 0.8 + 0.2 * (model > baseline), 6)
    return preferences, (model - baseline).astype(float), ((i * 7) % 13 - 6) / 4


def test_the_rate_equals_that_of_alpaca_eval():
    # get_length_controlled_winrate of alpaca_eval 0.6.6 on the same pairs, without its penalty
    # (glm_info kwargs: n_splits=0, C=1e9, tol=1e-14): formulas length_controlled_noreg and length_controlled_minimal.
    preferences, difference, difficulty = example()
    assert length_controlled(preferences, difference, difficulty).value == pytest.approx(0.51362299721, abs=1e-8)
    assert length_controlled(preferences, difference).value == pytest.approx(0.51238803541, abs=1e-8)
    assert preferences.mean() == pytest.approx(0.494)


def test_coefficients_equal_those_of_statsmodels():
    preferences, difference, difficulty = example()
    features = np.column_stack([np.ones(60), np.tanh(difference / difference.std(ddof=1)), difficulty])
    expected = sm.GLM(preferences, features, family=sm.families.Binomial()).fit(tol=1e-14, maxiter=100).params
    model = fit_length_model(preferences, difference, difficulty)
    assert model.coefficients == pytest.approx(expected, abs=1e-12)
    assert not model.is_separated


def test_a_rate_by_hand():
    # Differences of -1 and 1, three pairs each: s^2 = 6/5, and the features are -u and u with u = tanh(sqrt(5/6)).
    # 1 of 3 wins at -u, 2 of 3 at u: theta - phi u = logit(1/3) = -log 2, theta + phi u = logit(2/3) = log 2.
    # So theta = 0, the rate at equal length is 1/2, and phi = log(2) / u.
    y, d = np.array([1.0, 0, 0, 1, 1, 0]), np.array([-1.0, -1, -1, 1, 1, 1])
    assert length_controlled(y, d).value == pytest.approx(0.5, abs=1e-12)
    assert length_effect(y, d).value == pytest.approx(np.log(2) / np.tanh(np.sqrt(5 / 6)), abs=1e-12)


def test_influence_values_are_the_effect_of_leaving_a_pair_out():
    random = np.random.default_rng(1)
    n = 400
    difference = random.normal(50, 300, n)
    y = (random.random(n) < 0.6).astype(float)
    difficulty = random.normal(size=n)
    whole = length_controlled(y, difference, difficulty)
    for row in range(40):
        others = np.arange(n) != row
        rate = length_controlled(y[others], difference[others], difficulty[others]).value
        assert (n - 1) * (whole.value - rate) == pytest.approx(whole.influence[row], abs=0.02)


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_a_planted_effect_is_recovered_within_the_interval(bias):
    """95% intervals contain the planted effect and the planted rate in 90-98% of 300 simulations."""
    random = np.random.default_rng(7)
    effects = rates = 0
    truth = 1 / (1 + np.exp(-0.4))
    for _ in range(300):
        lengths = random.normal(60, 200, 500)
        logits = 0.4 + bias * np.tanh(lengths / 200)
        y = (random.random(500) < 1 / (1 + np.exp(-logits))).astype(float)
        effect, rate = interval(length_effect(y, lengths)), interval(length_controlled(y, lengths))
        effects += effect.low <= bias <= effect.high
        rates += rate.low <= truth <= rate.high
    assert 270 <= effects <= 294
    assert 270 <= rates <= 294


def test_clustered_intervals_are_wider_if_pairs_repeat():
    preferences, difference, _ = example()
    estimate = length_controlled(np.repeat(preferences, 3), np.repeat(difference, 3))
    clusters = np.repeat(np.arange(60), 3)
    assert interval(estimate, clusters).stderr > 1.6 * interval(estimate).stderr


@given(pairs)
def test_swapping_the_answers_mirrors_the_rate(drawn):
    y, d = arrays(drawn)
    rate, mirrored = length_controlled(y, d), length_controlled(1 - y, -d)
    assert 0 <= rate.value <= 1
    assert mirrored.value == pytest.approx(1 - rate.value, abs=1e-8)
    assert mirrored.influence == pytest.approx(-rate.influence, abs=1e-6)
    assert length_effect(1 - y, -d).value == pytest.approx(length_effect(y, d).value, rel=1e-6, abs=1e-8)


@given(pairs, st.sampled_from([0.5, 2.0, 8.0]))
def test_the_unit_of_length_changes_nothing(drawn, unit):
    y, d = arrays(drawn)
    assert length_controlled(y, d * unit).value == length_controlled(y, d).value


@pytest.mark.parametrize("preferences", [[1.0, 1.0, 1.0], [0.5, 0.5], [0.0]])
def test_equal_verdicts_leave_nothing_to_control(preferences):
    y = np.array(preferences)
    estimate = length_controlled(y, np.arange(len(y), dtype=float))
    assert (estimate.value, estimate.is_mean) == (y[0], True)  # a mean: of wins alone, its interval is Wilson's


def test_few_pairs_are_fitted_to_the_last_digit():
    # The rounded likelihood cannot tell the last steps apart: they must be taken nevertheless.
    wins, difference = np.array([0.5, 0, 1, 1, 1, 0]), np.array([0.0, -2, 1, 2, 2, -3])
    rates = length_controlled(wins, difference).value, length_controlled(1 - wins, -difference).value
    assert rates[0] + rates[1] == pytest.approx(1, abs=1e-14)
    rng = np.random.default_rng(0)
    for _ in range(200):
        count = int(rng.integers(2, 12))
        wins, difference = rng.choice([0, 0.5, 1], count), rng.integers(-6, 7, count).astype(float)
        rates = length_controlled(wins, difference).value, length_controlled(1 - wins, -difference).value
        assert rates[0] + rates[1] == pytest.approx(1, abs=1e-13)


def test_equal_lengths_leave_nothing_to_control():
    y = np.array([1.0, 1, 0, 0.5])
    for difference in (0.0, 7.0):
        estimate = length_controlled(y, np.full(4, difference))
        assert estimate.value == pytest.approx(0.625, abs=1e-15)
        assert estimate.influence == pytest.approx(y - 0.625)


def test_lengths_that_hardly_vary_leave_a_finite_rate():
    """tanh of 5.7 and 7.1 standard deviations: what equal lengths would give is a guess, and not an error."""
    for y in (np.array([0.5, 1.0]), np.array([0.5, 0.0])):
        estimate = length_controlled(y, np.array([4.0, 5.0]))
        assert 0.1 < estimate.value < 0.9
        assert np.isfinite(estimate.influence).all()
        assert fit_length_model(y, np.array([4.0, 5.0])).is_separated


def test_a_judge_that_sees_only_length_has_a_finite_effect():
    """The longer answer always wins: the likelihood has no maximum, and the penalty keeps everything finite."""
    y, d = np.array([1.0, 1, 1, 0, 0, 0]), np.array([5.0, 4, 3, -5, -4, -3])
    model = fit_length_model(y, d)
    assert model.is_separated
    assert model.coefficients[1] > 3
    assert length_controlled(y, d).value == pytest.approx(0.5, abs=1e-9)
    assert np.isfinite(model.influence).all()
