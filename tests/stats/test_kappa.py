"""Cohen's and Fleiss' kappa: published tables, and values of other packages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.stats.agreement import (
    cohen_kappa,
    fleiss_kappa,
    fleiss_kappa_of_counts,
    pairwise_kappas,
)
from tests.stats.rated_tables import complete, nan

# Fleiss (1971), as Wikipedia prints it: 10 units, 14 raters, 5 labels.
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
COHEN_A = np.repeat([0, 0, 1, 1], [20, 5, 10, 15])
COHEN_B = np.repeat([0, 1, 0, 1], [20, 5, 10, 15])


def test_cohens_table():
    kappa = cohen_kappa(COHEN_A, COHEN_B)
    assert kappa.value == pytest.approx(0.4)
    assert (kappa.n_units, kappa.n_annotators) == (50, 2)
    assert cohen_kappa(COHEN_A.astype(str), COHEN_B.astype(str)) == kappa


@given(complete, st.sampled_from([None, "linear", "quadratic"]))
def test_cohens_kappa_equals_scikit_learn(codes, weights):
    a, b = codes[:, 0], codes[:, 1]
    kappa = cohen_kappa(a, b, weights=weights, resamples=0).value
    if len(set(a) | set(b)) == 1:
        assert kappa is None
    else:
        assert kappa == pytest.approx(cohen_kappa_score(a, b, weights=weights), abs=1e-12)


def test_pairs_use_the_units_that_both_rated():
    ratings = np.array([["a", "a", ""], ["a", "b", "b"], ["b", "b", ""], ["b", "b", "a"], ["", "", "a"]])
    kappas = pairwise_kappas(ratings)
    assert kappas.pairs[0, 1].value == pytest.approx(cohen_kappa_score(list("aabb"), list("abbb")))
    assert kappas.pairs[0, 2].value == pytest.approx(cohen_kappa_score(list("ab"), list("ba")))
    assert [kappas.pairs[pair].n_units for pair in ((0, 1), (0, 2), (1, 2))] == [4, 2, 2]
    defined = [kappa.value for kappa in kappas.pairs.values()]
    assert kappas.mean.value == pytest.approx(np.mean(defined))


def test_an_undefined_pair_has_a_reason_and_is_left_out_of_the_mean():
    kappas = pairwise_kappas([[1, 1, nan], [1, 2, nan], [2, 2, nan], [nan, 1, 1], [nan, 1, 1]])
    assert kappas.pairs[0, 2].reason == "no unit is rated by both"
    assert kappas.pairs[1, 2].reason == "all ratings have the same label, so no disagreement was possible"
    assert kappas.mean.value == kappas.pairs[0, 1].value


def test_weights_need_an_order():
    with pytest.raises(ConfigError, match="order"):
        cohen_kappa(["low", "high"], ["low", "low"], weights="linear")
    assert cohen_kappa(["low", "high"], ["low", "low"], weights="linear", order=["low", "high"]).value == 0
    with pytest.raises(ConfigError, match="same units"):
        cohen_kappa([1, 2], [1, 2, 3])


def test_fleiss_table():
    kappa = fleiss_kappa_of_counts(FLEISS)
    assert kappa.value == pytest.approx(0.2099307, abs=5e-8)
    assert (kappa.n_units, kappa.n_annotators) == (10, 14)
    raters = [np.repeat(np.arange(5), row) for row in FLEISS]
    assert fleiss_kappa(raters).value == pytest.approx(0.2099307, abs=5e-8)


@given(complete)
def test_fleiss_kappa_equals_statsmodels(codes):
    kappa = fleiss_kappa(codes, resamples=0).value
    if len(np.unique(codes)) == 1:
        assert kappa is None
    else:
        table, _ = inter_rater.aggregate_raters(codes)
        assert kappa == pytest.approx(inter_rater.fleiss_kappa(table), abs=1e-9)


def test_fleiss_needs_equal_numbers_of_ratings():
    with pytest.raises(ConfigError, match=r"2 to 3 ratings.*Krippendorff's alpha"):
        fleiss_kappa([[1, 2, 1], [1, 2, nan]])
    assert fleiss_kappa([[1, 1, nan], [nan, 2, 2], [1, nan, 2], [nan, nan, nan]]).n_units == 3
    for bad in ([[1, -1]], [[0.5, 0.5]], [1, 2]):
        with pytest.raises(ConfigError, match="whole numbers"):
            fleiss_kappa_of_counts(bad)
