"""How figures are printed."""

from __future__ import annotations

import pytest

from multimodal_eval.core.display import number, p_comparison, p_value, with_margin


@pytest.mark.parametrize(
    ("value", "text", "sentence"),
    [
        (None, "–", "p = –"),
        (1.0, "1.0000", "p = 1.0000"),
        (0.0312, "0.0312", "p = 0.0312"),
        (1 / 10_001, "< 0.0001", "p < 0.0001"),  # the smallest p of 10,000 rounds
        (0.0001, "0.0001", "p = 0.0001"),
        (0.0, "< 0.0001", "p < 0.0001"),
    ],
)
def test_p_values(value, text, sentence):
    assert p_value(value) == text
    assert p_comparison(value) == sentence


def test_numbers():
    assert (number(None), number(0.12345), number(2.0)) == ("–", "0.1235", "2.0000")


def test_a_margin_reaches_the_farther_end():
    assert with_margin(0.0833, 0.0, 0.2042) == "0.0833 ± 0.1209"
    assert with_margin(294.44, 200.0, 300.0, digits=1) == "294.4 ± 94.4"
    assert with_margin(0.5, None, None) == "0.5000"
