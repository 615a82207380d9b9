"""Confidence sequences by betting, without replacement."""

from math import log, log1p, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval.stats.betting import Units, confidence_sequence, log_capital, refusal_at

THRESHOLD = refusal_at()


def misses(units: Units, mean: float, widths: tuple[float, ...]) -> bool:
    """Whether an interval at any time is without the mean of the population."""
    above, below = log_capital(units, mean, widths), log_capital(units.mirrored, 1 - mean, widths)
    return bool(max(above.max(), below.max()) >= THRESHOLD)


def test_capital_worked_out_by_hand():
    # Three units of a population of 4, all scored, candidate m = 0.5, half width 0.5.
    # t = 1: mu = 0 (y has the conditional mean 0), y = 1 - 0.5; v = 0.25; w = 0.5: bet 0.5 / (0.25 + 0.25) = 1;
    #        at most 0.75 / 0.5 = 1.5. Gain 1 * 0.5.
    # t = 2: y_1 = 0.5, so mu = -0.5 / 3; y = 0 - 0.5; the mean so far (0.5 + 1) / 2 = 0.75,
    #        v = (0.25 + 0.25^2) / 2; w = 0.5 * 4 / 3.
    units = Units.of(np.array([1.0, 0.0, 1.0]), 4, (0.0, 1.0))
    path = log_capital(units, 0.5, (0.5,))
    assert path[0] == pytest.approx(log1p(0.5))
    v, w, mu = (0.25 + 0.0625) / 2, 2 / 3, -0.5 / 3
    bet = min(w / (v + w * w), 0.75 / (0.5 + mu))
    assert path[1] == pytest.approx(log1p(0.5) + log1p(bet * (-0.5 - mu)))


def test_half_of_the_capital_on_each_of_two_half_widths():
    units = Units.of(np.array([1.0, 1.0, 0.0]), 9, (0.0, 1.0))
    first, second = (np.exp(log_capital(units, 0.3, (width,))) for width in (0.1, 0.4))
    assert np.exp(log_capital(units, 0.3, (0.1, 0.4))) == pytest.approx((first + second) / 2)


def test_an_impossible_mean_is_refused_at_once():
    # Nine ones of ten: the mean is at least 0.9.
    units = Units.of(np.ones(9), 10, (0.0, 1.0))
    assert log_capital(units, 0.05, (0.1,))[-1] == np.inf
    interval = confidence_sequence(np.ones(9), 10, (0.0, 1.0))
    assert interval.low == pytest.approx(0.9)
    assert interval.high == 1.0


def test_the_whole_population_gives_a_point():
    interval = confidence_sequence(np.array([0.0, nan, 1.0, 1.0]), 4, (0.0, 1.0))
    assert interval.low == interval.value == interval.high == 2 / 3


def test_a_candidate_is_refused_above_two_over_alpha():
    # 2 / 0.05 = 40, and 5% of alpha stay unused: 40 / 0.95.
    assert refusal_at() == pytest.approx(log(40 / 0.95))


def test_the_method_names_itself():
    interval = confidence_sequence(np.array([0.0, 1.0]), 1000, (0.0, 1.0))
    assert interval.method == (
        "95% betting confidence sequence (Waudby-Smith and Ramdas 2024), valid at any stopping time, "
        "without replacement, 2 of 1,000 samples"
    )
    assert interval.stderr is None


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="upper bound"):
        Units.of(np.zeros(2), 4, (1.0, 1.0))
    with pytest.raises(ValueError, match="units of 2"):
        Units.of(np.zeros(3), 4, (0.0, 1.0), 2)
    with pytest.raises(ValueError, match="out of 4"):
        Units.of(np.zeros(5), 4, (0.0, 1.0))
    with pytest.raises(ValueError, match="no value"):
        confidence_sequence(np.array([nan]), 4, (0.0, 1.0))


values = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, nan])), min_size=1, max_size=60)


@given(values, st.integers(1, 500), st.sampled_from([None, 0.01, 0.1, 2.0]))
@settings(deadline=None)
def test_the_interval_contains_the_estimate_within_the_logical_bounds(drawn, left, width):
    array = np.array(drawn)
    if np.isnan(array).all():
        return
    interval = confidence_sequence(array, len(array) + left, (0.0, 1.0), width=width)
    total, count = np.nansum(array), np.isfinite(array).sum()
    assert interval.low <= interval.value <= interval.high
    assert interval.low >= total / (count + left) - 1e-6
    assert interval.high <= (total + left) / (count + left) + 1e-6


@given(values, st.integers(1, 500), st.floats(0, 1), st.floats(0, 1))
@settings(deadline=None)
def test_the_capital_decreases_with_the_candidate(drawn, left, first, second):
    units = Units.of(np.array(drawn), len(drawn) + left, (0.0, 1.0))
    low, high = sorted((first, second))
    assert (log_capital(units, low) >= log_capital(units, high) - 1e-6).all()


@given(values, st.integers(1, 500), st.floats(-5, 5), st.floats(0.5, 20))
@settings(deadline=None)
def test_equivariant_under_scale_and_shift(drawn, left, low, range_):
    array = np.array(drawn)
    if np.isnan(array).all():
        return
    unit = confidence_sequence(array, len(array) + left, (0.0, 1.0), width=0.05)
    scaled = confidence_sequence(low + range_ * array, len(array) + left, (low, low + range_), width=0.05 * range_)
    assert scaled.low == pytest.approx(low + range_ * unit.low, abs=1e-5 * range_)
    assert scaled.high == pytest.approx(low + range_ * unit.high, abs=1e-5 * range_)


@given(values, st.integers(1, 500))
@settings(deadline=None)
def test_the_ends_are_refused_and_just_inside_is_not(drawn, left):
    units = Units.of(np.array(drawn), len(drawn) + left, (0.0, 1.0))
    if not units.weights.any():
        return
    interval = confidence_sequence(np.array(drawn), units.population, (0.0, 1.0))
    if units.least_mean + 1e-6 < interval.low < interval.value - 1e-6:
        assert log_capital(units, interval.low)[-1] >= THRESHOLD
        assert log_capital(units, interval.low + 1e-6)[-1] < THRESHOLD + 1e-2


def populations(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    some = (np.arange(size) < size / 2).astype(float)
    some[rng.random(size) < 0.1] = nan
    return {
        "rare": (np.arange(size) < size * 0.02).astype(float),
        "half": (np.arange(size) < size / 2).astype(float),
        "often": (np.arange(size) < size * 0.9).astype(float),
        "beta": rng.beta(2, 5, size),
        "thirds": rng.integers(0, 4, size) / 3,
        "unscored": some,
    }


def missed_runs(population: np.ndarray, widths: tuple[float, ...], runs: int) -> int:
    """How many runs miss the mean at any time, from the first draw to the last."""
    rng, size = np.random.default_rng(3), len(population)
    mean = float(np.nanmean(population))
    return sum(misses(Units.of(rng.permutation(population), size, (0.0, 1.0)), mean, widths) for _ in range(runs))


@pytest.mark.parametrize("name", list(populations(10)))
@pytest.mark.parametrize("widths", [(0.05,), (0.25, 0.1, 0.02)])
def test_few_runs_ever_miss_the_mean(name, widths):
    # 5% of 400 are 20, with a standard deviation of 4.4 between simulations.
    assert missed_runs(populations(200)[name], widths, 400) <= 30


@pytest.mark.slow
@pytest.mark.parametrize("name", list(populations(10)))
def test_at_most_five_percent_of_ten_thousand_runs_ever_miss(name):
    assert missed_runs(populations(1000)[name], (0.03,), 10_000) <= 500


def test_units_of_several_answers_count_as_one_draw():
    # Two answers per sample, one of them unscored at times: the mean is over all scored answers.
    rng = np.random.default_rng(5)
    answers = (rng.random((200, 2)) < rng.random((200, 1))).astype(float)
    answers[rng.random((200, 2)) < 0.2] = nan
    mean, runs = float(np.nanmean(answers)), 200
    missed = 0
    for _ in range(runs):
        drawn = rng.permutation(answers, axis=0).reshape(-1)
        missed += misses(Units.of(drawn, 200, (0.0, 1.0), 2), mean, (0.05,))
    assert missed <= 17  # 10 expected, with a standard deviation of 3
    interval = confidence_sequence(answers[:50].reshape(-1), 200, (0.0, 1.0), size=2)
    assert "50 of 200 samples" in interval.method


def test_a_run_that_ignores_the_random_order_is_noticed():
    # The same population, sorted: every interval would miss. The test of coverage can fail.
    population = np.sort(populations(300)["half"])
    assert misses(Units.of(population, 300, (0.0, 1.0)), 0.5, (0.05,))
