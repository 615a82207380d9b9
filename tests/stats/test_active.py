from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.stats.label_budget import combined_probabilities, drawn, expected_errors, selection_probabilities

NONE = np.full(4, float("nan"))


def test_without_labels_a_verdict_in_the_middle_or_a_split_panel_is_doubtful():
    # f (1 - f) + spread^2 = 0, .25, .16 and .09 + .04; the floor is a tenth of their mean, .054 / 4.
    judge = np.array([0.0, 0.5, 0.2, 0.9])
    errors = expected_errors(judge, (0, 1), spread=np.array([0, 0, 0, 0.2]), human=NONE)
    assert errors**2 == pytest.approx([0.1 * 0.54 / 4, 0.25, 0.16, 0.13])
    # The same on a scale from 1 to 5.
    scaled = expected_errors(1 + 4 * judge, (1, 5), spread=np.array([0, 0, 0, 0.8]), human=NONE)
    assert scaled == pytest.approx(errors)


def test_verdicts_of_0_and_1_without_labels_say_nothing():
    assert expected_errors(np.array([0.0, 1, 1, 0]), (0, 1), spread=np.zeros(4), human=NONE).tolist() == [1, 1, 1, 1]


def test_labels_show_where_the_judge_errs():
    # The judge's 0 is always right, its 1 is wrong half of the time.
    judge = np.tile([0.0, 1, 0, 1], 100)
    human = np.tile([0.0, 1, 0, 0], 100)
    human[200:] = np.nan
    errors = expected_errors(judge, (0, 1), spread=np.zeros(400), human=human)
    assert errors[301] > 1.5 * errors[300]


def test_probabilities_worked_out_by_hand():
    # Half uniform: sizes 1/8 + 1/2 * (1, 1, 2, 4)/8 = 3/16, 3/16, 4/16, 6/16, of which there are 2 labels.
    probabilities = selection_probabilities(np.array([1.0, 1, 2, 4]), 2)
    assert probabilities == pytest.approx([6 / 16, 6 / 16, 8 / 16, 12 / 16])
    # With 3 labels the last one would have 18/16: it is certain, and 2 labels are left for sizes 3 : 3 : 4.
    assert selection_probabilities(np.array([1.0, 1, 2, 4]), 3) == pytest.approx([0.6, 0.6, 0.8, 1])
    assert selection_probabilities(np.array([1.0, 1, 2, 4]), 4).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("labels", [0, 5, -1])
def test_impossible_numbers_of_labels(labels):
    with pytest.raises(ValueError, match="between 1 and 4"):
        selection_probabilities(np.ones(4), labels)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=60), st.data())
def test_a_draw_has_as_many_samples_as_labels(errors, data):
    labels = data.draw(st.integers(1, len(errors)))
    probabilities = selection_probabilities(np.array(errors), labels)
    assert probabilities.sum() == pytest.approx(labels)
    assert probabilities.min() > 0
    assert probabilities.max() <= 1
    chosen = drawn(probabilities, seed=data.draw(st.integers(0, 1000)))
    assert chosen.sum() == labels
    assert chosen[probabilities == 1].all()


def test_samples_are_drawn_with_their_probabilities():
    probabilities = selection_probabilities(np.array([1.0, 2, 3, 4, 5, 6]), 2)
    clusters = np.array([0, 0, 1, 1, 2, 2])
    for codes in (None, clusters):
        counts = np.sum([drawn(probabilities, seed=seed, clusters=codes) for seed in range(4000)], axis=0)
        assert counts / 4000 == pytest.approx(probabilities, abs=0.03)  # four standard errors


def test_clusters_are_spread_and_seeds_repeat():
    # Two of ten samples in five clusters of two: never both of a cluster, since their probabilities sum to 2/5.
    probabilities, clusters = np.full(10, 0.2), np.arange(10) // 2
    for seed in range(200):
        assert len(set(clusters[drawn(probabilities, seed=seed, clusters=clusters)])) == 2
    assert (drawn(probabilities, seed=3) == drawn(probabilities, seed=3)).all()


def test_combined_probabilities():
    assert combined_probabilities(np.array([0.0, 0.5, 1]), np.array([0.3, 0.2, 0])) == pytest.approx([0.3, 0.6, 1])
