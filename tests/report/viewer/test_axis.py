"""Axes that the server draws: round ticks within the axis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.report.viewer.drawings import Axis, around


def test_ticks_are_at_round_values():
    ticks = Axis(-0.02, 1.02).ticks()
    assert [tick.label for tick in ticks] == ["0.00", "0.25", "0.50", "0.75", "1.00"]
    assert ticks[0].at == pytest.approx(100 * 0.02 / 1.04)
    assert [tick.label for tick in Axis(-183, 412).ticks()] == ["0", "200", "400"]
    assert [tick.label for tick in Axis(-0.013, 0.021).ticks(5)] == ["-0.01", "0.00", "0.01", "0.02"]


def test_a_single_value_has_an_axis_around_it():
    axis = around(0.3, 0.3)
    assert axis.low < 0.3 < axis.high
    assert around(0.0, 0.0) == Axis(-0.5, 0.5)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(2, 9))
def test_ticks_are_few_ascending_and_inside(low, width, most):
    axis = Axis(low, low + width)
    if axis.width <= 1e-12 * abs(low):  # too narrow for floats
        return
    ticks = axis.ticks(most)
    assert len(ticks) <= most + 1
    assert all(0 <= tick.at <= 100 for tick in ticks)
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)


def test_values_outside_are_at_the_ends():
    axis = Axis(0, 2)
    assert [axis.at(value) for value in (-1, 0.5, 3)] == [0, 25, 100]
