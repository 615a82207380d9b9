from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.text.wordnet import Lazy, numbered

groups_of_words = st.lists(st.frozensets(st.sampled_from("abcdef"), max_size=4), max_size=8)


def test_numbers_worked_out_by_hand():
    # Larger groups come first, in order: (auto, car) is 0, (car, wagon) is 1. Then the single ox is 2. The single car
    # and the second (auto, car) are redundant.
    groups = [["car", "auto"], ["ox"], ["car"], ["wagon", "car"], ["auto", "car", "car"], []]
    assert numbered(groups) == {"auto": (0,), "car": (0, 1), "wagon": (1,), "ox": (2,)}
    assert numbered(groups, first=10)["car"] == (10, 11)


@given(groups_of_words)
def test_words_share_a_number_if_a_group_has_both(groups):
    numbers = numbered(groups)
    for left, right in product("abcdef", repeat=2):
        together = any({left, right} <= group for group in groups)
        assert bool(set(numbers.get(left, ())) & set(numbers.get(right, ()))) == together
    assert all(list(group_numbers) == sorted(set(group_numbers)) for group_numbers in numbers.values())


@given(groups_of_words, st.randoms())
def test_the_order_of_groups_does_not_matter(groups, random):
    shuffled = random.sample(groups, len(groups))
    assert numbered(shuffled) == numbered(groups)


def test_lazy_creates_its_value_once_for_all_threads():
    calls = []

    def make():
        sleep(0.01)
        calls.append(1)
        return object()

    value = Lazy(make)
    assert not calls
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: value(), range(32)))) == 1
    assert len(calls) == 1


def test_lazy_tries_again_after_a_failure():
    outcomes = iter([ValueError("not yet"), None])

    def make():
        if error := next(outcomes):
            raise error
        return 7

    value = Lazy(make)
    with pytest.raises(ValueError, match="not yet"):
        value()
    assert value() == 7
