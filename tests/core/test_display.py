"""How figures are printed."""

from __future__ import annotations

import pytest

from multimodal_eval.core.display import number, p_comparison, p_value


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
