from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from multimodal_eval import Sample, evaluate
from multimodal_eval._native import best_assignment
from multimodal_eval.evaluation.metrics.anls import AnyOf, anls_star, anls_star_similarity

pytestmark = pytest.mark.property


# Values of the package anls-star 1.0.1.
@pytest.mark.parametrize(
    ("gold", "answer", "value"),
    [
        ("Hello World", "Hello Wrld", 0.9090909090909091),
        ("hello", "world", 0.0),
        (None, "", 1.0),
        (None, "x", 0.0),
        (["a", "b"], ["b", "a"], 1.0),
        (["a", "b"], ["b"], 0.5),
        (["a"], ["a", "b", "c"], 1 / 3),
        ({"a": "x", "b": "y"}, {"a": "x"}, 0.5),
        ({"a": "x"}, {"a": "x", "b": None}, 0.5),
        ({"a": AnyOf(("hello", "world")), "b": ["this", "is", "a", "test"]},
         {"a": "hello!", "b": ["a", "test", "this", "be"]}, 0.7666666666666666),
        ({"a": 12.5, "b": True}, {"a": "12.50", "b": "true"}, 0.9),
        ([{"x": "1"}, {"x": "2"}], [{"x": "2"}, {"x": "1"}], 1.0),
        ([], [], 1.0),
        ({}, {}, 1.0),
        ("a", {"a": "b", "c": "d"}, 0.0),
    ],
)  # fmt: skip
def test_values_of_the_package(gold, answer, value):
    assert anls_star_similarity(answer, gold) == pytest.approx(value, abs=1e-15)


VALUES = st.recursive(
    st.one_of(st.none(), st.text("abc ", max_size=6), st.integers(0, 20)),
    lambda items: st.one_of(st.lists(items, max_size=3), st.dictionaries(st.sampled_from("kmn"), items, max_size=3)),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_the_value_is_bounded_and_1_for_equal_values(left, right):
    assert anls_star_similarity(left, left) == 1
    value = anls_star_similarity(right, left)
    assert 0 <= value <= 1
    assert anls_star_similarity(right, AnyOf((left, right))) == 1


@given(st.lists(VALUES, max_size=4), st.randoms())
def test_the_order_of_a_list_does_not_count(items, random):
    other = list(items)
    random.shuffle(other)
    assert anls_star_similarity(other, items) == 1


def test_answers_are_read_as_json_and_otherwise_counted():
    gold = '{"total": {"$any_of": ["12.50", "12,50"]}, "date": "1 May"}'
    assert anls_star('{"total": "12,50", "date": "1 May"}', [gold]) == 1
    assert anls_star('Here it is:\n```json\n{"total": "12,50", "date": "1 May"}\n```\n', [gold]) == 1
    assert anls_star("plain text", ["plain  TEXT"]) == 1
    assert anls_star("plain text", [gold]) == 0
    # As anls-star 1.0.1 gives for a text and a list: alternatives if all of them are texts.
    assert anls_star("world", ['["world"]']) == 1
    assert anls_star("world", ['["worl", "x"]']) == 0.8
    assert [anls_star("world", [gold]) for gold in ("[]", '["a", 1]', '[["world"]]', '["hello", ["a"]]')] == [0] * 4
    samples = [
        Sample(id="1", generated_answer="no JSON", references=[gold]),
        Sample(id="2", generated_answer='{"total": "12,50"}', references=[gold]),
    ]
    run = evaluate(samples, metrics=["anls_star"])
    assert run["anls_star"]["value"] == 0.25
    assert run.results["metrics"]["anls_star"]["warnings"] == {"unread": 1}


@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 3), st.integers(0, 2**32))
def test_the_best_pairs_are_scipys_also_in_ties(rows, columns, digits, seed):
    preferences = np.round(np.random.default_rng(seed).random((rows, columns)), digits)
    expected = zip(*(indices.tolist() for indices in linear_sum_assignment(preferences, maximize=True)), strict=True)
    assert best_assignment(preferences.tolist()) == list(expected)


def test_preferences_that_are_no_numbers_or_no_table_are_refused():
    with pytest.raises(ValueError, match="finite"):
        best_assignment([[0.0, float("nan")]])
    with pytest.raises(ValueError, match="lengths"):
        best_assignment([[0.0, 1.0], [0.0]])
    assert best_assignment([]) == []
