"""Figures in sentences: as many digits as the interval supports."""

from __future__ import annotations

import pytest

from multimodal_eval.display.wording import amount, counted, estimate, listed, plain, share, signed


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        ((0.025, 0.010, 0.040), "0.025 [0.010, 0.040]"),  # half the interval is 0.015
        ((0.0553, -0.0104, 0.1210), "0.055 [-0.010, 0.121]"),  # 0.066
        ((299.07, 221.5, 403.8), "299 [222, 404]"),  # 91
        ((12345.6, 11000.0, 14000.0), "12,346 [11,000, 14,000]"),
        ((0.5, None, None), "0.5000"),
        ((0.5, 0.5, 0.5), "0.5000 [0.5000, 0.5000]"),
        ((0.1, float("-inf"), float("inf")), "0.1000 [-inf, inf]"),
        ((None, None, None), "–"),
    ],
)
def test_an_estimate_with_its_interval(figure, expected):
    assert estimate(*figure) == expected


def test_a_difference_has_a_sign_but_zero_has_none():
    assert signed(-0.025, -0.040, -0.010) == "-0.025 [-0.040, -0.010]"
    assert signed(0.0001, -0.040, 0.040) == "0.000 [-0.040, +0.040]"


def test_the_amount_of_a_difference_is_positive():
    assert amount(-0.025, -0.040, -0.010) == amount(0.025, 0.010, 0.040) == "0.025 [0.010, 0.040]"
    assert amount(-0.025, None, None) == "0.0250"


def test_one_value():
    assert plain(0.12345, 0.1, 0.2) == "0.123"


def test_parts_of_sentences():
    assert [counted(1, "sample"), counted(1200, "sample")] == ["1 sample", "1,200 samples"]
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed([*"abcdefg"]) == "a, b, c, d and 3 more"
    # Only what is exactly all or nothing is 100 % or 0 %.
    assert [share(1.0), share(0.99999), share(0.5), share(0.00001), share(0.0)] == [
        "100%",
        "99.9%",
        "50.0%",
        "0.1%",
        "0%",
    ]
