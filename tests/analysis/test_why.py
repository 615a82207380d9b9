"""The parts of a difference: planted causes are found with their sizes, and nothing is left over."""

from __future__ import annotations

import random

import pytest

from multimodal_eval import why
from tests.analysis.planted_causes import CAUSES, faults, planted


@pytest.fixture(autouse=True)
def without_cache(monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")


@pytest.mark.parametrize("causes", [*((name,) for name in CAUSES), tuple(CAUSES), ("gold", "answer", "reading")])
def test_planted_causes(causes):
    first, second, sizes = planted(len(causes), causes)
    assert faults(why(first, second, names=("A", "B")), sizes) == []


@pytest.mark.slow
def test_200_planted_causes():
    found = {}
    for seed in range(200):
        source = random.Random(seed)
        causes = source.sample(list(CAUSES), source.choice((1, 1, 2, 3, 4, 9)))
        first, second, sizes = planted(seed, causes)
        found[seed, tuple(causes)] = faults(why(first, second, names=("A", "B")), sizes)
    assert {key: each for key, each in found.items() if each} == {}
