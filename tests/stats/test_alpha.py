"""Krippendorff's alpha: published values, values of the krippendorff package, and invariances."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from multimodal_eval.stats.agreement import (
    LEVELS,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_kappas,
    percent_agreement,
)
from tests.stats.rated_tables import DOCSTRING, alpha, nan, same, tables, with_gaps


@pytest.mark.parametrize(
    ("level", "value"),
    [("nominal", 0.691358), ("ordinal", 0.806721), ("interval", 0.810845), ("ratio", 0.808944)],
)
def test_alpha_of_the_docstring_matrix(level, value):
    agreement = krippendorff_alpha(DOCSTRING, level)
    assert agreement.value == pytest.approx(value, abs=5e-7)
    assert (agreement.n_units, agreement.n_annotators) == (
        12,
        3,
    )  # three of fifteen units have fewer than two ratings


def test_alpha_by_hand():
    # Units aa, ab, bb: o_aa = 2, o_ab = o_ba = 1, o_bb = 2; n_a = n_b = 3, n = 6.
    # D_o = 2 / 6, D_e = 2 * 3 * 3 / (6 * 5) = 3 / 5; alpha = 1 - (1/3) / (3/5) = 4 / 9.
    assert alpha([["a", "a"], ["a", "b"], ["b", "b"]]) == pytest.approx(4 / 9)


@given(tables, st.sampled_from(LEVELS))
def test_alpha_agrees_with_the_krippendorff_package(codes, level):
    ratings = with_gaps(codes)
    pairable = ratings[(codes >= 0).sum(axis=1) >= 2]
    values = np.unique(pairable[~np.isnan(pairable)])
    assume(len(values) > 1)
    expected = krippendorff.alpha(reliability_data=ratings.T, level_of_measurement=level)
    assert alpha(ratings, level) == pytest.approx(expected, abs=1e-9)


def test_alpha_of_many_different_numbers_agrees_with_the_krippendorff_package():
    random = np.random.default_rng(3)
    truth = random.normal(1e6, 1, size=(50, 1))  # far from 0, where sums of squares lose precision
    ratings = truth + random.normal(0, 0.5, size=(50, 4))
    ratings[random.random(ratings.shape) < 0.2] = nan
    for level in ("ordinal", "interval", "ratio"):
        expected = krippendorff.alpha(reliability_data=ratings.T, level_of_measurement=level)
        assert alpha(ratings, level) == pytest.approx(expected, abs=1e-6)


def test_alpha_of_ordered_strings():
    words = np.array(["low", "mid", "high", "top"], dtype=object)
    ratings = np.where(np.isnan(DOCSTRING), None, words[np.nan_to_num(DOCSTRING, nan=1).astype(int) - 1])
    assert alpha(ratings, "ordinal", order=list(words)) == pytest.approx(0.806721, abs=5e-7)
    assert alpha(ratings) == pytest.approx(0.691358, abs=5e-7)
    other = alpha(ratings, "ordinal", order=["mid", "low", "high", "top"])
    assert other != pytest.approx(0.806721, abs=1e-3)


@pytest.mark.parametrize("level", LEVELS)
def test_a_single_label_is_undefined(level):
    agreement = krippendorff_alpha([[2, 2], [2, 2], [nan, 2]], level)
    assert (agreement.value, agreement.low, agreement.stderr) == (None, None, None)
    assert agreement.reason == "all ratings have the same label, so no disagreement was possible"


@pytest.mark.parametrize("ratings", [[[1, nan], [nan, 2]], np.zeros((0, 3)), [[nan, nan]]])
def test_no_pairs_is_undefined(ratings):
    for agreement in (
        krippendorff_alpha(ratings),
        percent_agreement(ratings).overall,
        pairwise_kappas(ratings).mean,
    ):
        assert agreement.value is None
        assert agreement.reason == "no unit has two ratings"


# Invariances.


@given(tables, st.sampled_from(LEVELS), st.randoms())
def test_the_order_of_units_and_annotators_does_not_matter(codes, level, random):
    units, annotators = list(range(codes.shape[0])), list(range(codes.shape[1]))
    random.shuffle(units)
    random.shuffle(annotators)
    ratings = with_gaps(codes)
    shuffled = ratings[units][:, annotators]
    assert same(alpha(ratings, level), alpha(shuffled, level))
    assert same(
        percent_agreement(ratings, resamples=0).overall.value, percent_agreement(shuffled, resamples=0).overall.value
    )
    assert same(pairwise_kappas(ratings, resamples=0).mean.value, pairwise_kappas(shuffled, resamples=0).mean.value)


@given(tables, st.permutations(range(4)))
def test_the_names_of_nominal_labels_do_not_matter(codes, names):
    renamed = np.where(codes < 0, "", np.array(["w", "x", "y", "z"])[np.array(names)[codes]])
    assert same(alpha(with_gaps(codes)), alpha(renamed))
    kappas = [pairwise_kappas(table, resamples=0).mean.value for table in (with_gaps(codes), renamed)]
    assert same(*kappas)


@given(tables, st.sampled_from(LEVELS))
def test_units_with_fewer_than_two_ratings_change_nothing(codes, level):
    empty = np.full((2, codes.shape[1]), nan)
    empty[1, 0] = 1
    ratings = with_gaps(codes)
    values = np.unique(ratings[~np.isnan(ratings)])
    assume(1 in values)  # a new label would change the table, and so the random numbers
    assert krippendorff_alpha(np.vstack([ratings, empty]), level) == krippendorff_alpha(ratings, level)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=9), st.integers(2, 4), st.sampled_from(LEVELS))
def test_perfect_agreement_is_1(labels, annotators, level):
    assume(len(set(labels)) > 1)
    ratings = np.repeat(np.array(labels)[:, None], annotators, axis=1)
    agreement = krippendorff_alpha(ratings, level)
    assert agreement.value == 1.0
    assert agreement.high in (1.0, None)
    assert fleiss_kappa(ratings).value == 1.0
    assert pairwise_kappas(ratings).mean.value == 1.0


@given(tables)
def test_interval_alpha_is_invariant_to_shift_and_scale(codes):
    ratings = with_gaps(codes)
    assert same(alpha(ratings, "interval"), alpha(ratings * -3 + 100, "interval"))
