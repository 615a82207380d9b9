"""Whether labelled samples differ from the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from multimodal_eval.stats.ppi import selection_p_value


def test_without_clusters_it_is_about_welchs_test():
    random = np.random.default_rng(3)
    values, labelled = random.random(400), np.arange(400) < 100
    values[labelled] += 0.1
    welch = stats.ttest_ind(values[labelled], values[~labelled], equal_var=False).pvalue
    # The variances are divided by n instead of n - 1, and the degrees of freedom are 399.
    assert selection_p_value(values, labelled) == pytest.approx(welch, rel=0.2)


def test_value_worked_out_by_hand():
    # Means 1/2 and 0; influence 4 (x - 1/2) / 2 = 1, -1 for the labelled, 0 for the others:
    # SE = sqrt(4/3 * 2) / 4 = .408; t = .5 / .408 = 1.2247 with 3 degrees of freedom.
    p_value = selection_p_value(np.array([1.0, 0, 0, 0]), np.array([True, True, False, False]))
    assert p_value == pytest.approx(2 * stats.t.sf(0.5 / (np.sqrt(8 / 3) / 4), 3))


def test_clusters_count_once():
    values, labelled = np.repeat([1.0, 0, 1, 0, 0, 0, 1, 0], 50), np.repeat(np.arange(8) < 3, 50)
    alone = selection_p_value(values, labelled)
    together = selection_p_value(values, labelled, np.repeat(np.arange(8), 50))
    assert alone is not None
    assert together is not None
    assert alone < 0.001 < 0.1 < together


def test_certain_and_impossible_cases():
    labelled = np.array([True, True, False, False])
    assert selection_p_value(np.array([1.0, 1, 0, 0]), labelled) == 0
    assert selection_p_value(np.ones(4), labelled) == 1
    assert selection_p_value(np.ones(4), np.ones(4, dtype=bool)) is None
    assert selection_p_value(np.ones(4), np.array([True, False, False, False])) is None
    assert selection_p_value(np.array([1.0, 0, 1, 0]), labelled, np.zeros(4, dtype=np.int64)) is None


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=4, max_size=30))
def test_both_groups_are_treated_alike(rows):
    values, labelled = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    p_value, swapped = selection_p_value(values, labelled), selection_p_value(values, ~labelled)
    assert p_value == swapped or p_value == pytest.approx(swapped)
    assert p_value is None or 0 <= p_value <= 1
