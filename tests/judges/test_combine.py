"""One score from several judges and repetitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.score import Score
from multimodal_eval.judges.panel import combined, majority


def test_one_judge_is_the_mean_of_its_repetitions():
    score = combined({0: [Score(1.0, parts={"a": 2.0}), Score(4.0, parts={"a": 5.0})]}, "mean")
    assert (score.value, score.parts) == (2.5, {"a": 3.5})


@pytest.mark.parametrize(
    ("combine", "value", "part"),
    [
        ("mean", (1 + 1 + 4) / 3, 3.0),  # the first judge has (0 + 2) / 2 = 1
        ("median", 1.0, 3.0),
        ("majority", 1.0, 3.0),
    ],
)
def test_repetitions_are_averaged_before_the_judges_are_combined(combine, value, part):
    scores = {
        0: [Score(0.0, parts={"a": 2.0}), Score(2.0, parts={"a": 4.0})],
        1: [Score(1.0, parts={"a": 3.0})],
        2: [Score(4.0, parts={"a": 3.0})],
    }
    score = combined(scores, combine)
    assert score.value == pytest.approx(value)
    assert score.parts == {"a": part, "judge_1": 1.0, "judge_2": 1.0, "judge_3": 4.0}


def test_equally_frequent_values_are_averaged():
    assert majority([0.0, 1.0]) == 0.5
    assert majority([5.0, 1.0, 1.0, 5.0, 3.0]) == 3.0
    assert majority([1.0, 2.0, 2.0]) == 2.0


def test_statistics_and_warnings_are_kept():
    score = combined({0: [Score(1.0, stats=(3.0,))], 1: [Score(0.0, stats=(3.0,), warning="w")]}, "mean")
    assert (score.stats, score.warning) == ((3.0,), "w")


def test_a_part_that_a_judge_lacks_comes_from_the_others():
    assert combined({0: [Score(1.0, parts={"first": 1.0})], 1: [Score(0.0)]}, "mean").parts == {
        "first": 1.0,
        "judge_1": 1.0,
        "judge_2": 0.0,
    }


@given(
    values=st.dictionaries(
        st.integers(0, 5), st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=4), min_size=1
    ),
    combine=st.sampled_from(["mean", "median", "majority"]),
    random=st.randoms(),
)
def test_the_order_of_verdicts_changes_nothing(values, combine, random):
    scores = {judge: [Score(value) for value in repeats] for judge, repeats in values.items()}
    shuffled = {
        judge: random.sample(scores[judge], len(scores[judge])) for judge in random.sample([*scores], len(scores))
    }
    assert combined(shuffled, combine) == combined(scores, combine)
    assert 0 <= combined(scores, combine).value <= 1


@given(value=st.floats(-5, 5), judges=st.integers(1, 5), combine=st.sampled_from(["mean", "median", "majority"]))
def test_judges_that_agree_give_their_value(value, judges, combine):
    assert combined({judge: [Score(value)] for judge in range(judges)}, combine).value == pytest.approx(
        value, abs=1e-12
    )
