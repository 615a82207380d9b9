"""Probabilities and quantiles, against scipy and against closed forms."""

from __future__ import annotations

from math import atan, exp, inf, isnan, log, nan, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special as scipy_special

from multimodal_eval.stats.special import expit, logit, ndtr, ndtri, stdtr, stdtrit

FREEDOM = (1, 1.5, 2, 3, 4.7, 10, 29, 29.9, 30, 31, 99, 1000, 12345.6, 1e6, 1e9, inf)
shares = st.floats(1e-12, 1 - 1e-12)


@pytest.mark.parametrize("freedom", FREEDOM)
def test_t_probabilities_equal_scipys(freedom):
    for t in (-30.0, -12.0, -8.0, -4.3, -2.5, -1.8, -1.73, -1.71, -1.0, -0.3, 0.0, 0.5, 1.72, 1.96, 3.0, 9.0):
        expected = float(scipy_special.stdtr(freedom, t))
        if expected > 1e-100:
            assert stdtr(freedom, t) == pytest.approx(expected, rel=1e-13, abs=0), t


@pytest.mark.parametrize("freedom", FREEDOM)
def test_t_quantiles_equal_scipys(freedom):
    for p in (1e-12, 1e-6, 0.001, 0.025, 0.1, 0.24, 0.26, 0.4, 0.6, 0.74, 0.76, 0.8, 0.9, 0.975, 0.995, 0.9999):
        expected = scipy_special.stdtrit(freedom, p) if freedom < inf else scipy_special.ndtri(p)
        assert stdtrit(freedom, p) == pytest.approx(float(expected), rel=1e-13, abs=0), p


@pytest.mark.parametrize("t", [1e-9, 1e-4, 0.3, 1.0, 1.7, 1.9, 12.0, 1e6, 1e200])
def test_t_has_closed_forms_for_one_and_two_degrees_of_freedom(t):
    # P(T <= t) = 1/2 + atan(t) / pi, and 1/2 + t / (2 sqrt(2 + t^2))
    assert stdtr(1, t) == pytest.approx(0.5 + atan(t) / pi, rel=1e-15, abs=0)
    if t < 1e100:
        assert stdtr(2, t) == pytest.approx(0.5 + t / (2 * sqrt(2 + t * t)), rel=1e-15, abs=0)
    # P(T > t) = atan(1 / t) / pi
    assert stdtr(1, -t) == pytest.approx(atan(1 / t) / pi, rel=1e-13, abs=0)


@pytest.mark.parametrize("p", [1e-300, 1e-30, 0.01, 0.2499, 0.2501, 0.4999999])
def test_t_quantiles_have_closed_forms_too(p):
    # tan(pi (p - 1/2)) = -1 / tan(pi p), and (2 p - 1) / sqrt(2 p (1 - p))
    assert stdtrit(1, p) == pytest.approx(-np.tan(pi * (0.5 - p)) if p > 0.1 else -1 / np.tan(pi * p), rel=1e-13, abs=0)
    assert stdtrit(2, p) == pytest.approx((2 * p - 1) / sqrt(2 * p * (1 - p)), rel=1e-13, abs=0)


@given(st.floats(0.2, 1e10), shares)
def test_a_quantile_has_its_probability(freedom, p):
    t = stdtrit(freedom, p)
    assert stdtr(freedom, t) == pytest.approx(p, rel=1e-12, abs=0)
    assert stdtrit(freedom, 0.5) == 0.0


@given(st.floats(0.2, 1e10), st.floats(-50, 50))
def test_t_is_symmetric(freedom, t):
    assert stdtr(freedom, t) + stdtr(freedom, -t) == pytest.approx(1, rel=1e-15, abs=0)


@given(shares)
def test_normal_quantiles_equal_scipys(p):
    assert ndtri(p) == pytest.approx(float(scipy_special.ndtri(p)), rel=1e-14, abs=1e-16)


@given(st.floats(-12, 12))
def test_normal_probabilities_equal_scipys(x):
    assert ndtr(x) == pytest.approx(float(scipy_special.ndtr(x)), rel=1e-13, abs=0)


def test_the_far_tail_of_the_normal_distribution():
    assert ndtri(1e-300) == pytest.approx(float(scipy_special.ndtri(1e-300)), rel=1e-13, abs=0)


def test_ends_and_numbers_outside_of_the_domain():
    assert (ndtri(0), ndtri(1), ndtr(-inf), ndtr(inf)) == (-inf, inf, 0, 1)
    assert (stdtrit(5, 0), stdtrit(5, 1), stdtr(5, -inf), stdtr(5, inf)) == (-inf, inf, 0, 1)
    outside = (
        ndtri(-0.1),
        ndtri(1.1),
        ndtri(nan),
        stdtrit(0, 0.3),
        stdtrit(3, 2),
        stdtr(0, 1),
        stdtr(-1, 1),
        stdtr(2, nan),
    )
    assert all(map(isnan, outside))
    assert isnan(stdtr(nan, 1))


@given(st.floats(-800, 800))
def test_expit_equals_scipys(x):
    assert expit(x) == float(scipy_special.expit(x))
    assert expit(np.array([x, 0.0])).tolist() == [expit(x), 0.5]


@given(st.floats(1e-300, 1 - 1e-16))
def test_logit_equals_scipys(p):
    assert logit(p) == pytest.approx(float(scipy_special.logit(p)), rel=1e-14, abs=1e-300)


def test_expit_is_the_inverse_of_logit():
    assert logit(0.75) == pytest.approx(log(3))
    assert expit(log(3)) == pytest.approx(0.75)
    assert expit(-700.0) == pytest.approx(exp(-700))


def test_a_table_of_numbers_is_refused():
    with pytest.raises(TypeError):
        expit(np.zeros((2, 2)))
