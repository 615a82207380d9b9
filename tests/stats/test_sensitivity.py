from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.stats.sensitivity import (
    Parts,
    composites_of,
    drawn_weights,
    effective_weights,
    flip_probabilities,
    rank_shares,
    spread,
    without,
)


def test_effective_weights_worked_out_by_hand():
    # x1 = 0, 1 and x2 = 0, 3 with weights .5: c = 0, 2; the parts contribute .5 and 1.5 of the 2
    weights = effective_weights(np.array([[0.0, 0.0], [1.0, 3.0]]) * 0.5)
    assert weights == pytest.approx([0.25, 0.75])


def test_a_part_without_variance_has_no_effect():
    table = np.array([[0.2, 0.7], [0.4, 0.7], [0.9, 0.7]])
    assert effective_weights(table * [0.1, 0.9]) == pytest.approx([1.0, 0.0])
    assert effective_weights(np.full((3, 2), 0.7) * [0.1, 0.9]) is None


@given(st.integers(2, 5), st.integers(0, 100))
def test_effective_weights_add_up_to_1(parts, seed):
    chooser = np.random.default_rng(seed)
    weights = effective_weights(chooser.random((20, parts)) * chooser.dirichlet(np.ones(parts)))
    assert weights.sum() == pytest.approx(1)


def test_drawn_weights_are_centred_on_the_configured_ones():
    given_weights = np.array([0.25, 0.5, 0.25, 0.0])
    drawn = drawn_weights(given_weights, draws=20_000, concentration=50, seed=1)
    assert drawn.sum(axis=1) == pytest.approx(np.ones(20_000))
    assert drawn.mean(axis=0) == pytest.approx(given_weights, abs=0.002)
    assert drawn[:, 0].std() == pytest.approx(np.sqrt(0.25 * 0.75 / 51), rel=0.02)
    assert (drawn[:, 3] == 0).all()
    again = drawn_weights(given_weights, draws=20_000, concentration=50, seed=1)
    assert drawn.tobytes() == again.tobytes()


def test_a_composite_of_equal_parts_does_not_move():
    drawn = drawn_weights(np.array([0.3, 0.7]), draws=1000, concentration=5, seed=0)
    moved = spread(0.6, Parts(np.full((4, 2), 0.6)).composites(drawn))
    assert (moved.low, moved.high, moved.deviation) == (pytest.approx(0.6), pytest.approx(0.6), pytest.approx(0))


@pytest.mark.parametrize("renormalise", [False, True])
def test_missing_parts_count_as_configured(renormalise):
    table = np.array([[1.0, np.nan], [0.5, 1.0], [np.nan, 0.8]])
    weights = np.array([[0.25, 0.75]])
    # zero: .25, .875, .6; renormalised: 1, .875, .8
    expected = np.mean([1.0, 0.875, 0.8] if renormalise else [0.25, 0.875, 0.6])
    parts = Parts(table, renormalise)
    assert parts.composites(weights)[0] == pytest.approx(expected)
    assert parts.contributions(weights[0]).sum(axis=1).mean() == pytest.approx(expected)
    assert parts.means == pytest.approx([0.75, 0.9])


def test_removing_a_part():
    assert without(np.array([0.5, 0.3, 0.2]), 0) == pytest.approx([0, 0.6, 0.4])
    assert without(np.array([1.0, 0.0]), 0) is None


def test_systems_that_change_places():
    weights = np.array([0.5, 0.5])
    drawn = drawn_weights(weights, draws=20_000, concentration=10, seed=2)
    systems = [Parts(np.array([row])) for row in ([1.0, 0.0], [0.0, 0.99], [1.0, 1.0])]
    values, moved = composites_of(systems, weights[None, :])[:, 0], composites_of(systems, drawn)
    # 1.0/0.0 against 0.0/0.99: the first leads while its weight is above .4975; Beta(5, 5) is below that with
    # probability .4939 (scipy.stats.beta.cdf(.4975, 5, 5))
    flips = flip_probabilities(values, moved)
    assert flips[0, 1] == pytest.approx(0.4939, abs=0.015)
    assert flips[0, 2] == 0.0
    shares = rank_shares(moved)
    assert shares[2].tolist() == [1.0, 0.0, 0.0]
    assert shares[0, 1] == pytest.approx(1 - flips[0, 1])


def test_equal_systems_share_their_ranks():
    moved = np.array([[0.5, 0.7], [0.5, 0.7], [0.1, 0.9]])
    # first draw: two tie for the lead; second: the third leads
    assert rank_shares(moved).tolist() == [[0.25, 0.5, 0.25], [0.25, 0.5, 0.25], [0.5, 0.0, 0.5]]
    assert flip_probabilities(np.array([0.6, 0.6, 0.5]), moved)[0, 1] == 0.5
