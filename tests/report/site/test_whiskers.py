"""Intervals on a shared scale."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.report.site.content import MARGIN, WIDTH, scale_of

finite = st.floats(-1e6, 1e6, allow_nan=False)


def test_round_ends():
    # 0.13 to 0.87 is 0.74 wide: four steps of at least 0.185, so 0.2, from 0.0 to 1.0.
    scale = scale_of([0.13, 0.87])
    assert [tick.label for tick in scale.ticks] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert (scale.place(0.0), scale.place(1.0)) == (MARGIN, WIDTH - MARGIN)
    assert scale.place(0.5) == WIDTH / 2


def test_labels_have_no_rounding_errors_and_no_negative_zero():
    assert [tick.label for tick in scale_of([-0.29, 0.19]).ticks] == ["-0.4", "-0.2", "0.0", "0.2"]


def test_zero_is_labelled():
    assert [tick.label for tick in scale_of([-0.3, 0.2], include=0.0).ticks if tick.is_labelled] == [
        "-0.4",
        "0.0",
        "0.2",
    ]


def test_one_value_has_a_scale():
    scale = scale_of([0.5])
    assert scale.low < 0.5 < scale.high


def test_nothing_to_show():
    assert scale_of([]).place(0.5) == WIDTH / 2


@pytest.mark.parametrize("value", [1e308, -1e308, float("inf"), float("nan"), 1e-320])
def test_values_beyond_all_scales(value):
    scale = scale_of([0.2, value, -value])
    assert MARGIN <= scale.place(0.2) <= WIDTH - MARGIN
    assert len(scale.ticks) <= 7


def test_a_value_outside_is_drawn_at_the_end():
    scale = scale_of([0.0, 1.0])
    assert scale.place(7.0) == WIDTH - MARGIN
    assert scale.place(-7.0) == MARGIN


def test_no_interval():
    assert scale_of([0.0, 1.0]).whisker(0.5, None, None).low is None


@given(st.lists(finite, min_size=1, max_size=6))
def test_every_value_is_inside_and_in_order(values):
    scale = scale_of(values)
    places = [scale.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert MARGIN <= places[0] <= places[-1] <= WIDTH - MARGIN
    slack = 1e-8 * scale.step
    assert scale.low <= min(values) + slack
    assert scale.high >= max(values) - slack
    assert 2 <= len(scale.ticks) <= 7


@pytest.mark.parametrize("value", [1e-7, 3e5, -0.02])
def test_close_values_of_any_size(value):
    scale = scale_of([value, value * (1 + 1e-4)])
    assert len(scale.ticks) >= 2
