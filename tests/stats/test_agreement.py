"""Agreement figures: published values, other programs' values, and what must not change them."""

from __future__ import annotations

from math import log, sqrt

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.stats.agreement import (
    LEVELS,
    as_ratings,
    cohen_kappa,
    dawid_skene,
    fleiss_kappa,
    fleiss_kappa_of_counts,
    jensen_shannon,
    krippendorff_alpha,
    majority_ties,
    majority_vote,
    pairwise_kappas,
    percent_agreement,
)

nan = np.nan

# The docstring of krippendorff 0.9.0, turned: units x annotators.
DOCSTRING = np.array(
    [
        [nan, nan, nan, nan, nan, 3, 4, 1, 2, 1, 1, 3, 3, nan, 3],
        [1, nan, 2, 1, 3, 3, 4, 3, nan, nan, nan, nan, nan, nan, nan],
        [nan, nan, 2, 1, 3, 4, 4, nan, 2, 1, 1, 3, 3, nan, 4],
    ]
).T

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

# Small tables of labels 0 to 3 with gaps (-1).
tables = hnp.arrays(np.int64, st.tuples(st.integers(1, 12), st.integers(2, 4)), elements=st.integers(-1, 3))
complete = hnp.arrays(np.int64, st.tuples(st.integers(2, 12), st.integers(2, 4)), elements=st.integers(0, 3))


def with_gaps(codes):
    return np.where(codes < 0, nan, codes)


def alpha(ratings, level="nominal", **options):
    return krippendorff_alpha(ratings, level, resamples=0, **options).value


def same(left, right):
    return left == right if left is None or right is None else left == pytest.approx(right, abs=1e-9)


# Krippendorff's alpha


@pytest.mark.parametrize(
    ("level", "value"),
    [("nominal", 0.691358), ("ordinal", 0.806721), ("interval", 0.810845), ("ratio", 0.808944)],
)
def test_alpha_of_the_docstring_matrix(level, value):
    found = krippendorff_alpha(DOCSTRING, level)
    assert found.value == pytest.approx(value, abs=5e-7)
    assert (found.n_units, found.n_annotators) == (12, 3)  # three of the fifteen have one rating or none


def test_alpha_by_hand():
    # Units aa, ab, bb: o_aa = 2, o_ab = o_ba = 1, o_bb = 2; n_a = n_b = 3, n = 6.
    # D_o = 2 / 6, D_e = 2 * 3 * 3 / (6 * 5) = 3 / 5; alpha = 1 - (1/3) / (3/5) = 4 / 9.
    assert alpha([["a", "a"], ["a", "b"], ["b", "b"]]) == pytest.approx(4 / 9)


@given(tables, st.sampled_from(LEVELS))
def test_alpha_agrees_with_the_package_of_that_name(codes, level):
    ratings = with_gaps(codes)
    pairable = ratings[(codes >= 0).sum(axis=1) >= 2]
    values = np.unique(pairable[~np.isnan(pairable)])
    assume(len(values) > 1)
    expected = krippendorff.alpha(reliability_data=ratings.T, level_of_measurement=level)
    assert alpha(ratings, level) == pytest.approx(expected, abs=1e-9)


def test_alpha_of_many_different_numbers_agrees_too():
    random = np.random.default_rng(3)
    truth = random.normal(1e6, 1, size=(50, 1))  # far from 0: sums of squares would lose their digits
    ratings = truth + random.normal(0, 0.5, size=(50, 4))
    ratings[random.random(ratings.shape) < 0.2] = nan
    for level in ("ordinal", "interval", "ratio"):
        expected = krippendorff.alpha(reliability_data=ratings.T, level_of_measurement=level)
        assert alpha(ratings, level) == pytest.approx(expected, abs=1e-6)


def test_alpha_of_texts_in_an_order():
    words = np.array(["low", "mid", "high", "top"], dtype=object)
    ratings = np.where(np.isnan(DOCSTRING), None, words[np.nan_to_num(DOCSTRING, nan=1).astype(int) - 1])
    assert alpha(ratings, "ordinal", order=list(words)) == pytest.approx(0.806721, abs=5e-7)
    assert alpha(ratings) == pytest.approx(0.691358, abs=5e-7)
    other = alpha(ratings, "ordinal", order=["mid", "low", "high", "top"])
    assert other != pytest.approx(0.806721, abs=1e-3)


@pytest.mark.parametrize("level", LEVELS)
def test_one_label_only_is_undefined(level):
    found = krippendorff_alpha([[2, 2], [2, 2], [nan, 2]], level)
    assert (found.value, found.low, found.stderr) == (None, None, None)
    assert found.reason == "all ratings are one label: nothing could have disagreed"


@pytest.mark.parametrize("ratings", [[[1, nan], [nan, 2]], np.zeros((0, 3)), [[nan, nan]]])
def test_no_pairs_is_undefined(ratings):
    for found in (
        krippendorff_alpha(ratings),
        percent_agreement(ratings).overall,
        pairwise_kappas(ratings).mean,
    ):
        assert found.value is None
        assert found.reason == "no unit has two ratings"


@pytest.mark.parametrize(
    ("ratings", "level", "said"),
    [
        ([["a", "b"]], "interval", "needs numbers. Got 'a'"),
        ([["a", "b"]], "ordinal", "need an order"),
        ([[1, -2]], "ratio", "from 0 up. Got -2"),
        ([[1, 2]], "nominl", "Did you mean 'nominal'?"),
        ([[1, np.inf]], "interval", "infinity"),
        ([1, 2], "nominal", "units x annotators"),
        (np.array([["a", 1.5]], dtype=object), "nominal", "mix texts and other values"),
        (np.array([[b"a", b"b"]], dtype=object), "nominal", "a rating must be a number or a text"),
        (np.arange(6000.0).reshape(-1, 2), "ratio", "up to 5,000 different numbers"),
    ],
)
def test_ratings_that_cannot_be_used(ratings, level, said):
    with pytest.raises(ConfigError, match=said):
        krippendorff_alpha(ratings, level)


def test_a_label_outside_the_order_is_refused():
    with pytest.raises(ConfigError, match="Did you mean 'high'"):
        krippendorff_alpha([["low", "hgih"]], "ordinal", order=["low", "high"])
    with pytest.raises(ConfigError, match="twice"):
        krippendorff_alpha([["low", "high"]], "ordinal", order=["low", "high", "low"])


# What must not matter


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
def test_units_that_nobody_or_one_rated_change_nothing(codes, level):
    empty = np.full((2, codes.shape[1]), nan)
    empty[1, 0] = 1
    ratings = with_gaps(codes)
    values = np.unique(ratings[~np.isnan(ratings)])
    assume(1 in values)  # a new label would be a longer table, and so other random numbers
    assert krippendorff_alpha(np.vstack([ratings, empty]), level) == krippendorff_alpha(ratings, level)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=9), st.integers(2, 4), st.sampled_from(LEVELS))
def test_perfect_agreement_is_1(labels, annotators, level):
    assume(len(set(labels)) > 1)
    ratings = np.repeat(np.array(labels)[:, None], annotators, axis=1)
    found = krippendorff_alpha(ratings, level)
    assert (found.value, found.high) == (1.0, 1.0)
    assert fleiss_kappa(ratings).value == 1.0
    assert pairwise_kappas(ratings).mean.value == 1.0


@given(tables)
def test_interval_alpha_knows_no_shift_and_no_scale(codes):
    ratings = with_gaps(codes)
    assert same(alpha(ratings, "interval"), alpha(ratings * -3 + 100, "interval"))


# Kappas


def test_cohens_table():
    found = cohen_kappa(COHEN_A, COHEN_B)
    assert found.value == pytest.approx(0.4)
    assert (found.n_units, found.n_annotators) == (50, 2)
    assert cohen_kappa(COHEN_A.astype(str), COHEN_B.astype(str)) == found


@given(complete, st.sampled_from([None, "linear", "quadratic"]))
def test_cohens_kappa_is_scikit_learns(codes, weights):
    a, b = codes[:, 0], codes[:, 1]
    found = cohen_kappa(a, b, weights=weights, resamples=0).value
    if len(set(a) | set(b)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(cohen_kappa_score(a, b, weights=weights), abs=1e-12)


def test_pairs_use_the_units_that_both_rated():
    ratings = np.array([["a", "a", ""], ["a", "b", "b"], ["b", "b", ""], ["b", "b", "a"], ["", "", "a"]])
    found = pairwise_kappas(ratings)
    assert found.pairs[0, 1].value == pytest.approx(cohen_kappa_score(list("aabb"), list("abbb")))
    assert found.pairs[0, 2].value == pytest.approx(cohen_kappa_score(list("ab"), list("ba")))
    assert [found.pairs[pair].n_units for pair in ((0, 1), (0, 2), (1, 2))] == [4, 2, 2]
    defined = [kappa.value for kappa in found.pairs.values()]
    assert found.mean.value == pytest.approx(np.mean(defined))


def test_a_pair_without_a_kappa_says_why_and_leaves_the_mean():
    found = pairwise_kappas([[1, 1, nan], [1, 2, nan], [2, 2, nan], [nan, 1, 1], [nan, 1, 1]])
    assert found.pairs[0, 2].reason == "no unit has a rating of both"
    assert found.pairs[1, 2].reason == "all ratings are one label: nothing could have disagreed"
    assert found.mean.value == found.pairs[0, 1].value


def test_weights_need_an_order():
    with pytest.raises(ConfigError, match="order"):
        cohen_kappa(["low", "high"], ["low", "low"], weights="linear")
    assert cohen_kappa(["low", "high"], ["low", "low"], weights="linear", order=["low", "high"]).value == 0
    with pytest.raises(ConfigError, match="same units"):
        cohen_kappa([1, 2], [1, 2, 3])


def test_fleiss_table():
    found = fleiss_kappa_of_counts(FLEISS)
    assert found.value == pytest.approx(0.2099307, abs=5e-8)
    assert (found.n_units, found.n_annotators) == (10, 14)
    raters = [np.repeat(np.arange(5), row) for row in FLEISS]
    assert fleiss_kappa(raters).value == pytest.approx(0.2099307, abs=5e-8)


@given(complete)
def test_fleiss_kappa_is_statsmodels(codes):
    found = fleiss_kappa(codes, resamples=0).value
    if len(np.unique(codes)) == 1:
        assert found is None
    else:
        table, _ = inter_rater.aggregate_raters(codes)
        assert found == pytest.approx(inter_rater.fleiss_kappa(table), abs=1e-9)


def test_fleiss_needs_equal_numbers_and_names_alpha():
    with pytest.raises(ConfigError, match=r"2 to 3 ratings.*Krippendorff's alpha"):
        fleiss_kappa([[1, 2, 1], [1, 2, nan]])
    assert fleiss_kappa([[1, 1, nan], [nan, 2, 2], [1, nan, 2], [nan, nan, nan]]).n_units == 3
    for bad in ([[1, -1]], [[0.5, 0.5]], [1, 2]):
        with pytest.raises(ConfigError, match="whole numbers"):
            fleiss_kappa_of_counts(bad)


def test_percent_agreement_by_hand():
    # Pairs of ratings: unit 1 has 3, of which 1 is equal (a, b); unit 2 has 1, equal; unit 3 has none.
    found = percent_agreement([["x", "x", "y"], ["x", "x", None], [None, None, "y"]])
    assert found.overall.value == pytest.approx(2 / 4)
    # The first annotator is in 3 of the pairs, 2 of them equal; the third in 2, none equal.
    assert [one.value for one in found.annotators] == pytest.approx([2 / 3, 2 / 3, 0])


# Intervals


def test_the_interval_is_the_percentile_bootstrap_over_units():
    random = np.random.default_rng(0)
    truth = random.integers(3, size=120)
    ratings = np.where(random.random((120, 3)) < 0.7, truth[:, None], random.integers(3, size=(120, 3)))
    found = krippendorff_alpha(ratings, resamples=4000)
    draws = [alpha(ratings[random.integers(120, size=120)]) for _ in range(1500)]
    assert found.low == pytest.approx(np.quantile(draws, 0.025), abs=0.012)
    assert found.high == pytest.approx(np.quantile(draws, 0.975), abs=0.012)
    assert found.stderr == pytest.approx(np.std(draws), rel=0.1)
    assert found.method == "95% percentile bootstrap, 4,000 resamples of 120 units"


def test_groups_are_drawn_whole():
    random = np.random.default_rng(1)
    # Ten copies of each of 20 units: as 200 units they look ten times as informative as they are.
    once = np.where(random.random((20, 2)) < 0.7, random.integers(2, size=(20, 1)), random.integers(2, size=(20, 2)))
    copied, groups = np.repeat(once, 10, axis=0), np.repeat(np.arange(20), 10)
    grouped = krippendorff_alpha(copied, groups=groups, resamples=4000)
    assert grouped.method == "95% percentile bootstrap, 4,000 resamples of 20 groups"
    assert grouped.stderr == pytest.approx(krippendorff_alpha(once, resamples=4000).stderr, rel=0.1)
    assert grouped.stderr > 2 * krippendorff_alpha(copied).stderr
    alone = krippendorff_alpha(copied, groups=np.arange(200), resamples=4000)
    assert alone.stderr == pytest.approx(krippendorff_alpha(copied, resamples=4000).stderr, rel=0.1)


def test_a_large_group_is_drawn_as_often_as_a_small_one():
    random = np.random.default_rng(6)
    groups = np.repeat(np.arange(12), [1] * 6 + [12] * 6)
    agreeing = np.repeat(random.random(12) < 0.5, np.bincount(groups))
    first = random.integers(2, size=len(groups))
    ratings = np.stack([first, np.where(agreeing, first, random.integers(2, size=len(groups)))], axis=1)
    equal = ratings[:, 0] == ratings[:, 1]
    draws = []
    for _ in range(2000):
        drawn = random.integers(12, size=12)
        draws.append(np.mean(np.concatenate([equal[groups == group] for group in drawn])))
    found = percent_agreement(ratings, groups=groups, resamples=4000).overall
    assert found.stderr == pytest.approx(np.std(draws), rel=0.08)


def test_the_bootstrap_is_seeded_and_memory_does_not_change_it(monkeypatch):
    first = krippendorff_alpha(DOCSTRING, "ordinal", seed=5)
    monkeypatch.setattr("multimodal_eval.stats.resampling._CELLS", 50)
    assert krippendorff_alpha(DOCSTRING, "ordinal", seed=5) == first
    assert krippendorff_alpha(DOCSTRING, "ordinal", seed=6) != first


def test_without_resamples_or_units_there_is_no_interval():
    found = krippendorff_alpha([[1, 2]])
    assert (found.value, found.low, found.method) == (0.0, None, "no interval: 1 unit")
    assert krippendorff_alpha(DOCSTRING, resamples=0).method == "no interval"
    one = krippendorff_alpha(DOCSTRING, groups=np.zeros(15, dtype=np.int64))
    assert (one.low, one.method) == (None, "no interval: 1 group")
    with pytest.raises(ConfigError, match="one group a unit"):
        krippendorff_alpha(DOCSTRING, groups=np.zeros(3, dtype=np.int64))


@pytest.mark.parametrize("level", LEVELS)
def test_undefined_resamples_are_counted(level):
    # 29 units aaa and one bbb: a resample has no b with probability (29/30)^30 = .362.
    found = krippendorff_alpha([[0.1] * 3] * 29 + [[0.3] * 3], level)
    lost = int(found.method.split("units, ")[1].split()[0])
    assert lost == pytest.approx(362, abs=60)
    assert (found.low, found.high) == (1.0, 1.0)


def test_an_interval_of_less_than_half_of_the_resamples_is_none():
    # The first and the last annotator share two units of 30, aa and bb. Either is missing from a resample
    # with probability (29/30)^30 = .362, both are there in about .4.
    ratings = [[1, 1, nan], [1, 2, nan]] * 14 + [[1, nan, 1], [2, nan, 2]]
    found = pairwise_kappas(ratings)
    assert found.pairs[0, 2].value == 1.0
    assert found.pairs[0, 2].low is None
    assert found.pairs[0, 2].method.startswith("no interval: undefined in ")
    assert found.pairs[0, 1].low is not None


# One label a unit


def annotate(units, classes, accuracies, seed):
    """Annotators who are right so often, and otherwise say any other label."""
    random = np.random.default_rng(seed)
    truth = random.integers(classes, size=units)
    wrong = (truth[:, None] + random.integers(1, classes, size=(units, len(accuracies)))) % classes
    return truth, np.where(random.random(wrong.shape) < accuracies, truth[:, None], wrong)


def test_dawid_skene_beats_the_majority_vote():
    truth, ratings = annotate(20_000, 9, [0.95, 0.55, 0.55], seed=4)
    model = dawid_skene(ratings, 9)
    assert model.converged
    assert np.mean(model.labels == truth) == pytest.approx(0.947, abs=0.006)
    assert np.mean(majority_vote(ratings, 9) == truth) == pytest.approx(0.836, abs=0.008)
    right = model.confusion[:, range(9), range(9)].mean(axis=1)
    assert right == pytest.approx([0.95, 0.55, 0.55], abs=0.02)


def test_dawid_skene_learns_a_turned_label():
    random = np.random.default_rng(2)
    truth = random.integers(3, size=3000)
    noisy = [np.where(random.random(3000) < 0.8, truth, random.integers(3, size=3000)) for _ in range(3)]
    turned = np.array([0, 2, 1])[truth]  # says 2 for 1 and 1 for 2, always
    model = dawid_skene(np.stack([*noisy, turned], axis=1), 3)
    assert model.confusion[3, 1, 2] > 0.95
    assert np.mean(model.labels == truth) > 0.99


@given(tables)
def test_dawid_skene_is_a_distribution_whatever_is_missing(codes):
    assume((codes >= 0).any())
    model = dawid_skene(with_gaps(codes), 4)
    assert model.posterior.sum(axis=1) == pytest.approx(np.ones(len(codes)))
    assert model.priors.sum() == pytest.approx(1)
    assert model.confusion.sum(axis=2) == pytest.approx(np.ones((codes.shape[1], 4)))
    assert ((model.labels < 0) == (codes < 0).all(axis=1)).all()
    again = dawid_skene(codes, 4)
    assert (again.posterior == model.posterior).all()


def test_units_that_nobody_rated_do_not_change_dawid_skene():
    _, ratings = annotate(300, 3, [0.8, 0.6, 0.5], seed=1)
    alone = dawid_skene(ratings, 3)
    padded = dawid_skene(np.vstack([ratings, np.full((700, 3), -1)]), 3)
    assert (padded.iterations, padded.log_likelihood) == (alone.iterations, pytest.approx(alone.log_likelihood))
    assert padded.posterior[:300] == pytest.approx(alone.posterior)
    assert padded.posterior[300:] == pytest.approx(np.tile(alone.priors, (700, 1)))


def test_a_longer_fit_is_no_less_likely_and_says_when_it_has_not_converged():
    _, ratings = annotate(500, 4, [0.8, 0.6, 0.5], seed=8)
    fits = [dawid_skene(ratings, 4, max_iterations=steps) for steps in (1, 3, 10, 500)]
    assert [fit.converged for fit in fits] == [False, False, False, True]
    likelihoods = [fit.log_likelihood for fit in fits]
    assert likelihoods == sorted(likelihoods)


def test_the_likelihood_is_that_of_the_ratings():
    codes = np.array([[0, 1], [1, 1], [0, -1]])
    model = dawid_skene(codes, 2)
    total = 0.0
    for row in codes:
        chances = [
            model.priors[k] * np.prod([model.confusion[a, k, r] for a, r in enumerate(row) if r >= 0]) for k in (0, 1)
        ]
        total += log(sum(chances))
    assert model.log_likelihood == pytest.approx(total)


def test_ties_go_to_the_smallest_class():
    ratings = [[2, 1, nan], [0, 2, 1], [2, 2, 0], [nan, nan, nan]]
    assert majority_vote(ratings, 3).tolist() == [1, 0, 2, -1]
    assert majority_ties(ratings, 3) == 2
    # Two annotators who only swap 0 and 1: nothing tells them apart.
    assert dawid_skene([[0, 1], [1, 0]], 2).labels.tolist() == [0, 0]
    assert majority_vote(as_ratings([["b", "a"], ["b", "b"]])).tolist() == [0, 1]


@pytest.mark.parametrize("ratings", [[[0, 3]], [[-2, 0]], [[0.5, 1]], [["a", "b"]], [0, 1]])
def test_class_indices_are_checked(ratings):
    for function in (dawid_skene, majority_vote):
        with pytest.raises(ConfigError, match="class ind"):
            function(ratings, 3)


def test_dawid_skene_needs_a_rating_and_a_smoothing():
    with pytest.raises(ConfigError, match="at least one rating"):
        dawid_skene([[nan, nan]], 2)
    with pytest.raises(ConfigError, match="above 0"):
        dawid_skene([[0, 1]], 2, smoothing=0)


# Soft labels


def test_the_published_distance():
    distance = jensen_shannon([2 / 3, 1 / 3, 0], [0.5, 0.25, 0.25])
    assert distance == pytest.approx(0.3091967, abs=5e-8)
    assert distance**2 == pytest.approx(0.0956026, abs=5e-8)
    assert jensen_shannon([8, 4, 0], [2, 1, 1]) == pytest.approx(distance)  # counts are fine
    assert jensen_shannon([1, 0], [0, 1]) == pytest.approx(sqrt(log(2)))


shares = hnp.arrays(np.float64, (3, 4), elements=st.floats(0.0, 1.0).map(lambda share: round(share, 6)))


@given(shares, shares)
def test_the_distance_is_scipys(p, q):
    assume((p.sum(axis=1) > 0).all())
    assume((q.sum(axis=1) > 0).all())
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q, axis=1), abs=1e-7)


@pytest.mark.parametrize("bad", [[0, 0], [nan, 1], [-1, 2], [1, 2, 3]])
def test_a_distribution_is_checked(bad):
    with pytest.raises(ConfigError, match="distribution"):
        jensen_shannon(bad, [1, 1])
