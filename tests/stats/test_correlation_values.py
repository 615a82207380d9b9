"""Correlations without influence values, against scipy and values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from multimodal_eval.stats.correlation import mid_ranks, pearson, pearson_value, spearman, spearman_value

columns = st.lists(
    st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=60
)  # small integers, so that many values are equal


def test_values_worked_out_by_hand():
    # x - mean = -1, 0, 1 and y - mean = -1, 1, 0: the sum of products is 1, both sums of squares are 2.
    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0])
    assert pearson_value(x, y) == pytest.approx(1 / 2)
    # The two 5s share the ranks 2 and 3.
    assert mid_ranks(np.array([5.0, 1.0, 5.0, 9.0])).tolist() == [2.5, 1.0, 2.5, 4.0]


@given(columns)
def test_scipy_gives_the_same_values_with_ties(pairs):
    x, y = np.array(pairs, dtype=float).T
    if x.min() == x.max() or y.min() == y.max():
        assert pearson_value(x, y) is None
        assert spearman_value(x, y) is None
        return
    assert pearson_value(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman_value(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_the_coefficients_with_influence_values_are_the_same():
    generator = np.random.default_rng(3)
    x = generator.normal(size=500)
    y = np.round(x + generator.normal(size=500), 1)
    assert pearson_value(x, y) == pytest.approx(pearson(x, y).value)
    assert spearman_value(x, y) == pytest.approx(spearman(x, y).value)


def test_large_values_do_not_overflow():
    x = np.array([1e300, -1e300, 5e299])
    assert pearson_value(x, x) == pytest.approx(1.0)


def test_short_and_constant_columns_have_no_correlation():
    assert pearson_value(np.array([1.0]), np.array([2.0])) is None
    assert spearman_value(np.array([]), np.array([])) is None
    assert pearson_value(np.zeros(3), np.arange(3.0)) is None


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="same length"):
        pearson_value(np.zeros(3), np.zeros(4))
