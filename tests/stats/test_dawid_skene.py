"""One label per unit: Dawid-Skene and the majority vote."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import assume, given

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.stats.agreement import as_ratings, dawid_skene, majority_ties, majority_vote
from tests.stats.rated_tables import nan, tables, with_gaps


def annotate(units, classes, accuracies, seed):
    """Annotators with the given accuracies, who otherwise choose a random other label."""
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


def test_dawid_skene_learns_swapped_labels():
    random = np.random.default_rng(2)
    truth = random.integers(3, size=3000)
    noisy = [np.where(random.random(3000) < 0.8, truth, random.integers(3, size=3000)) for _ in range(3)]
    swapped = np.array([0, 2, 1])[truth]  # always 2 for 1 and 1 for 2
    model = dawid_skene(np.stack([*noisy, swapped], axis=1), 3)
    assert model.confusion[3, 1, 2] > 0.95
    assert np.mean(model.labels == truth) > 0.99


@given(tables)
def test_dawid_skene_gives_distributions_with_missing_ratings(codes):
    assume((codes >= 0).any())
    model = dawid_skene(with_gaps(codes), 4)
    assert model.posterior.sum(axis=1) == pytest.approx(np.ones(len(codes)))
    assert model.priors.sum() == pytest.approx(1)
    assert model.confusion.sum(axis=2) == pytest.approx(np.ones((codes.shape[1], 4)))
    assert ((model.labels < 0) == (codes < 0).all(axis=1)).all()
    again = dawid_skene(codes, 4)
    assert (again.posterior == model.posterior).all()


def test_unrated_units_do_not_change_dawid_skene():
    _, ratings = annotate(300, 3, [0.8, 0.6, 0.5], seed=1)
    alone = dawid_skene(ratings, 3)
    padded = dawid_skene(np.vstack([ratings, np.full((700, 3), -1)]), 3)
    assert (padded.iterations, padded.log_likelihood) == (alone.iterations, pytest.approx(alone.log_likelihood))
    assert padded.posterior[:300] == pytest.approx(alone.posterior)
    assert padded.posterior[300:] == pytest.approx(np.tile(alone.priors, (700, 1)))


def test_the_likelihood_grows_until_convergence():
    _, ratings = annotate(500, 4, [0.8, 0.6, 0.5], seed=8)
    fits = [dawid_skene(ratings, 4, max_iterations=steps) for steps in (1, 3, 10, 500)]
    assert [fit.converged for fit in fits] == [False, False, False, True]
    likelihoods = [fit.log_likelihood for fit in fits]
    assert likelihoods == sorted(likelihoods)


def test_the_likelihood_by_hand():
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
    # Two annotators who always disagree: the classes cannot be distinguished.
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
