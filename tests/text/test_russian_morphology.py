"""Normal forms of Russian words equal those of pymorphy3 2.0.6, which is installed for the tests only."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.resources.store import folder_with, verify
from multimodal_eval.text.russian import PARTICLES, PREFIXES, RULES, RussianMorphology

pymorphy3 = pytest.importorskip("pymorphy3")
pytest.importorskip("pymorphy3_dicts_ru")


def folder() -> Path:
    words = folder_with(get_resource("opencorpora-ru"))
    assert words is not None
    return words


OURS = RussianMorphology(folder())
THEIRS = pymorphy3.MorphAnalyzer(lang="ru")


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("автомобиля", {"автомобиль"}),
        ("стекла", {"стекло", "стечь"}),
        ("елки", {"ёлка"}),  # е for ё
        ("люди", {"человек"}),
        ("лучшего", {"хороший"}),
        ("смотри-ка", {"смотреть-ка"}),
        ("по-западному", {"по-западному"}),
        ("человеком-горой", {"человек-гора", "человеком-гора"}),
        ("псевдокошками", {"псевдокошка"}),
        ("бутявкам", {"бутявка"}),  # by the ending, after three rules that find nothing
        ("---", {"---"}),
        ("ъъъ", {"ъъъ"}),
    ],
)
def test_one_word_for_each_rule(word, forms):
    assert set(OURS.normal_forms(word)) == forms
    assert set(THEIRS.normal_forms(word)) == forms


LETTERS = st.text("абвгдеёжзийклмнопрстуфхцчшщъыьэюя-", min_size=1, max_size=14)
WORDS = st.sampled_from(
    "стол дом ёлками идущий бежала красивее трёх никто западному газеты гора программистов ест сталь моего".split()
)
PARTS = st.one_of(LETTERS, WORDS, st.sampled_from(PREFIXES), st.sampled_from(PARTICLES), st.just("-"), st.just("по-"))


@given(st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: "".join(parts)[:40]))
def test_any_word_has_the_normal_forms_of_pymorphy3(word):
    assert set(OURS.normal_forms(word)) == set(THEIRS.normal_forms(word))


def test_the_rules_are_those_of_the_installed_version():
    assert f"pymorphy3-{pymorphy3.__version__}" == RULES


def test_a_run_of_prefixes_takes_no_time():
    assert OURS.normal_forms("недо" * 10)  # pymorphy3 tries all ways to cut it


def test_the_installed_dictionary_is_the_one_of_the_catalogue():
    verify(get_resource("opencorpora-ru"), folder())
