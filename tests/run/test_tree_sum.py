"""The states of parts are summed pairwise."""

from __future__ import annotations

import pytest

from multimodal_eval.run.steps.fit import TreeSum


def tree_sum(states):
    total = TreeSum()
    for state in states:
        total.add(state)
    return total.value


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 100])
def test_the_tree_adds_in_order(count):
    assert tree_sum([f"{number}." for number in range(count)]) == "".join(f"{number}." for number in range(count))


def test_neighbours_are_added_first():
    class Shape:
        def __init__(self, text):
            self.text = text

        def __add__(self, other):
            return Shape(f"({self.text}{other.text})")

    assert tree_sum([Shape(str(number)) for number in range(7)]).text == "(((01)(23))((45)6))"


def test_the_sum_of_nothing_is_none():
    assert tree_sum([]) is None
