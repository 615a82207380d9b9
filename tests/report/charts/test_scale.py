"""Scales: round limits that include every value."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.report.charts.dots import Scale, nice_scale, tick_label


@pytest.mark.parametrize(
    ("values", "limits", "expected"),
    [
        ([0.0, 1.0], (0, 1), (0, 1, 5)),
        ([1.1, 1.78], (0, None), (0, 2, 4)),
        ([221.5, 403.8], (0, None), (0, 500, 5)),
        ([-0.121, 0.01, 0.0], (None, None), (-0.15, 0.05, 4)),
        ([], (None, None), (0, 1, 5)),
    ],
)
def test_limits_are_round(values, limits, expected):
    scale = nice_scale(values, limits)
    assert (scale.low, scale.high, scale.steps) == pytest.approx(expected)


def test_ticks_of_counts_are_whole_numbers():
    assert [tick.label for tick in nice_scale([2], (0, None), is_count=True).ticks] == ["0", "1", "2"]
    assert [tick.label for tick in nice_scale([12], (0, None), is_count=True).ticks] == ["0", "3", "6", "9", "12"]


def test_labels_are_short():
    assert [tick_label(value) for value in (0.25, 12000.0, 1e9, 0.0)] == ["0.25", "12,000", "1e+09", "0"]
    assert [tick.label for tick in Scale(-0.3, 0.3, 2).ticks] == ["-0.3", "0", "0.3"]


def test_a_value_beyond_a_limit_is_at_the_limit():
    assert [Scale(0, 1, 5).at(value) for value in (-0.2, 0.25, 1.3)] == [0, 25, 100]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5))
def test_any_values_have_a_scale(values):
    scale = nice_scale(values)
    assert scale.low < scale.high
    places = [tick.at for tick in scale.ticks]
    assert (places[0], places[-1]) == (0, 100)
    assert all(left < right for left, right in pairwise(places))
    assert all(0 <= scale.at(value) <= 100 for value in values if value == value)
    if scale.steps > 1:
        assert 2 <= scale.steps <= 10  # each number of steps has a class in the style sheet
