"""Whether a text is in a model's language: sure rather than complete."""

from __future__ import annotations

import pytest

from multimodal_eval.text.languages import fits


@pytest.mark.parametrize("text", ["Собака бежит по пляжу", "Der Hund ist auf dem Feld und die Katze", "犬が走っている"])
def test_what_is_surely_not_english(text):
    assert not fits(text, frozenset({"en"}))


@pytest.mark.parametrize(
    "text", ["", "42", "🐕", "A dog", "dog", "man in furry hat", "naïve café", "the café of La Paz"]
)
def test_what_may_be_english(text):
    assert fits(text, frozenset({"en"}))


def test_several_languages_and_none():
    assert fits("Собака бежит по пляжу", frozenset({"en", "ru"}))
    assert fits("Собака бежит по пляжу", frozenset())
    assert not fits("The dog is on the beach", frozenset({"ru"}))
