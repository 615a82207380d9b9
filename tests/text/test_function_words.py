"""Function words, by language and by the words of a text."""

from __future__ import annotations

import pytest

from multimodal_eval.text.languages import LANGUAGES
from multimodal_eval.text.word_classes import function_words, function_words_among


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_function_words(language: str):
    assert len(function_words(language)) > 30


@pytest.mark.parametrize(
    ("language", "grammar", "content"),
    [
        (
            "en",
            "a an the and or is are with of to she her its while here there very",
            "dog two one no not never under behind front red half",
        ),
        ("ru", "и в на с он она это", "собака не нет под над рядом"),
        ("de", "der die das und ist", "hund nicht unter neben"),
        ("fr", "le la et est", "chien pas sous devant"),
    ],
)
def test_grammar_is_separated_from_content(language: str, grammar: str, content: str):
    words = function_words(language)
    assert set(grammar.split()) <= words
    assert words.isdisjoint(content.split())


def test_the_language_is_that_of_most_function_words():
    assert function_words_among("der hund und die katze in dem haus".split()) == function_words("de")
    assert function_words_among("они на улице".split()) == function_words("ru")
    assert function_words_among(["dog"]) == function_words("en")
    assert function_words_among("a la".split()) >= function_words("es")  # Spanish, Italian or Portuguese
