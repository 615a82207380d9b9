"""Mentions of COCO's objects in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.evaluation.metrics.chair import _lines, mentions, objects_of

COCO = [category for category, _ in _lines() if category != "-"]


def objects_and_words(text):
    return [(mention.object, mention.words) for mention in mentions(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A man eats a hot dog next to his dog.", [("person", "man"), ("hot dog", "hot dog"), ("dog", "dog")]),
        ("an orange cat on the train tracks near the train station", [("cat", "cat")]),
        ("two oranges and a slice of orange", [("orange", "oranges"), ("orange", "orange")]),
        ("they train for a race", []),
        ("a baby elephant and an elephant calf", [("elephant", "baby elephant"), ("elephant", "elephant calf")]),
        ("a baby with a cow and its calf", [("person", "baby"), ("cow", "cow"), ("cow", "calf")]),
        (
            "toy bears, a stuffed dog and a bear",
            [("teddy bear", "toy bears"), ("teddy bear", "stuffed dog"), ("bear", "bear")],
        ),
        ("a passenger jet and a passenger", [("airplane", "passenger jet"), ("person", "passenger")]),
        (
            "wine glasses and two glasses of red wine",
            [("wine glass", "wine glasses"), ("wine glass", "glasses of red wine")],
        ),
        ("people on skis at a ski resort", [("person", "people"), ("skis", "skis")]),
        (
            "couches, knives, geese, sheep and mice",
            [("couch", "couches"), ("knife", "knives"), ("bird", "geese"), ("sheep", "sheep"), ("mouse", "mice")],
        ),
        ("a pitcher of water beside the pitcher", [("person", "pitcher")]),
        ("a carrot cake and toilet paper", [("cake", "carrot cake")]),
        ("a dining table", [("dining table", "dining table")]),
        ("A ZEBRA AT A ZEBRA CROSSING", [("zebra", "zebra")]),
        ("a quiet landscape", []),
    ],
)
def test_mentions(text, expected):
    assert objects_and_words(text) == expected


def test_there_are_80_objects_and_each_is_known_by_its_name_and_plural():
    assert len(COCO) == len(set(COCO)) == 80
    for name in COCO:
        assert objects_of([name]) == {name}
    assert objects_of(["Dining Tables", "dogs"]) == {"dining table", "dog"}


def test_listed_names_of_other_things_are_ignored():
    assert objects_of(["tree", "train station", "", "x" * 10_000, "people " * 1000]) == set()


def test_no_name_is_in_two_lines():
    names = [name for _, row in _lines() for name in row]
    assert len(names) == len(set(names))


@given(st.text(max_size=60))
def test_any_text_is_accepted(text):
    assert {mention.object for mention in mentions(text)} <= set(COCO)
