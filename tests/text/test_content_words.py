"""Content words: base forms, each said once."""

from __future__ import annotations

import pytest

from multimodal_eval.text import remembered as memory
from multimodal_eval.text.content_words import content_words
from multimodal_eval.text.remembered import remembered


def found(text):
    return [(word.word, word.part, word.lemmas) for word in content_words(text)]


def test_parts_of_speech_and_base_forms():
    assert found("Anna's dogs ran; the taller one was parked.") == [
        ("anna", "NOUN", ("anna",)),
        ("dogs", "NOUN", ("dog",)),
        ("ran", "VERB", ("run",)),
        ("taller", "ADJ", ("tall",)),
        ("one", "NOUN", ("one",)),
        ("parked", "VERB", ("park",)),
    ]


@pytest.mark.parametrize(
    ("text", "word", "lemmas"),
    [
        ("he is riding", "riding", ("ride",)),
        ("she rides a bike", "rides", ("ride",)),
        ("a couple is dining outside", "dining", ("dine",)),
        ("he is staring", "staring", ("stare",)),
        ("two men", "men", ("men", "man")),  # WordNet has "men" as a word of its own: the work force
        ("she is bathing", "bathing", ("bathe", "bath")),  # both are regular
        ("a man busing tables", "busing", ("bus",)),  # irregular and in no list, but there is nothing else
        ("a blorple", "blorple", ("blorple",)),
    ],
)
def test_base_forms_are_those_that_are_spelled_so(text, word, lemmas):
    assert [content.lemmas for content in content_words(text) if content.word == word] == [lemmas]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("they ride and he is riding and she rides", ["ride"]),
        ("two men and a man", ["men"]),
        ("a man and two men", ["man"]),
        ("they dance a dance", ["dance", "dance"]),  # a verb and a noun
    ],
)
def test_words_with_a_base_form_in_common_are_one(text, words):
    assert [word.word for word in content_words(text)] == words


def test_short_texts_are_remembered_and_long_ones_are_not(monkeypatch):
    monkeypatch.setattr(memory, "LONGEST", 3)
    asked = []

    @remembered
    def shout(text):
        asked.append(text)
        return text.upper()

    assert [shout(text) for text in ("dog", "dog", "dogs", "dogs")] == ["DOG", "DOG", "DOGS", "DOGS"]
    assert asked == ["dog", "dogs", "dogs"]
