"""Numbers in LaTeX have the values that latex2sympy2 and Python give them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.text.latex_numbers import latex_number
from tests.golden.load import golden


def test_values_equal_those_of_latex2sympy():
    values = golden("latex_numbers.json.gz")
    assert len(values) > 3000
    assert sum(value is not None for value in values.values()) > 600
    differing = []
    for text, expected in values.items():
        number = latex_number(text)
        is_huge = number is not None and abs(number) >= 1e300  # recorded as null
        if (None if number is None or is_huge else round(number, 2)) != expected:
            differing.append((text, expected, number))
    assert differing == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\frac{1}{2}", 0.5),
        (r"1/2\pi", 1 / (2 * 3.141592653589793)),  # a product without a sign binds before the slash
        (r"6\frac{1}{4}", 1.5),  # a product, not a mixed number
        ("1,000", 1000),
        (r"\log_{2}{8}", 3),
        (r"5\log_3(9)", 10),
        (r"\log_28", None),  # the base is 28
        (r"2\lfloor3.5\rfloor", 6),
        (r"\lfloor3.5", None),
        ("10:4", 2.5),
        ("20\\%", 0.2),
        ("20 \\%", None),
        (r"\frac{1}{2}}. So it is \frac{1}{3", 0.5),
        ("5 cm", None),
        ("x", None),
        ("1, 2", None),
        ("(1, 2)", None),
        (r"\sqrt{-1}", None),
        (r"\frac{1}{0}", None),
        ("", None),
    ],
)
def test_value_worked_out_by_hand(text, value):
    number = latex_number(text)
    assert number == (value if value is None else pytest.approx(value, abs=1e-12))


@pytest.mark.parametrize("text", ["9^{9^{9^{9}}}", "(" * 5000, "-" * 100_000, "500!!", r"\frac{" * 400, "9^9" * 300])
def test_a_text_that_would_cost_time_or_memory_is_not_a_number(text):
    assert latex_number(text) is None


@given(st.text(max_size=60))
def test_any_text_is_a_number_or_none(text):
    assert isinstance(latex_number(text), int | float | None)


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**6))
def test_a_fraction_is_the_quotient(numerator, denominator):
    assert latex_number(rf"\frac{{{numerator}}}{{{denominator}}}") == numerator / denominator
    assert latex_number(str(numerator)) == numerator
