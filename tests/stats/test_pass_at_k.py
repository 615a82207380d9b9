"""pass@k and the differences between epochs."""

from itertools import combinations
from math import nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.stats.estimates import between_epochs, is_binary, ks_of, pass_at_k


def test_values_worked_out_by_hand():
    # n = 4, c = 1: pass@1 = 1/4; pass@2 = 1 - C(3,2)/C(4,2) = 1 - 3/6; pass@4 = 1.
    # n = 4, c = 3: pass@2 = 1, because only one answer is wrong.
    values = np.array([[1, 0, 0, 0], [1, 1, 0, 1], [0, 0, 0, 0]], np.float64)
    assert pass_at_k(values, 1).tolist() == [0.25, 0.75, 0]
    assert pass_at_k(values, 2).tolist() == [0.5, 1, 0]
    assert pass_at_k(values, 4).tolist() == [1, 1, 0]


def test_unscored_answers_are_not_wrong():
    # n = 3, c = 1: pass@2 = 1 - C(2,2)/C(3,2) = 2/3; pass@4 needs four answers.
    values = np.array([[1, nan, 0, 0], [nan, nan, nan, 1]])
    assert pass_at_k(values, 2)[0] == pytest.approx(2 / 3)
    assert np.isnan(pass_at_k(values, 2)[1])
    assert np.isnan(pass_at_k(values, 4)).all()


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=8), st.data())
def test_equal_to_the_share_of_subsets_with_a_right_answer(answers, data):
    k = data.draw(st.integers(1, len(answers)))
    subsets = list(combinations(answers, k))
    expected = sum(any(subset) for subset in subsets) / len(subsets)
    assert pass_at_k(np.array([answers]), k)[0] == pytest.approx(expected)


def test_which_k_are_reported():
    assert ks_of(2) == [1, 2]
    assert ks_of(5) == [1, 2, 4, 5]
    assert ks_of(8) == [1, 2, 4, 8]


def test_binary_values():
    assert is_binary(np.array([0.0, 1.0, nan]))
    assert not is_binary(np.array([0.0, 0.5]))
    assert not is_binary(np.array([nan]))


def test_standard_deviation_between_epochs():
    # The means of the epochs are 1/2, 1 and 0 (unscored left out): sd of (.5, 1, 0) is 1/2.
    values = np.array([[1, 1, 0], [0, nan, 0]])
    assert between_epochs(values) == pytest.approx(0.5)
    assert between_epochs(np.array([[0.25, 0.75]])) == pytest.approx(sqrt(2) / 4)
    assert between_epochs(np.array([[0.25, nan]])) is None
