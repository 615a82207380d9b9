from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from multimodal_eval.stats.intervals import standard_error, t_interval
from multimodal_eval.stats.multi_annotator import score_strict

GOLD = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
PREDICTED = np.array([0, 0, 1, 1, 1, 2, 2, 2, 0, 2])


def scores(gold, predicted, classes):
    return score_strict(predicted, gold, [str(code) for code in range(classes)])


def macro_f1(gold, predicted, classes):
    return scores(gold, predicted, classes).macro_f1


def test_the_published_vector():
    estimate = macro_f1(GOLD, PREDICTED, 3)
    assert estimate.value == pytest.approx(0.6944444, abs=5e-8)
    assert standard_error(estimate.influence, corrected=estimate.corrected) == pytest.approx(0.1469771, abs=5e-8)
    assert t_interval(estimate).stderr == pytest.approx(0.1469771, abs=5e-8)
    assert estimate.influence.sum() == pytest.approx(0, abs=1e-12)


def test_absent_classes_count_as_0():
    # gold aabb, predicted aabc: .8333 over a and b, .1852 over nine classes, as in scikit-learn with zero_division=0
    gold, predicted = np.array([0, 0, 1, 1]), np.array([0, 0, 1, -1])
    assert macro_f1(gold, predicted, 2).value == pytest.approx(0.8333, abs=5e-5)
    assert macro_f1(gold, predicted, 9).value == pytest.approx(0.1852, abs=5e-5)
    assert macro_f1(gold, np.array([0, 0, 1, 2]), 3).value == pytest.approx(0.5556, abs=5e-5)


codes = st.integers(0, 4)


@given(st.lists(st.tuples(codes, codes), min_size=1, max_size=40))
def test_f1_equals_scikit_learn(pairs):
    gold, predicted = (np.array(column) for column in zip(*pairs, strict=True))
    theirs = f1_score(gold, predicted, labels=range(5), average=None, zero_division=0)
    assert scores(gold, predicted, 5).f1 == pytest.approx(theirs, abs=1e-12)
    assert macro_f1(gold, predicted, 5).value == pytest.approx(theirs.mean(), abs=1e-12)


def test_classes_with_few_gold_examples_are_listed():
    gold = np.array([0] * 10 + [1] * 9)
    assert scores(gold, gold, 3).few_gold == ["1", "2"]
