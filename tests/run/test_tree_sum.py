"""The states of parts are summed pairwise, in their order."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from multimodal_eval import Sample, evaluate, metric
from tests.parts import set_part_size


class Joined(msgspec.Struct, frozen=True):
    """The ids of samples, in brackets around each sum."""

    text: str = ""

    def __add__(self, other: Joined) -> Joined:
        return Joined(f"({self.text}{other.text})")


def joined(samples: Iterable[Sample]) -> Joined:
    return Joined("".join(f"{sample.id}." for sample in samples))


@pytest.fixture
def tree_of(monkeypatch):
    """The sum of the states of as many parts, each with one sample."""
    seen = []

    @metric("sums", version="1", bounds=(0, 1), corpus=joined)
    def sums(sample: Sample, corpus: Joined | None = None) -> float:
        assert corpus is not None
        seen.append(corpus.text)
        return 1.0

    def tree(count):
        set_part_size(monkeypatch, 1)
        samples = [Sample(id=str(number), generated_answer="a") for number in range(count)]
        evaluate(samples, metrics=["sums"], workers=1, skip_lint=True)
        assert len(set(seen)) == 1
        return seen.pop()

    return tree


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 33])
def test_the_tree_adds_in_order(tree_of, count):
    ids = "".join(f"{number}." for number in range(count))
    assert tree_of(count).replace("(", "").replace(")", "") == ids


def test_neighbours_are_added_first(tree_of):
    assert tree_of(7) == "(((0.1.)(2.3.))((4.5.)6.))"
