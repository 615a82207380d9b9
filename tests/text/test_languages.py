"""The language of texts by their letters, and whether a text may be in a model's language."""

from __future__ import annotations

import pytest

from multimodal_eval.text.languages import fits, language_of_texts


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["a cat"], "en"),
        (["кошка"], "ru"),
        (["это iPhone"], "en"),  # 3 Cyrillic letters, 6 Latin ones
        (["вот это iPhone"], "ru"),  # 6 and 6: half is enough
        (["кот", "a big cat"], "en"),  # all texts together
        (["кот и собака", "cat"], "ru"),
        (["a café"], "en"),  # Latin, not ASCII
        (["42"], "en"),
        (["—", "3 + 4 = 7"], "en"),
        (["日本"], "en"),
        (["№ 5, да"], "ru"),
        ([], "en"),
    ],
)
def test_half_of_the_letters_decide(texts, language):
    assert language_of_texts(texts) == language


@pytest.mark.parametrize("text", ["Собака бежит по пляжу", "Der Hund ist auf dem Feld und die Katze", "犬が走っている"])
def test_texts_that_are_not_english(text):
    assert not fits(text, frozenset({"en"}))


@pytest.mark.parametrize(
    "text", ["", "42", "🐕", "A dog", "dog", "man in furry hat", "naïve café", "the café of La Paz"]
)
def test_texts_that_may_be_english(text):
    assert fits(text, frozenset({"en"}))


def test_several_languages_and_none():
    assert fits("Собака бежит по пляжу", frozenset({"en", "ru"}))
    assert fits("Собака бежит по пляжу", frozenset())
    assert not fits("The dog is on the beach", frozenset({"ru"}))
